"""A MachineClass that many Machines share is edited: through the whole program no budget is broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, Key
from nodewright.crds import load_crds
from nodewright.runtime.settings.wiring import reconcilers
from nodewright.sim import faults, users
from nodewright.sim.engine import Engine, Scenario
from providers.base.contract import HostState

REPLICAS = 5
CLASS = Key(users.NAMESPACE, "shared")


class Shared:
    """A MachineDeployment of a class, all Ready; ``most`` is the most hosts that were seen in change at once."""

    def __init__(self, in_place: str, surge: int, unavailable: int) -> None:
        self.engine = Engine(0, Scenario(replicas=REPLICAS, edits=0, faults=faults.NONE), reconcilers(), load_crds())
        config = {**users.SIMULATED, "updateSeconds": 3, "cpus": 1, "cloud": {"name": "sim"}}
        meta = {"name": CLASS.name, "namespace": CLASS.namespace}
        body = {"apiVersion": MACHINE_CLASS.api_version, "kind": "MachineClass", "metadata": meta}
        owner = users.deployment(REPLICAS, users.Strategy(surge, unavailable, "InPlace", in_place), {})
        owner["spec"]["template"]["spec"]["providerConfig"] = {"valueFrom": {"machineClass": {"name": CLASS.name}}}
        for kind, obj in ((CLUSTER, users.cluster()), (MACHINE_CLASS, {**body, "providerConfig": config})):
            self.engine.plane.create(kind, obj)
        self.engine.plane.create(MACHINE_DEPLOYMENT, owner)
        self.most = self.fewest = 0
        self.until(lambda: self.ready() == REPLICAS)

    def edit(self) -> None:
        self.most, self.fewest = 0, REPLICAS
        self.engine.plane.patch(MACHINE_CLASS, CLASS, {"providerConfig": {"cpus": 2}})

    def until(self, done: Callable[[], bool]) -> None:
        def look() -> bool:
            states = Counter(host.state for host in self.engine.world.hosts())
            self.most = max(self.most, states[HostState.UPDATING])
            self.fewest = min(self.fewest, states[HostState.RUNNING])
            return done()

        self.engine.settle_quietly(look)

    def pass_time(self, seconds: float) -> None:
        """Whatever falls due in them is done. Nothing need be: where all is at rest no timer is left."""
        end = self.engine.clock() + timedelta(seconds=seconds)
        self.engine.work_off()
        while self.engine.clock() < end:
            upcoming = self.engine.next_moment()
            self.engine.clock.advance_to(end if upcoming is None else min(upcoming, end))
            self.engine.work_off()

    def ready(self) -> int:
        body: Any = self.engine.plane.get(MACHINE_DEPLOYMENT, users.DEPLOYMENT) or {}
        return int((body.get("status") or {}).get("readyReplicas", 0))

    def cpus(self) -> Counter[int]:
        found = (self.engine.world.host(host.machine_uid) for host in self.engine.world.hosts())
        return Counter(host.request_at(self.engine.clock()).config["cpus"] for host in found if host is not None)


def test_in_place_hosts_follow_one_budget_at_a_time() -> None:
    shared = Shared("Prefer", 0, 1)
    uids = {m["metadata"]["uid"] for m in shared.engine.plane.list(MACHINE)}
    shared.edit()
    shared.until(lambda: shared.cpus() == {2: REPLICAS})
    assert shared.most == 1
    assert {m["metadata"]["uid"] for m in shared.engine.plane.list(MACHINE)} == uids


def test_in_place_without_an_unavailable_one_the_surge_takes_its_place() -> None:
    shared = Shared("Prefer", 1, 0)
    shared.edit()
    shared.until(lambda: shared.cpus() == {2: REPLICAS} and shared.ready() == REPLICAS)
    assert shared.most == 1
    assert shared.fewest >= REPLICAS


def test_where_machines_are_replaced_nothing_changes_until_the_rollout_is_restarted() -> None:
    shared = Shared("Never", 1, 0)
    shared.edit()
    shared.pass_time(120)
    assert shared.cpus() == {1: REPLICAS}
    restart = {"nodewright.dev/restartedAt": "2026-06-01T12:00:00Z"}
    template = {"spec": {"template": {"metadata": {"annotations": restart}}}}
    shared.engine.plane.patch(MACHINE_DEPLOYMENT, users.DEPLOYMENT, template)
    shared.until(lambda: shared.cpus() == {2: REPLICAS})
    assert shared.fewest >= REPLICAS
