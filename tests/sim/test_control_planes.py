"""Control planes through crashes, stale views and lost hosts: one init, no lost quorum, and what can heal heals."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from controllers.controlplane import observe
from nodewright.sim import faults
from nodewright.sim.controlplanes import ControlPlanes
from nodewright.sim.engine import Scenario

ROUGH = Scenario(edits=6, faults=replace(faults.ROUGH, crash=0.03, outages=0))
QUICK_SEEDS = range(60)
LONG_SEEDS = range(60, 1000)


def check(seed: int) -> ControlPlanes:
    engine = ControlPlanes(seed, ROUGH)
    result = engine.run()
    assert not result.breach, result.summary()
    return engine


def test_sixty_histories_hold_and_heal() -> None:
    engines = [check(seed) for seed in QUICK_SEEDS]
    assert sum(engine.crashes for engine in engines) > len(engines)
    assert sum(engine.strikes for engine in engines) > len(engines) // 4


@pytest.mark.slow
def test_a_thousand_histories_hold_and_heal() -> None:
    for seed in LONG_SEEDS:
        check(seed)


def test_a_rule_that_is_missing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that may be joining is let go: so the tests above tell something."""
    monkeypatch.setattr(observe, "JOIN_LIMIT", timedelta(0))
    told = [ControlPlanes(seed, ROUGH).run().breach for seed in range(40, 60)]
    assert any("went while it had a vote" in breach for breach in told)
