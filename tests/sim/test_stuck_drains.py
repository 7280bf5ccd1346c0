"""A hundred Machines that can't go, for a PodDisruptionBudget holds their pods, delay nobody (MCM#943).

Peers drain inside a worker of the controller: there a hundred stuck drains held fifty workers for hours, and no Machine
was made meanwhile. Counted in rounds, calls and virtual time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from controllers.drain.assess import REQUEUE_AFTER
from controllers.kernel.conditions import find
from controllers.kernel.plan import Plan
from controllers.kernel.reconciler import Reconciler
from controllers.kernel.refs import MACHINE, MACHINE_SET, POD, POD_DISRUPTION_BUDGET, Key, is_deleting
from controllers.machine.reconciler import RECONCILER
from nodewright.crds import load_crds
from nodewright.runtime.settings.wiring import reconcilers
from nodewright.sim import faults, users
from nodewright.sim.engine import Engine, Scenario
from nodewright.sim.invariants import Bounds

MANY, FEW = 100, 20


@dataclass
class Counted:
    """The Machine room, with its rounds counted by the MachineSet of the Machine."""

    reconciles: Counter[str] = field(default_factory=Counter)

    def __getattr__(self, name: str) -> Any:
        return getattr(RECONCILER, name)

    def plan(self, observed: Any) -> Plan:
        self.reconciles[str(getattr(observed, "name", "")).split("-")[0]] += 1
        return RECONCILER.plan(observed)


@dataclass
class Cluster:
    counted: Counted = field(default_factory=Counted)

    def __post_init__(self) -> None:
        others: list[Reconciler[Any]] = [reconciler for reconciler in reconcilers() if reconciler.kind != MACHINE]
        scenario = Scenario(replicas=MANY + 2 * FEW, edits=0, faults=faults.NONE)
        self.engine = Engine(0, scenario, [*others, self.counted], load_crds())

    def grow(self, name: str, replicas: int) -> float:
        """A new MachineSet until all of it is ready; the virtual seconds that took."""
        self.engine.guard.expect(name, Bounds(MANY + 2 * FEW, 0))
        spec = users.deployment(replicas, users.Strategy(1, 0, "InPlace"), {**users.SIMULATED, "bootSeconds": 5})[
            "spec"
        ]
        labels = {"pool": name}
        template = {**spec["template"], "metadata": {"labels": labels}}
        body = {
            "apiVersion": MACHINE_SET.api_version,
            "kind": "MachineSet",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
        }
        self.engine.plane.create(MACHINE_SET, body)
        started = self.engine.clock.elapsed
        self.engine.settle_quietly(lambda: self.ready(name) == replicas)
        return self.engine.clock.elapsed - started

    def ready(self, name: str) -> int:
        body = self.engine.plane.get(MACHINE_SET, Key("default", name))
        return int(((body or {}).get("status") or {}).get("readyReplicas", 0))

    def one_pod_on_each(self, name: str) -> None:
        """All under a budget that allows none to go."""
        plane = self.engine.plane
        of_it = (m for m in plane.list(MACHINE) if m["metadata"]["labels"]["pool"] == name)
        for number, machine in enumerate(of_it):
            key, meta = Key("default", f"web-{number}"), {"namespace": "default", "labels": {"app": "web"}}
            spec = {"nodeName": machine["status"]["nodeRef"]["name"], "containers": [{"name": "c", "image": "c"}]}
            plane.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "name": key.name}, "spec": spec})
            ready = [{"type": "Ready", "status": "True"}]
            plane.patch(POD, key, {"status": {"phase": "Running", "conditions": ready}}, "status")
        selector = {"matchLabels": {"app": "web"}}
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
        spec = {"minAvailable": MANY, "selector": selector}
        plane.create(
            POD_DISRUPTION_BUDGET, {**budget, "metadata": {"name": "keep", "namespace": "default"}, "spec": spec}
        )
        plane.settle()

    def blocked(self) -> int:
        going = [machine for machine in self.engine.plane.list(MACHINE) if is_deleting(machine)]
        said = [find((machine.get("status") or {}).get("conditions"), "Drained") or {} for machine in going]
        return sum(condition.get("reason") == "DrainBlocked" for condition in said)


def test_a_hundred_stuck_drains_delay_no_creation() -> None:
    cluster = Cluster()
    plane, reconciles = cluster.engine.plane, cluster.counted.reconciles
    alone = cluster.grow("alone", FEW)
    cluster.grow("old", MANY)
    cluster.one_pod_on_each("old")
    plane.patch(MACHINE_SET, Key("default", "old"), {"spec": {"replicas": 0}})
    cluster.engine.settle_quietly(lambda: cluster.blocked() == MANY)

    looked, evictions = reconciles["old"], plane.writes["evict Pod"]
    seconds = cluster.grow("new", FEW)
    assert seconds <= alone * 1.05
    assert reconciles["new"] <= reconciles["alone"] * 1.25
    looks = (reconciles["old"] - looked) / MANY
    # Three for one: the simulation keeps every timer that was ever set, the running queue one for each key.
    assert looks <= 3 * (seconds / REQUEUE_AFTER + 1), "a stuck drain is looked at now and then, not all the time"
    assert evictions == plane.writes["evict Pod"] == 0, "nobody is asked for in vain"
    assert cluster.blocked() == MANY
    assert len(plane.list(POD)) == MANY
