"""A cluster through days of trouble: nothing is broken by our own hand, and in the end all is as declared."""

from __future__ import annotations

import pytest

from nodewright.sim.soak import Options, Report, Soak


def lived(options: Options) -> Report:
    report = Soak(options).run()
    assert not report.breach, "\n".join((f"{options}: {report.breach}", *report.trace[-60:]))
    return report


def test_a_day_of_a_small_cluster_ends_as_declared_and_the_troubles_really_came() -> None:
    report = lived(Options(machines=24, days=1, seed=1))
    assert report.crashes > 0
    assert report.least < 24, "a zone was dark"
    assert report.made > 24, "Machines were replaced"
    assert min(report.soak_faults.values()) >= 1


def test_equal_seeds_live_equal_days() -> None:
    first, second = (lived(Options(machines=9, days=1, seed=5)) for _ in range(2))
    assert first.trace == second.trace


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_two_days_of_100_machines_end_as_declared(seed: int) -> None:
    lived(Options(machines=100, days=2, seed=seed))


@pytest.mark.slow
def test_a_week_of_1000_machines_ends_as_declared() -> None:
    lived(Options(machines=1000, days=7))
