"""All of it together, against the embedded control plane: hosts become Nodes, and faults cost nothing but time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from controllers.kernel.refs import EVENT, MACHINE, MACHINE_SET, NODE, Key, Kind, Ref
from nodewright.controlplane.app import ControlPlane, ControlPlaneConfig
from nodewright.controlplane.app.faults import Match
from nodewright.controlplane.values import ApiError as ServerError
from nodewright.controlplane.values import ListOptions
from nodewright.crds import load_crds
from nodewright.runtime.cache.reflector import ReflectorOptions
from nodewright.runtime.kube.client import ClientLimits, KubeClient
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.errors import ApiError
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from nodewright.runtime.manager import Manager, run_controllers
from nodewright.runtime.options import RunOptions
from providers.base.registry import Registry
from providers.simulated.provider import registration_for
from providers.simulated.worlds import Worlds
from tests.builders.objects import SIMULATED
from tests.runtime.stub_server import until

FAST: dict[str, Any] = {
    **SIMULATED,
    "bootSeconds": 0.05,
    "joinSeconds": 0.0,
    "deleteSeconds": 0.05,
    "updateSeconds": 0.05,
}
SECONDS = 60.0


class Town:
    """A control plane, a client of its own, and one simulated cloud; controllers are started by the test."""

    def __init__(self, plane: ControlPlane, connection: Connection, client: KubeClient) -> None:
        self.plane = plane
        self.connection = connection
        self.client = client
        self.worlds = Worlds()
        self.options = RunOptions(
            registry=Registry.of(registration_for(self.worlds)),
            simulated_worlds=lambda: self.worlds.all,
            reflector=ReflectorOptions(backoff=0.01, longest_backoff=0.2),
            client=ClientLimits(backoff=0.01),
            grace=5.0,
        )

    @asynccontextmanager
    async def controllers(self) -> AsyncIterator[Manager]:
        stop, ready = asyncio.Event(), asyncio.Event()
        found: list[Manager] = []
        task = asyncio.create_task(
            run_controllers(self.connection, self.options, stop=stop, ready=ready, on_manager=found.append)
        )
        try:
            async with asyncio.timeout(SECONDS):
                await ready.wait()
            yield found[0]
        finally:
            stop.set()
            await asyncio.wait_for(task, SECONDS)

    async def machine_set(self, name: str, replicas: int, **config: Any) -> None:
        labels = {"pool": name}
        spec = {"versions": {"kubelet": "1.34.0"}, "providerConfig": {"value": {**FAST, **config}}}
        body = {
            "apiVersion": MACHINE_SET.api_version,
            "kind": "MachineSet",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }
        await self.client.create(MACHINE_SET, body)

    async def scale(self, name: str, replicas: int) -> None:
        await self.client.scale(Ref(MACHINE_SET, Key("default", name)), replicas)

    def objects(self, kind: Kind) -> list[Any]:
        resource = self.plane.store.resources.find(kind.group, kind.version, kind.plural)
        assert resource is not None
        return list(self.plane.store.list(resource, "", ListOptions()).items)

    def ready(self) -> int:
        return sum((machine.get("status") or {}).get("phase") == "Running" for machine in self.objects(MACHINE))

    async def until(self, holds: Callable[[], bool]) -> None:
        await until(holds, SECONDS)

    def hosts(self) -> int:
        return sum(len(world.hosts()) for world in self.worlds.all.values())


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    async with ControlPlane(ControlPlaneConfig(crds=tuple(load_crds()))) as plane:
        connection = await load_kubeconfig([plane.kubeconfig_path])
        async with KubeClient(connection, "tests") as client:
            yield Town(plane, connection, client)


async def test_a_machine_set_becomes_nodes_grows_shrinks_and_goes(town: Town) -> None:
    async with town.controllers():
        await town.machine_set("ms", 3)
        await town.until(lambda: town.ready() == 3)
        assert {node["spec"]["providerID"] for node in town.objects(NODE)} == {
            machine["spec"]["providerID"] for machine in town.objects(MACHINE)
        }
        await town.scale("ms", 1)
        await town.until(lambda: len(town.objects(MACHINE)) == len(town.objects(NODE)) == town.hosts() == 1)
        await town.client.delete(Ref(MACHINE_SET, Key("default", "ms")))
        await town.until(lambda: not town.objects(MACHINE) and not town.objects(NODE) and not town.hosts())


async def test_watches_that_are_cut_in_the_middle_of_it_all_lose_nothing(town: Town) -> None:
    async with town.controllers():
        await town.machine_set("ms", 8)
        for number in range(1, 7):
            await town.until(lambda: len(town.objects(MACHINE)) >= number)  # noqa: B023  (awaited at once)
            town.plane.faults.cut_watches()
            town.plane.faults.cut_watches("machines.cluster.k8s.io", ServerError(410, "Expired", "too old"))
        await town.until(lambda: town.ready() == 8)
        assert len(town.objects(MACHINE)) == town.hosts() == 8


async def test_creates_whose_answers_are_lost_make_no_second_machine(town: Town) -> None:
    town.plane.faults.lose_answer(Match(verb="create", resource="machines.cluster.k8s.io"), times=4)
    async with town.controllers():
        await town.machine_set("ms", 6)
        await town.until(lambda: town.ready() == 6)
        assert town.plane.faults.hits == 4
        assert len(town.objects(MACHINE)) == town.hosts() == 6


async def test_a_server_that_refuses_for_a_while_is_waited_for(town: Town) -> None:
    async with town.controllers():
        town.plane.faults.answer(ServerError.too_many_requests("slow down", 0), Match(verb="create"), times=3)
        town.plane.faults.answer(ServerError(500, "InternalError", "etcd"), Match(verb="patch"), times=5)
        await _create_in_spite_of(town, "ms", 3)
        await town.until(lambda: town.ready() == 3)


async def _create_in_spite_of(town: Town, name: str, replicas: int) -> None:
    for _ in range(5):
        try:
            await town.machine_set(name, replicas)
        except ApiError:
            continue
        return


async def test_after_a_restart_work_goes_on_where_it_was(town: Town) -> None:
    async with town.controllers() as manager:
        await town.machine_set("ms", 5, bootSeconds=0.5)
        await town.until(lambda: len(town.objects(MACHINE)) == 5)
        assert manager.ready
    async with town.controllers():
        await town.until(lambda: town.ready() == 5)
        assert len(town.objects(MACHINE)) == town.hosts() == 5


async def test_an_object_that_was_deleted_while_nobody_watched_is_cleaned_up(town: Town) -> None:
    async with town.controllers():
        await town.machine_set("ms", 2)
        await town.until(lambda: town.ready() == 2)
    await town.client.delete(Ref(MACHINE_SET, Key("default", "ms")))
    async with town.controllers():
        await town.until(lambda: not town.objects(MACHINE) and not town.hosts() and not town.objects(NODE))


async def test_failures_of_the_provider_become_events_and_end_well(town: Town) -> None:
    async with town.controllers():
        await town.machine_set("ms", 3, cloud={"name": "moody", "quota": {"hosts": 2}})
        await town.until(lambda: town.ready() == 2)
        await town.until(lambda: any("QuotaExceeded" in str(event["reason"]) for event in town.objects(EVENT)))
        assert town.hosts() == 2


async def test_nothing_is_written_while_nothing_changes(town: Town) -> None:
    async with town.controllers() as manager:
        await town.machine_set("ms", 3)
        await town.until(lambda: town.ready() == 3)
        machine_sets = town.objects(MACHINE_SET)
        await town.until(lambda: town.objects(MACHINE_SET)[0]["status"].get("readyReplicas") == 3)
        await town.until(lambda: all(c.queue.idle and c.queue.next_due is None for c in manager.controllers))
        assert machine_sets
        before = town.plane.store.resource_version
        for controller in manager.controllers:
            for key in controller._keys():
                controller.queue.add(key)
        await town.until(lambda: all(c.queue.idle for c in manager.controllers))
        assert town.plane.store.resource_version == before, "a second look at a settled world writes nothing"


async def test_the_manager_says_what_it_waits_for(town: Town) -> None:
    town.plane.faults.answer(ServerError(403, "Forbidden", "no"), Match(verb="list", resource="nodes"), times=10_000)
    stop = asyncio.Event()
    found: list[Manager] = []
    task = asyncio.create_task(run_controllers(town.connection, town.options, stop=stop, on_manager=found.append))
    await town.until(lambda: bool(found) and any(p.startswith("nodes: Forbidden") for p in found[0].problems()))
    assert not found[0].ready
    stop.set()
    await asyncio.wait_for(task, SECONDS)
