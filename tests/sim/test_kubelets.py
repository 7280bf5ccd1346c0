"""The simulation's kubelets: each is heard when it has something to say, in an order that follows from the seed."""

from __future__ import annotations

from random import Random

from controllers.kernel.refs import NODE
from nodewright.crds import load_crds
from nodewright.sim.clock import VirtualClock
from nodewright.sim.kubelets import Kubelets
from nodewright.sim.plane import Plane
from nodewright.sim.users import SIMULATED
from providers.base.contract import HostIdentity, HostRequest
from providers.simulated.config import Cloud
from providers.simulated.world import World

NAMES = [f"m-{number:02}" for number in range(12)]


class Town:
    """Twelve hosts that boot in 5 s and are Ready 5 s later."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.plane = Plane(self.clock, load_crds(), Random(0))
        self.world = World(Cloud(name="sim"), self.clock)
        self.kubelets = Kubelets(self.plane, self.world, self.clock)
        for name in NAMES:
            config = {**SIMULATED, "bootSeconds": 5, "joinSeconds": 5}
            self.world.create(HostRequest(HostIdentity(f"uid-{name}", "default", name), config, "h"))

    def ready(self) -> dict[str, str]:
        nodes = {node["metadata"]["name"]: node for node in self.plane.list(NODE)}
        return {n: c["status"] for n, o in nodes.items() for c in o["status"]["conditions"] if c["type"] == "Ready"}

    def after(self, seconds: float) -> dict[str, str]:
        self.clock.advance(seconds)
        self.kubelets.sync()
        return self.ready()


def test_they_are_heard_whenever_something_changes_by_time_or_by_somebody() -> None:
    town = Town()
    assert town.after(1) == {}
    assert town.after(5) == dict.fromkeys(NAMES, "False")
    assert town.after(5) == dict.fromkeys(NAMES, "True")
    town.world.stop_host("uid-m-03")
    assert town.after(1) == {**dict.fromkeys(NAMES, "True"), "m-03": town.ready()["m-03"]}
    assert town.ready()["m-03"] != "True"


def test_those_that_fall_silent_together_do_so_by_name() -> None:
    town = Town()
    town.after(20)
    before = {node["metadata"]["name"]: int(node["metadata"]["resourceVersion"]) for node in town.plane.list(NODE)}
    town.kubelets.is_silent = lambda _host: True
    town.kubelets.requeue_after()
    assert town.after(1) == dict.fromkeys(NAMES, "Unknown")
    after = {node["metadata"]["name"]: int(node["metadata"]["resourceVersion"]) for node in town.plane.list(NODE)}
    assert all(after[name] > before[name] for name in NAMES)
    assert sorted(NAMES, key=after.__getitem__) == NAMES
