"""Hosts that break and kubelets that fall silent, with a MachineHealthCheck, all the bad luck, and people's edits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nodewright.crds import load_crds
from nodewright.runtime.settings.wiring import reconcilers
from nodewright.sim import faults
from nodewright.sim.engine import Engine, Scenario

BREAKING = Scenario(edits=6, faults=replace(faults.ROUGH, broken_hosts=4), health_check=True)
QUICK_SEEDS = range(2)
LONG_SEEDS = range(2, 300)
"""Among them 83, 255 and 275: what each found is told in the tests of the rooms."""


def _holds(seed: int) -> Engine:
    engine = Engine(seed, BREAKING, reconcilers(), load_crds())
    result = engine.run()
    assert not result.breach, result.summary()
    return engine


@pytest.mark.parametrize("seed", QUICK_SEEDS)
def test_broken_machines_are_replaced_and_no_minimum_is_broken(seed: int) -> None:
    """All settles with every Machine Ready, which it can't without: a broken host never comes back."""
    engine = _holds(seed)
    assert engine.broken > 0


def test_without_a_check_a_broken_host_stays() -> None:
    """The simulation would find it: so the test above tells something."""
    unchecked = replace(BREAKING, health_check=False)
    summary = (Engine(seed, unchecked, reconcilers(), load_crds()).run() for seed in QUICK_SEEDS)
    assert any("is not Ready" in result.breach for result in summary)


@pytest.mark.slow
def test_many_seeds() -> None:
    summary = [Engine(seed, BREAKING, reconcilers(), load_crds()).run() for seed in LONG_SEEDS]
    breaches = [result for result in summary if result.breach]
    assert not breaches, "\n\n".join(result.summary() for result in breaches[:3])
