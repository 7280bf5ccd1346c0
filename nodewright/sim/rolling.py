"""One large MachineDeployment rolled on the virtual clock, without bad luck: how many steps, and how much waiting."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, uid_of
from nodewright.crds import load_crds
from nodewright.runtime.settings.wiring import reconcilers
from nodewright.sim import faults, users
from nodewright.sim.engine import Engine, Scenario
from nodewright.sim.invariants import active, available

BOOT: dict[str, Any] = {"bootSeconds": 8, "joinSeconds": 4, "deleteSeconds": 2}
_SCALES = "machinedeployment workers: scale MachineSet"


@dataclass(frozen=True, slots=True)
class Rolled:
    """``steps``: reconciles in which sizes changed; ``least_steps``: one a wave of the surge, and one at the end.

    ``least_seconds``: as many waves as long as a Machine takes to be Ready. ``seconds`` is real time, to compute it.
    """

    machines: int
    steps: int
    least_steps: int
    virtual_seconds: float
    least_seconds: float
    fewest_available: int
    seconds: float


def run(machines: int, surge: int) -> Rolled:
    """Roll ``machines`` with ``maxSurge: surge`` and ``maxUnavailable: 0`` to a new template."""
    started = time.monotonic()
    engine = Engine(0, Scenario(replicas=machines, edits=0, faults=faults.NONE), reconcilers(), load_crds())
    strategy = users.Strategy(surge, 0, "InPlace")
    body = users.deployment(machines, strategy, {**users.SIMULATED, **BOOT, "cloud": {"name": "sim"}})
    engine.plane.create(MACHINE_DEPLOYMENT, body)
    engine.settle_quietly(lambda: _done(engine, machines))
    before = {uid_of(machine) for machine in engine.plane.list(MACHINE)}
    engine.trace.clear()
    fewest, begun = machines, engine.clock.elapsed
    version = {"template": {"spec": {"versions": {"kubelet": users.VERSIONS[1]}}}}
    engine.plane.patch(MACHINE_DEPLOYMENT, users.DEPLOYMENT, {"spec": version})

    def rolled() -> bool:
        nonlocal fewest
        found = engine.plane.list(MACHINE)
        fewest = min(fewest, sum(1 for machine in found if available(machine)))
        return not before & {uid_of(machine) for machine in found} and _done(engine, machines)

    engine.settle_quietly(rolled)
    waves = math.ceil(machines / surge)
    return Rolled(
        machines=machines,
        steps=len({line[:10] for line in engine.trace if _SCALES in line}) + 1,  # the new MachineSet comes with a size
        least_steps=waves + 1,
        virtual_seconds=engine.clock.elapsed - begun,
        least_seconds=waves * (BOOT["bootSeconds"] + BOOT["joinSeconds"]) + BOOT["deleteSeconds"],
        fewest_available=fewest,
        seconds=time.monotonic() - started,
    )


def _done(engine: Engine, machines: int) -> bool:
    status = (engine.plane.get(MACHINE_DEPLOYMENT, users.DEPLOYMENT) or {}).get("status") or {}
    counts = ("replicas", "updatedReplicas", "availableReplicas")
    return (
        all(status.get(count) == machines for count in counts) and len(active(engine.plane.list(MACHINE))) == machines
    )
