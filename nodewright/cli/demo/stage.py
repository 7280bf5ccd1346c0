"""What the demo does to the cluster and how it looks at it: as any client would, through the API."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, NODE, Key, Kind, Ref
from nodewright.cli.cluster.snapshot import read_cluster
from nodewright.cli.demo.picture import Picture, take
from nodewright.cli.exits import CliError
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError

NAMESPACE = "default"
LOOK_SECONDS = 0.1
PATIENCE_SECONDS = 300.0

Watcher = Callable[[Picture], None]


class Stage:
    def __init__(self, client: KubeClient, watcher: Watcher) -> None:
        self._client = client
        self._watcher = watcher
        self.picture = Picture()

    async def look(self) -> Picture:
        self.picture = take(await read_cluster(self._client))
        self._watcher(self.picture)
        return self.picture

    async def until(self, done: Callable[[Picture], bool], what: str) -> float:
        """Watch until ``done``; the seconds it took. Raises CliError when patience ends."""
        started = time.monotonic()
        while not done(await self.look()):
            if time.monotonic() - started > PATIENCE_SECONDS:
                left = "; ".join(f"{m.name}: {m.state} {m.reason}".strip() for m in self.picture.machines)
                raise CliError(f"waited {PATIENCE_SECONDS:.0f} s for {what}; there is: {left or 'nothing'}")
            await asyncio.sleep(LOOK_SECONDS)
        return time.monotonic() - started

    async def apply(self, objects: Iterable[dict[str, Any]]) -> None:
        """Create what is not there and leave what is."""
        for obj in objects:
            obj["metadata"].setdefault("namespace", NAMESPACE)
            try:
                await self._client.create(_KINDS[obj["kind"]], obj)
            except ApiError as error:
                if not error.already_exists:
                    raise

    async def scale(self, deployment: str, replicas: int) -> None:
        await self._client.scale(Ref(MACHINE_DEPLOYMENT, Key(NAMESPACE, deployment)), replicas)

    async def patch(self, kind: Kind, name: str, patch: dict[str, Any]) -> None:
        await self._client.merge_patch(Ref(kind, Key(NAMESPACE, name)), patch)

    async def delete(self, kind: Kind, name: str) -> None:
        """Prints nothing of what is gone already."""
        try:
            await self._client.delete(Ref(kind, Key(NAMESPACE, name)))
        except ApiError as error:
            if not error.not_found:
                raise

    async def clear(self) -> None:
        """Remove what an earlier demo in the same folder has left."""
        picture = await self.look()
        for deployment in picture.deployments:
            await self.delete(MACHINE_DEPLOYMENT, deployment.name)
        for name in picture.sets:
            await self.delete(MACHINE_SET, name)
        for machine in picture.machines:
            await self.delete(MACHINE, machine.name)
        for name in picture.clusters:
            await self.delete(CLUSTER, name)
        await self.until(lambda p: p.empty, "what an earlier demo has left to go")

    async def nodes(self) -> int:
        return len((await self._client.list_page(NODE)).items)


_KINDS = {kind.name: kind for kind in (CLUSTER, MACHINE_DEPLOYMENT, MACHINE)}
