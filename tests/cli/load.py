"""Writes as fast as they are answered, with a ledger of what the server has acknowledged."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from controllers.kernel.refs import MACHINE_DEPLOYMENT, Key, Kind, Ref
from nodewright.runtime.kube.client import ClientLimits, KubeClient
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.errors import ApiError, NoAnswer

CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")
NAMESPACE = "default"
MOST_REPLICAS = 8
WRITERS = 8


@dataclass
class AckedWrites:
    """``kept``: name → (uid, value) that were acknowledged last. ``gone``: acknowledged deletions.

    ``unsure``: names whose last write got no answer: it may have happened or not. ``replicas``: what the deployment may
    ask for now (one number, or two while the last change is unsure).
    """

    kept: dict[str, tuple[str, str]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    replicas: set[int] = field(default_factory=lambda: {3})
    newest_version: int = 0
    acknowledged: int = 0
    _at: int = 0
    _enough: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, enough: asyncio.Event, at: int) -> None:
        """Set ``enough`` once ``at`` writes are acknowledged in all."""
        self._enough, self._at = enough, at

    def count(self) -> None:
        self.acknowledged += 1
        if self.acknowledged >= self._at:
            self._enough.set()

    def saw(self, obj: dict[str, Any]) -> None:
        self.count()
        version = (obj.get("metadata") or {}).get("resourceVersion")
        self.newest_version = max(self.newest_version, int(version or 0))


class Load:
    """Eight writers on small objects and one that scales a MachineDeployment up and down."""

    def __init__(self, acked: AckedWrites, random: Random, names: count[int]) -> None:
        self.acked = acked
        self._random = random
        self._names = names

    async def run(self, connection: Connection, enough: asyncio.Event, writes: int) -> None:
        """Write until the server no longer answers; sets ``enough`` after so many acknowledged writes."""
        self.acked.tell(enough, self.acked.acknowledged + writes)
        async with KubeClient(connection, "load", ClientLimits(attempts=1, request_timeout=4)) as client:
            writers = [self._write(client) for _ in range(WRITERS)]
            await asyncio.gather(*writers, self._scale(client))
        enough.set()  # also if the server gave up before

    async def _write(self, client: KubeClient) -> None:
        try:
            while True:
                await self._one_life(client)
        except (NoAnswer, ApiError):
            return

    async def _one_life(self, client: KubeClient) -> None:
        """A ConfigMap that is created, changed and, every third, deleted."""
        acked, number = self.acked, next(self._names)
        name = f"load-{number}"
        ref = Ref(CONFIG_MAP, Key(NAMESPACE, name))
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "data": {"v": "0"},
        }
        acked.unsure.add(name)
        made = await client.create(CONFIG_MAP, body)
        acked.saw(made)
        acked.kept[name] = (made["metadata"]["uid"], "0")
        changed = await client.merge_patch(ref, {"data": {"v": "1"}})
        acked.saw(changed)
        acked.kept[name] = (made["metadata"]["uid"], "1")
        if number % 3 == 0:
            await client.delete(ref)
            acked.count()
            del acked.kept[name]
            acked.gone.add(name)
        acked.unsure.discard(name)

    async def _scale(self, client: KubeClient) -> None:
        ref = Ref(MACHINE_DEPLOYMENT, Key(NAMESPACE, "workers"))
        try:
            while True:
                wanted = self._random.randint(0, MOST_REPLICAS)
                self.acked.replicas.add(wanted)
                self.acked.saw(await client.scale(ref, wanted))
                self.acked.replicas = {wanted}
                await asyncio.sleep(self._random.uniform(0, 0.5))
        except (NoAnswer, ApiError):
            return
