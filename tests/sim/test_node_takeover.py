"""The simulated kubelets behave as real ones where a host follows another of the same name."""

from __future__ import annotations

from random import Random
from typing import Any

from controllers.kernel.refs import NODE, Key
from nodewright.sim.clock import VirtualClock
from nodewright.sim.kubelets import Kubelets
from nodewright.sim.plane import Plane
from providers.base.contract import Host, HostIdentity, HostRequest, NodeRegistration, Versions
from providers.simulated.config import Cloud
from providers.simulated.world import World
from tests.builders.objects import SIMULATED

CONFIG: dict[str, Any] = {**SIMULATED, "bootSeconds": 5, "joinSeconds": 1, "deleteSeconds": 1}


class Village:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.plane = Plane(self.clock, [], Random(1))
        self.world = World(Cloud(name="sim"), self.clock)
        self.kubelets = Kubelets(self.plane, self.world, self.clock)

    def after(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.kubelets.sync()

    def create(self) -> Host:
        identity = HostIdentity("uid-m-1", "default", "m-1")
        return self.world.create(HostRequest(identity, CONFIG, "hash", Versions("1.34.0"), NodeRegistration()))

    def booted(self) -> Host:
        host = self.create()
        for _ in range(2):
            self.after(10)
        return host

    def node(self) -> dict[str, Any]:
        found = self.plane.get(NODE, Key("", "m-1"))
        assert found is not None
        return dict(found)

    def is_ready(self) -> str:
        return str(next(c["status"] for c in self.node()["status"]["conditions"] if c["type"] == "Ready"))


def test_the_node_of_a_host_that_is_gone_is_silent() -> None:
    village = Village()
    village.world.delete(village.booted().id)
    village.after(10)
    assert village.is_ready() == "Unknown"


def test_a_host_of_the_same_name_takes_the_node_over_and_it_stays_that_of_the_first() -> None:
    village = Village()
    first = village.booted()
    village.world.delete(first.id)
    village.after(10)
    village.booted()
    assert village.is_ready() == "True"
    assert village.node()["spec"]["providerID"] == first.provider_id


def test_it_is_not_silent_though_the_first_host_is_found_gone_only_then() -> None:
    """Seed 505: the Node was called silent on which the next host had begun to report."""
    village = Village()
    village.world.delete(village.booted().id)
    village.clock.advance(2)
    village.booted()
    assert village.is_ready() == "True"
