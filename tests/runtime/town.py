"""A control plane with a simulated cloud, in which a test starts the controllers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from controllers.kernel.refs import MACHINE, MACHINE_SET, Key, Kind, Ref
from nodewright.apiserver.app import APIServer
from nodewright.apiserver.values import ListOptions
from nodewright.runtime.cache.reflector import ReflectorOptions
from nodewright.runtime.kube.client import ClientLimits, KubeClient
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.manager import Manager, run_controllers
from nodewright.runtime.settings.options import RunOptions
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
SECONDS = 300.0


class Town:
    """A control plane, a client of its own, and one simulated cloud; controllers are started by the test."""

    def __init__(self, plane: APIServer, connection: Connection, client: KubeClient) -> None:
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
