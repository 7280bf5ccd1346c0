"""Control planes through crashes, stale views and lost hosts: one init, no lost quorum, and what can heal heals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from controllers.controlplane import observe
from controllers.kernel.refs import CONTROL_PLANE, MACHINE, key_of
from nodewright.sim import faults
from nodewright.sim.controlplanes import NAME, ControlPlanes, Declared
from nodewright.sim.engine import Scenario

ROUGH = Scenario(edits=6, faults=replace(faults.ROUGH, crash=0.03, outages=0))
QUICK_SEEDS = range(30)
LONG_SEEDS = range(30, 1000)


def check(seed: int) -> ControlPlanes:
    engine = ControlPlanes(seed, ROUGH)
    result = engine.run()
    assert not result.breach, result.summary()
    return engine


def test_thirty_histories_hold_and_heal() -> None:
    engines = [check(seed) for seed in QUICK_SEEDS]
    assert sum(engine.crashes for engine in engines) > len(engines)
    assert sum(engine.strikes for engine in engines) > len(engines) // 4
    assert sum(engine.splits for engine in engines) > len(engines) // 6


@pytest.mark.slow
def test_a_thousand_histories_hold_and_heal() -> None:
    for seed in LONG_SEEDS:
        check(seed)


def test_a_rule_that_is_missing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that may be joining is let go: so the tests above tell something."""
    monkeypatch.setattr(observe, "JOIN_LIMIT", timedelta(0))
    breaches = (ControlPlanes(seed, ROUGH).run().breach for seed in range(40, 60))
    assert any("went while it had a vote" in breach for breach in breaches)


class _BrokenVersion(ControlPlanes):
    """1.34.7 runs on no host. Somebody asks for it, sees that it does not work, and names another version."""

    BROKEN = "1.34.7"
    stopped = ""

    def __init__(self, seed: int, replicas: int, next_version: str) -> None:
        super().__init__(seed, ROUGH)
        self.declared = Declared(replicas, 1, "Require", "InPlace")
        self.next_version = next_version
        self.world.broken_versions.add(self.BROKEN)

    def _rough(self) -> None:
        self._until(lambda: not self._unsettled())
        self._asks_for(self.BROKEN)
        self._until(lambda: "could not be updated" in self._next())
        self.stopped = self._next()
        for _ in range(200):
            self._step()
            assert len(self._of(self.BROKEN)) <= 1, "a second host got what the first could not run"
        self._asks_for(self.next_version)

    def _asks_for(self, version: str) -> None:
        self.plane.patch(CONTROL_PLANE, NAME, {"spec": {"version": version}})

    def _until(self, so: Callable[[], bool]) -> None:
        """In bad times first. What was lost for good in them is seen once they end."""
        for _ in range(500):
            if so():
                return
            self._step()
        self._calm()
        self.settle_quietly(so)
        self._set_faults(self.scenario.faults)

    def _next(self) -> str:
        body = self.plane.get(CONTROL_PLANE, NAME)
        return str((body or {}).get("status", {}).get("next"))

    def _of(self, version: str) -> list[str]:
        machines = self.plane.list(MACHINE)
        return [key_of(each).name for each in machines if each["spec"]["versions"]["controlPlane"] == version]


@pytest.mark.parametrize("next_version", ["1.34.8", "1.34.0"], ids=["a later patch", "the one before"])
@pytest.mark.parametrize("replicas", [1, 3])
def test_a_version_that_does_not_run_reaches_one_host_and_another_one_heals_it(
    replicas: int, next_version: str
) -> None:
    for seed in range(12):
        engine = _BrokenVersion(seed, replicas, next_version)
        result = engine.run()
        assert not result.breach, result.summary()
        assert "1.34.7 does not run, and the host went back" in engine.stopped
        assert not engine._of("1.34.7")
