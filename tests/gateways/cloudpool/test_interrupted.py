"""The cloudpool server is killed between the writes of a request: the size is right, at once and after the retry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, Key, Ref
from nodewright.gateways.cloudpool.instances import Instances, PoolConfig
from nodewright.gateways.cloudpool.listener import ListenerOptions
from nodewright.gateways.cloudpool.server import CloudpoolServer, ServerOptions
from nodewright.runtime.kube.client import KubeClient
from tests.builders.objects import machine, machine_deployment, owner_reference
from tests.gateways.cloudpool.test_server import Client, comes
from tests.runtime.town import Town

WORKERS = PoolConfig("MachineSet", "default", "workers")


@dataclass(frozen=True)
class Request:
    """``before``: a request that has gone through. ``size``: what is desired afterwards, ``replicas`` of the set."""

    path: str
    body: dict[str, Any]
    size: int
    replicas: int
    retried: tuple[int, ...] = (200,)
    before: tuple[str, dict[str, Any]] | None = None


def membership(active: bool, evictable: bool) -> dict[str, Any]:
    return {"machineId": "a", "membershipStatus": {"active": active, "evictable": evictable}}


STATUS = "/pool/membershipStatus"
REQUESTS = {
    "set aside": Request(STATUS, membership(False, False), 2, 3),
    "back again": Request(STATUS, membership(True, True), 2, 2, before=(STATUS, membership(False, False))),
    "given up": Request(STATUS, membership(False, True), 2, 2, (200, 404), (STATUS, membership(False, False))),
    "detach": Request("/pool/detach", {"machineId": "b", "decrementDesiredSize": True}, 1, 1, (200, 404)),
    "attach": Request("/pool/attach", {"machineId": "stray"}, 3, 3),
}
WRITES = ("merge_patch", "delete")
"""Of a client; a scale is a patch too."""


class Fuse:
    """After ``left`` writes the process is dead: it asks for nothing any more."""

    def __init__(self, client: KubeClient, left: int) -> None:
        self.blown, self.buried = asyncio.Event(), asyncio.Event()
        self._left = left
        for name in WRITES:
            setattr(client, name, self._fused(getattr(client, name)))

    def _fused(self, usual: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **named: Any) -> Any:
            if self._left == 0:
                self.blown.set()
                await self.buried.wait()
                raise asyncio.CancelledError
            self._left -= 1
            return await usual(*args, **named)

        return call


@asynccontextmanager
async def served(
    town: Town, writes: int | None = None, pool: PoolConfig = WORKERS
) -> AsyncIterator[tuple[Client, Fuse]]:
    """``writes``: how many the server lives for; None: for ever."""
    async with KubeClient(town.connection, "cloudpool") as kube:
        fuse = Fuse(kube, -1 if writes is None else writes)
        server = CloudpoolServer(kube, Instances({"workers": pool}), ServerOptions(ListenerOptions(port=0), 30.0))
        async with server, aiohttp.ClientSession() as session:
            await server._watching.current(60.0)
            yield Client(server.url, session, town.client), fuse


async def populate(town: Town) -> None:
    """A set with two Machines that run, and one that belongs to nobody."""
    await town.machine_set("workers", 2)
    owner = owner_reference(await town.client.get(MACHINE_SET, Key("default", "workers")))
    for name in ("a", "b", "stray"):
        body = machine(name).build()
        meta = {"name": name, "namespace": "default"}
        more = {} if name == "stray" else {"labels": {"pool": "workers"}, "ownerReferences": [owner]}
        created = await town.client.create(MACHINE, {**body, "metadata": {**meta, **more}})
        target = Ref(MACHINE, Key("default", name), created["metadata"]["uid"])
        await town.client.patch_status(target, {"nodeRef": {"kind": "Node", "name": f"node-{name}"}})


CASES = [(name, writes, retried) for name in REQUESTS for writes in range(4) for retried in (True, False)]
QUICK = {("set aside", 1, True), ("detach", 1, True)}


@pytest.mark.parametrize(
    ("name", "writes", "retried"),
    [pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow) for case in CASES],
)
async def test_a_server_that_is_killed_between_two_writes_changes_the_size_once(
    town: Town, name: str, writes: int, retried: bool
) -> None:
    """Without a retry the request has either happened or not: in no case the size is of another request."""
    request = REQUESTS[name]
    await populate(town)
    if request.before is not None:
        async with served(town) as (client, _):
            await client.does(*request.before)
    async with served(town, writes) as (client, fuse):
        before = (await client.size())[0]
        asked = asyncio.create_task(client("POST", request.path, request.body))
        blown = asyncio.create_task(fuse.blown.wait())
        await asyncio.wait({asked, blown}, return_when=asyncio.FIRST_COMPLETED)
        fuse.buried.set()
        blown.cancel()
        await asyncio.gather(asked, blown, return_exceptions=True)

    async with served(town) as (client, _):
        if retried:
            assert (await client("POST", request.path, request.body))[0] in request.retried
            assert (await client.size())[0] == request.size
            assert await client.replicas() == request.replicas
        else:
            await comes(lambda: is_whole(client, request, before))


async def is_whole(client: Client, request: Request, before: int) -> bool:
    """All of the request, or nothing of it; desired size and replicas agree on which."""
    size, replicas = (await client.size())[0], await client.replicas()
    nothing = 2 if request.before is None else 3
    return (size, replicas) in {(request.size, request.replicas), (before, nothing)}


async def test_attaching_to_a_machine_deployment_is_refused_with_what_to_do_instead(town: Town) -> None:
    await populate(town)
    body = machine_deployment("workers").build()
    await town.client.create(MACHINE_DEPLOYMENT, {**body, "metadata": {"name": "workers", "namespace": "default"}})
    pool = PoolConfig("MachineDeployment", "default", "workers")
    async with served(town, pool=pool) as (client, _):
        status, told = await client("POST", "/pool/attach", {"machineId": "stray"})
        assert status == 400
        assert told["message"] == (
            "illegal input: machine stray cannot be attached: the pool is MachineDeployment default/workers, which "
            "makes all of its Machines itself"
        )
        assert told["detail"].startswith("ask for a larger size")
        assert (await client("POST", "/pool/attach", {"machineId": "nobody"}))[0] == 404
