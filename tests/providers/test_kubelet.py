"""The Node that a simulated host would register."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from providers.base.contract import (
    HostIdentity,
    HostRequest,
    InProgress,
    NeedsReplacement,
    NodeRegistration,
    Taint,
    Versions,
)
from providers.simulated.config import API_VERSION, KIND, Cloud
from providers.simulated.kubelet import node_for, ready_since
from providers.simulated.provider import SimulatedProvider
from providers.simulated.world import World
from tests.providers.clocks import Clock

CONFIG = {"apiVersion": API_VERSION, "kind": KIND, "bootSeconds": 1, "joinSeconds": 1, "updateSeconds": 5}


def request(spec_hash: str = "a", kubelet: str = "1.34.0", **config: Any) -> HostRequest:
    return HostRequest(
        HostIdentity("uid-1", "default", "m-1"),
        {**CONFIG, **config},
        spec_hash,
        Versions(kubelet=kubelet, container_runtime="containerd/2.1.4"),
        NodeRegistration({"pool": "a"}, {"note": "b"}, (Taint("gpu", "NoSchedule"),)),
    )


def booted(**config: Any) -> tuple[Clock, World]:
    clock = Clock()
    world = World(Cloud(name="test"), clock)
    world.create(request(**config))
    clock.forward(1)
    return clock, world


def node(clock: Clock, world: World) -> dict[str, Any]:
    (host,) = world.booted()
    return node_for(host, host.request_at(clock.now), clock.now)


def ready(body: dict[str, Any]) -> dict[str, Any]:
    (condition,) = [c for c in body["status"]["conditions"] if c["type"] == "Ready"]
    return dict(condition)


def test_it_registers_with_what_its_machine_asked_for() -> None:
    body = node(*booted(zone="a", instanceType="sim.large"))
    assert body["metadata"]["name"] == "m-1"
    assert body["metadata"]["labels"]["pool"] == "a"
    assert body["metadata"]["labels"]["topology.kubernetes.io/zone"] == "a"
    assert body["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "sim.large"
    assert body["metadata"]["annotations"] == {"note": "b"}
    assert body["spec"] == {
        "providerID": "simulated://test/sim-000001",
        "taints": [{"key": "gpu", "effect": "NoSchedule"}],
    }


@pytest.mark.parametrize("config", [{}, {"zone": "a"}])
async def test_the_shape_tells_in_which_label_the_node_will_tell_its_failure_domain(config: dict[str, str]) -> None:
    clock = Clock()
    world = World(Cloud(name="test"), clock)
    world.create(replace(request(**config), failure_domain="b"))
    clock.forward(1)
    labels = node(clock, world)["metadata"]["labels"]
    shape = await SimulatedProvider(world).shape({**CONFIG, **config})
    redact = {shape.failure_domain_label: "b"} if shape.failure_domain_label else {}
    assert labels["topology.kubernetes.io/zone"] == ("a" if config else "b")
    assert {**shape.labels, **redact}.items() <= labels.items()
    assert bool(redact) is not bool(config)


def test_its_provider_id_is_the_hosts() -> None:
    clock, world = booted()
    assert node(clock, world)["spec"]["providerID"] == world.hosts()[0].provider_id


def test_its_resources_are_those_of_the_config() -> None:
    body = node(*booted(cpus=8, memory="32Gi", maxPods=30))
    assert body["status"]["capacity"] == {
        "cpu": "8",
        "memory": "32Gi",
        "ephemeral-storage": "20Gi",
        "pods": "30",
    }
    assert body["status"]["allocatable"] == body["status"]["capacity"]


def test_it_becomes_ready_a_moment_after_it_registered() -> None:
    clock, world = booted()
    assert ready(node(clock, world))["status"] == "False"
    clock.forward(1)
    assert ready(node(clock, world))["status"] == "True"


def test_ready_says_since_when_and_does_not_move_with_heartbeats() -> None:
    clock, world = booted()
    clock.forward(1)
    first = ready(node(clock, world))
    clock.forward(300)
    later = ready(node(clock, world))
    assert later["lastTransitionTime"] == first["lastTransitionTime"]
    assert later["lastHeartbeatTime"] > first["lastHeartbeatTime"]


def test_while_it_is_changed_its_kubelet_is_silent_and_then_a_new_one_speaks() -> None:
    clock, world = booted()
    clock.forward(10)
    world.update(request("b", "v1.34.1"), "sim-000001", False)
    silent = node(clock, world)
    assert ready(silent)["status"] == "Unknown"
    assert silent["status"]["nodeInfo"]["kubeletVersion"] == "v1.34.0"
    clock.forward(5)
    changed = node(clock, world)
    assert ready(changed)["status"] == "True"
    assert changed["status"]["nodeInfo"]["kubeletVersion"] == "v1.34.1"
    assert changed["status"]["nodeInfo"]["containerRuntimeVersion"] == "containerd://2.1.4"


def test_a_broken_host_falls_silent() -> None:
    clock, world = booted()
    clock.forward(10)
    world.break_host("uid-1")
    clock.forward(1)
    assert ready(node(clock, world))["status"] == "Unknown"
    (host,) = world.booted()
    assert ready_since(host, clock.now) is None


def test_an_image_is_changed_in_place_and_shown_once_the_change_is_done() -> None:
    clock, world = booted(image="Simulated Linux 1")
    clock.forward(1)
    assert node(clock, world)["status"]["nodeInfo"]["osImage"] == "Simulated Linux 1"
    (host,) = world.list()
    answer = world.update(request("b", image="Simulated Linux 2"), host.id, False)
    assert isinstance(answer, InProgress)
    assert node(clock, world)["status"]["nodeInfo"]["osImage"] == "Simulated Linux 1"
    clock.forward(6)
    assert node(clock, world)["status"]["nodeInfo"]["osImage"] == "Simulated Linux 2"


def test_an_image_takes_another_host_where_updates_are_replacements() -> None:
    _, world = booted(image="Simulated Linux 1", updates="Replace")
    (host,) = world.list()
    wanted = request("b", image="Simulated Linux 2", updates="Replace")
    assert isinstance(world.update(wanted, host.id, True), NeedsReplacement)
