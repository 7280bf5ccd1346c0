"""Machines over three zones, through the whole program; zones run out of stock and get more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from controllers.kernel.refs import CLUSTER, MACHINE_DEPLOYMENT, MACHINE_SET
from nodewright.crds import load_crds
from nodewright.runtime.settings.wiring import reconcilers
from nodewright.sim import faults, users
from nodewright.sim.engine import Engine, Scenario
from providers.simulated.config import Cloud

REPLICAS = 30


class Zoned:
    """A MachineDeployment over the zones a, b and c of a cloud that has so much room in each."""

    def __init__(self, **reconciler: int) -> None:
        self.engine = Engine(0, Scenario(replicas=REPLICAS, edits=0, faults=faults.NONE), reconcilers(), load_crds())
        self.stock(**reconciler)
        body = users.deployment(
            REPLICAS, users.Strategy(1, 0, "Replace"), {**users.SIMULATED, "cloud": {"name": "sim"}}
        )
        body["spec"]["failureDomains"] = ["a", "b", "c"]
        self.engine.plane.create(CLUSTER, users.cluster())
        self.engine.plane.create(MACHINE_DEPLOYMENT, body)

    def stock(self, **reconciler: int) -> None:
        self.engine.world.adjust(Cloud(zones=reconciler))

    def until(self, done: Callable[[], bool]) -> None:
        self.engine.settle_quietly(done)

    def ready(self) -> int:
        body = self.engine.plane.get(MACHINE_DEPLOYMENT, users.DEPLOYMENT) or {}
        return int((body.get("status") or {}).get("readyReplicas", 0))

    def hosts(self) -> Counter[str]:
        return Counter(host.failure_domain for host in self.engine.world.hosts())

    def resting(self) -> list[str]:
        (owner,) = self.engine.plane.list(MACHINE_SET)
        return [rest["name"] for rest in (owner.get("status") or {}).get("restingFailureDomains") or ()]


def test_hosts_are_even_where_there_is_room() -> None:
    zoned = Zoned(a=100, b=100, c=100)
    zoned.until(lambda: zoned.ready() == REPLICAS)
    assert zoned.hosts() == {"a": 10, "b": 10, "c": 10}
    assert zoned.resting() == []


def test_what_a_zone_has_no_room_for_goes_to_the_others_and_comes_back_by_no_force() -> None:
    zoned = Zoned(a=100, b=100, c=4)
    began = zoned.engine.clock.elapsed
    zoned.until(lambda: zoned.ready() == REPLICAS)
    assert zoned.hosts() == {"a": 13, "b": 13, "c": 4}
    assert zoned.engine.clock.elapsed - began < 60, "nobody waits for the back-off of a zone that is full"
    zoned.stock(a=100, b=100, c=100)
    zoned.until(lambda: not zoned.resting())
    still = zoned.engine.plane.writes.total()
    zoned.engine.clock.advance(3600)
    zoned.engine.work_off()
    assert zoned.hosts() == {"a": 13, "b": 13, "c": 4}
    assert zoned.engine.plane.writes.total() == still


def test_where_no_zone_has_room_they_wait_in_quiet_and_go_on_when_one_has() -> None:
    zoned = Zoned(a=8, b=8, c=8)
    zoned.until(lambda: zoned.ready() == 24 and zoned.engine.clock.elapsed > 7200)
    before = zoned.engine.plane.writes.total()
    until = zoned.engine.clock.elapsed + 3600
    zoned.until(lambda: zoned.engine.clock.elapsed > until)
    assert zoned.engine.plane.writes.total() == before, "waiting for stock costs no write"
    zoned.stock(a=8, b=100, c=8)
    zoned.until(lambda: zoned.ready() == REPLICAS)
    assert zoned.hosts() == {"a": 8, "b": 14, "c": 8}
