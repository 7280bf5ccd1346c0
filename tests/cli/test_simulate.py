"""``simulate`` passes its seeds on, shows what came out and fails when a rule was broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from nodewright.cli.main import run
from nodewright.sim import report
from nodewright.sim.engine import Result
from nodewright.sim.report import Options, Summary

Progress = Callable[[int, Result], None]


def result(seed: int, breach: str) -> Result:
    return Result(seed, breach, 10, 1, 60.0, {}, ("somebody scaled to 3", "a crash"))


def told(*results: Result) -> Callable[[Options, Progress], Summary]:
    def fake(options: Options, progress: Progress) -> Summary:
        assert (options.seeds, options.first_seed) == (len(results), results[0].seed)
        for done, one in enumerate(results, 1):
            progress(done, one)
        failed = tuple(r for r in results if r.breach)
        return Summary(len(results), failed, 10, 1, 60.0, Counter(), 0.1)

    return fake


def test_schedules_that_hold_end_with_zero(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "run", told(result(7, ""), result(8, "")))
    assert run(["simulate", "--seeds", "2", "--first-seed", "7"]) == 0
    assert "schedules with a breach      0" in capsys.readouterr().out


def test_a_broken_rule_tells_its_story_and_how_to_see_it_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "run", told(result(7, ""), result(8, "two hosts for one Machine")))
    assert run(["simulate", "--seeds", "2", "--first-seed", "7"]) == 1
    shown = capsys.readouterr()
    assert "seed 8: two hosts for one Machine" in shown.out
    assert "nodewright simulate --seeds 1 --first-seed 8" in shown.out
    assert "a rule was broken" in shown.err


def test_one_real_seed_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--seeds", "1", "--workers", "1"]) == 0
    assert "schedules run" in capsys.readouterr().out


def test_a_week_prints_its_table_and_ends_with_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--soak", "--machines", "3", "--days", "1"]) == 0
    out = capsys.readouterr().out
    assert "everything converged" in out
    assert "kills of the controllers" in out
