"""Whatever happens between controllers and API server costs time, never a Machine or a host."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from controllers.kernel.refs import MACHINE, MACHINE_SET, NODE, Key, Kind, Obj, Ref, uid_of
from hack.realplane import RealPlane
from nodewright.apiserver.app import APIServer, APIServerConfig
from nodewright.crds import load_crds
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from nodewright.runtime.manager import run_controllers
from tests.realplane import PLANES
from tests.runtime.fault_proxy import WATCH_FAULTS, FaultProxy
from tests.runtime.town import SECONDS, Town

FAULTS = 120


@pytest.fixture(params=PLANES)
async def target(request: pytest.FixtureRequest) -> AsyncIterator[Connection]:
    """The API server behind the proxy."""
    if request.param == "real":
        plane: RealPlane = request.getfixturevalue("real_plane")
        yield await load_kubeconfig([plane.kubeconfig])
        return
    async with APIServer(APIServerConfig(crds=tuple(load_crds()))) as embedded:
        yield await load_kubeconfig([Path(embedded.kubeconfig_path)])


class Witness:
    """Looks past the proxy at objects and hosts; a host too many is noticed when it is there, not only in the end.

    A real plane is shared by the tests of a session: Machines and Nodes that were there ``before`` are not counted.
    """

    def __init__(self, town: Town) -> None:
        self.town = town
        self.before: frozenset[str] = frozenset()

    async def look_around(self) -> None:
        self.before = frozenset([uid_of(obj) for kind in (MACHINE, NODE) for obj in await self.all(kind)])

    async def all(self, kind: Kind) -> list[Obj]:
        return list((await self.town.client.list_page(kind, limit=0)).items)

    def hosts(self) -> Counter[str]:
        worlds = self.town.worlds.all.values()
        return Counter(host.machine_uid for world in worlds for host in world.hosts())

    async def until_ready(self, number: int) -> None:
        """So many Machines, all of them Ready with a host and a Node, and nothing else."""
        async with asyncio.timeout(SECONDS):
            while not await self._ready(number):  # noqa: ASYNC110  (there is no event: it looks past the controllers)
                await asyncio.sleep(0.02)

    async def _ready(self, number: int) -> bool:
        doubled = [uid for uid, hosts in self.hosts().items() if hosts > 1]
        assert not doubled, f"two hosts of one Machine: {doubled}"
        machines, nodes = [
            [obj for obj in await self.all(kind) if uid_of(obj) not in self.before] for kind in (MACHINE, NODE)
        ]
        running = [m for m in machines if (m.get("status") or {}).get("phase") == "Running"]
        hosts = sum(number for uid, number in self.hosts().items() if uid not in self.before)
        return len(machines) == len(running) == len(nodes) == hosts == number


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
async def test_controllers_converge_through_a_bad_line(target: Connection, seed: int) -> None:
    async with KubeClient(target, "witness") as client, FaultProxy(target, Random(seed), FAULTS).serve() as proxy:
        town = Town(None, proxy.connection, client)  # type: ignore[arg-type]  (what it does with a plane is not used)
        witness = Witness(town)
        await witness.look_around()
        stop, ready = asyncio.Event(), asyncio.Event()
        options = replace(town.options, grace=2.0)
        working = asyncio.create_task(run_controllers(proxy.connection, options, stop=stop, ready=ready))
        try:
            async with asyncio.timeout(SECONDS):
                await ready.wait()
            await town.machine_set("ms", 25)
            await witness.until_ready(25)
            await town.scale("ms", 5)
            await witness.until_ready(5)
            assert proxy.done["lost answer"]
            assert {f"watch {fault}" for fault in WATCH_FAULTS} <= proxy.done.keys()
            await town.scale("ms", 0)
            await witness.until_ready(0)
            await client.delete(Ref(MACHINE_SET, Key("default", "ms")))
        finally:
            stop.set()
            await asyncio.wait_for(working, SECONDS)
