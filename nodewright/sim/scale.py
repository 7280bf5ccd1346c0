"""One large MachineSet on the virtual clock, without bad luck: what decisions cost with very many Machines."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from controllers.kernel.refs import MACHINE, MACHINE_SET
from nodewright.crds import load_crds
from nodewright.runtime.settings.wiring import reconcilers
from nodewright.sim import faults, users
from nodewright.sim.engine import Engine, Scenario
from nodewright.sim.invariants import Bounds, available


@dataclass(frozen=True, slots=True)
class Scaled:
    """``seconds``: CPU and wall are the same here, one thread computes. ``writes`` by kind of request."""

    machines: int
    ready: int
    seconds: float
    virtual_seconds: float
    writes: Mapping[str, int]


def run(machines: int) -> Scaled:
    """Grow one MachineSet from 0 to ``machines`` until all are Ready."""
    scenario = Scenario(replicas=machines, edits=0, faults=faults.NONE)
    started = time.monotonic()
    engine = Engine(0, scenario, reconcilers(), load_crds())
    engine.guard.expect(users.DEPLOYMENT.name, Bounds(machines, 0))
    engine.plane.create(MACHINE_SET, _machine_set(machines))
    engine.settle_quietly(lambda: _grown(engine, machines))
    spent = time.monotonic() - started
    items = engine.plane.list(MACHINE)
    ready = sum(1 for machine in items if available(machine))
    return Scaled(len(items), ready, spent, engine.clock.elapsed, dict(engine.plane.writes))


def _grown(engine: Engine, machines: int) -> bool:
    machine_set = engine.plane.get(MACHINE_SET, users.DEPLOYMENT)
    return machine_set is not None and (machine_set.get("status") or {}).get("readyReplicas") == machines


def _machine_set(replicas: int) -> dict[str, object]:
    deployment = users.deployment(replicas, users.Strategy(1, 0, "InPlace"), users.SIMULATED)
    spec = {key: deployment["spec"][key] for key in ("replicas", "selector", "template")}
    return {**deployment, "kind": MACHINE_SET.name, "spec": spec}
