"""Simulated hosts as Nodes: registered, updated, called NotReady when gone, never deleted by their kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controllers.kernel.refs import NODE, Key, Ref, key_of
from nodewright.apiserver.app import APIServer, APIServerConfig
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from nodewright.runtime.simulated.kubelets import USER_AGENT, Kubelets
from providers.base.contract import HostIdentity, HostRequest, NodeRegistration, Taint, Versions
from providers.simulated.config import Cloud
from providers.simulated.worlds import Worlds
from tests.builders.objects import SIMULATED

CONFIG: dict[str, Any] = {**SIMULATED, "bootSeconds": 10, "joinSeconds": 5, "deleteSeconds": 10, "updateSeconds": 10}


class Village:
    """One cloud on a clock that the test moves, and its kubelets, who look when the test says."""

    def __init__(self, plane: APIServer, client: KubeClient) -> None:
        self.plane = plane
        self.client = client
        self.now = datetime(2026, 6, 1, tzinfo=UTC)
        self.worlds = Worlds(lambda: self.now)
        self.world = self.worlds.open(Cloud(name="default"))
        self.silence = 0.0
        self.kubelets = self.new_kubelets()

    def new_kubelets(self) -> Kubelets:
        kubelets = Kubelets(self.client, lambda: self.worlds.all, lambda: self.now)
        kubelets._time = lambda: self.now.timestamp()  # noqa: PLW0108 (now moves)  # type: ignore[method-assign]
        return kubelets

    async def after(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        await self.kubelets.tick()

    async def node(self, name: str = "m-1") -> dict[str, Any]:
        return await self.client.get(NODE, Key("", name))

    async def ready(self, name: str = "m-1") -> dict[str, str]:
        conditions: list[dict[str, str]] = (await self.node(name))["status"]["conditions"]
        return next(c for c in conditions if c["type"] == "Ready")

    async def is_ready(self, name: str = "m-1") -> str:
        return (await self.ready(name))["status"]

    def writes(self) -> int:
        return self.plane.stats.count(user_agent=USER_AGENT, verbs=["create", "update", "patch", "delete"])


def request(name: str = "m-1", kubelet: str = "1.34.0", **config: Any) -> HostRequest:
    node = NodeRegistration({"pool": "a"}, {"note": "b"}, (Taint("t", "NoSchedule"),))
    identity = HostIdentity(f"uid-{name}", "default", name)
    return HostRequest(identity, {**CONFIG, **config}, f"hash-{kubelet}", Versions(kubelet), node)


@pytest.fixture
async def village() -> AsyncIterator[Village]:
    async with APIServer(APIServerConfig()) as plane:
        connection = await load_kubeconfig([plane.kubeconfig_path])
        async with KubeClient(connection, "tests") as client:
            yield Village(plane, client)


async def test_a_host_that_has_booted_registers_its_node_with_all_that_was_asked_for(village: Village) -> None:
    host = village.world.create(request())
    await village.after(9)
    with pytest.raises(ApiError):
        await village.node()
    await village.after(2)
    node = await village.node()
    assert node["spec"]["providerID"] == host.provider_id
    assert node["metadata"]["labels"]["pool"] == "a"
    assert node["metadata"]["annotations"]["note"] == "b"
    assert node["spec"]["taints"][0]["key"] == "t"
    assert await village.is_ready() == "False"
    await village.after(5)
    assert await village.is_ready() == "True"


async def test_nothing_is_written_while_nothing_changes(village: Village) -> None:
    village.world.create(request())
    await village.after(20)
    before = village.writes()
    for _ in range(5):
        await village.after(60)
    assert village.writes() == before


async def test_an_update_in_place_shows_in_the_node(village: Village) -> None:
    host = village.world.create(request())
    await village.after(20)
    village.world.update(request(kubelet="1.35.0"), host.id, drained=True)
    await village.after(1)
    await village.after(2)
    assert await village.is_ready() == "Unknown"
    await village.after(10)
    assert await village.is_ready() == "True"
    assert (await village.node())["status"]["nodeInfo"]["kubeletVersion"] == "v1.35.0"


async def test_what_others_wrote_on_the_node_is_kept(village: Village) -> None:
    host = village.world.create(request())
    await village.after(20)
    node = await village.node()
    await village.client.merge_patch(Ref(NODE, Key("", "m-1")), {"spec": {"unschedulable": True}})
    village.world.update(request(kubelet="1.35.0"), host.id, drained=True)
    await village.after(20)
    after = await village.node()
    assert after["spec"]["unschedulable"] is True
    assert after["metadata"]["uid"] == node["metadata"]["uid"]


async def test_the_node_of_a_host_that_is_gone_becomes_not_ready_and_stays(village: Village) -> None:
    village.world.create(request())
    await village.after(20)
    village.world.lose_host("uid-m-1")
    await village.after(0)
    assert await village.is_ready() == "True", "a short silence means nothing"
    await village.after(2)
    assert await village.is_ready() == "Unknown"
    before = village.writes()
    await village.after(60)
    assert village.writes() == before


async def test_a_silent_node_keeps_the_time_of_its_last_heartbeat(village: Village) -> None:
    """As the node lifecycle controller has it: who reported last is told by that."""
    village.world.create(request())
    await village.after(20)
    beat = (await village.ready())["lastHeartbeatTime"]
    village.world.lose_host("uid-m-1")
    await village.after(0)
    await village.after(2)
    assert (await village.ready())["lastHeartbeatTime"] == beat


async def test_a_node_that_was_removed_with_its_host_is_not_mourned(village: Village) -> None:
    village.world.create(request())
    await village.after(20)
    village.world.lose_host("uid-m-1")
    await village.client.delete(Ref(NODE, Key("", "m-1")))
    for _ in range(3):
        await village.after(2)
    with pytest.raises(ApiError):
        await village.node()


async def test_a_new_host_of_that_name_waits_until_the_old_node_is_gone(village: Village) -> None:
    village.world.create(request())
    await village.after(20)
    old = await village.node()
    village.world.lose_host("uid-m-1")
    await village.after(2)
    await village.after(2)
    host = village.world.create(request())
    await village.after(20)
    assert (await village.node())["metadata"]["uid"] == old["metadata"]["uid"]
    await village.client.delete(Ref(NODE, Key("", "m-1")))
    await village.after(5)
    assert (await village.node())["spec"]["providerID"] == host.provider_id


async def test_a_restart_remembers_its_nodes(village: Village) -> None:
    for name in ("m-1", "m-2"):
        village.world.create(request(name))
    await village.after(20)
    before = village.writes()
    village.world.lose_host("uid-m-2")
    village.kubelets = village.new_kubelets()
    await village.kubelets._remember_nodes()
    await village.after(1)
    await village.after(2)
    assert await village.is_ready("m-1") == "True"
    assert await village.is_ready("m-2") == "Unknown"
    assert village.writes() - before <= 2


async def test_what_a_host_runs_by_now_is_said_by_whoever_has_not_seen_its_node_before(village: Village) -> None:
    """Controllers that begin anew while a host is changed know of its cluster only after they have looked."""
    host = village.world.create(request())
    await village.after(20)
    village.world.update(request(kubelet="1.35.0"), host.id, drained=True)
    village.kubelets = village.new_kubelets()
    await village.after(20)
    assert await village.is_ready() == "True"
    assert (await village.node())["status"]["nodeInfo"]["kubeletVersion"] == "v1.35.0"


async def test_conditions_that_others_wrote_stay(village: Village) -> None:
    """As real kubelets report: what a problem detector says of a Node is not theirs to take back."""
    village.world.create(request())
    await village.after(20)
    deadlock = {"type": "KernelDeadlock", "status": "True", "reason": "X", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    said = (await village.node())["status"]["conditions"]
    await village.client.patch_status(Ref(NODE, Key("", "m-1")), {"conditions": [*said, deadlock]})
    village.kubelets = village.new_kubelets()
    await village.kubelets._remember_nodes()
    await village.after(1)
    conditions = (await village.node())["status"]["conditions"]
    assert deadlock["type"] in {condition["type"] for condition in conditions}
    assert await village.is_ready() == "True"


async def test_a_node_that_is_slow_to_write_holds_up_no_other(village: Village) -> None:
    """Each kubelet of real hosts is a program of its own."""
    create, slow = village.client.create, asyncio.Event()

    async def patient(kind: Any, body: dict[str, Any]) -> dict[str, Any]:
        if body["metadata"]["name"] == "m-0":
            await slow.wait()
        return await create(kind, body)

    village.kubelets._client.create = patient  # type: ignore[method-assign, assignment]
    for number in range(3):
        village.world.create(request(f"m-{number}", bootSeconds=0, joinSeconds=0))
    village.now += timedelta(seconds=60)
    async with village.kubelets:
        await until_nodes(village, {"m-1", "m-2"})
        slow.set()
        await until_nodes(village, {"m-0", "m-1", "m-2"})


async def until_nodes(village: Village, names: set[str]) -> None:
    async with asyncio.timeout(30):
        while {key_of(node).name for node in (await village.client.list_page(NODE)).items} != names:  # noqa: ASYNC110  (a list wakes nobody)
            await asyncio.sleep(0.01)
