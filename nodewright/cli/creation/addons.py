"""Add-ons of a new cluster: applied in order as soon as its API answers, since Nodes become Ready by some of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from controllers.kernel.refs import NAMESPACE, Key, Kind, key_of
from nodewright.cli.creation.applying import Applier
from nodewright.cli.creation.readiness import waits
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.errors import ApiError, ConfigurationError, NoAnswer

RETRY_SECONDS = 1.0
_LAST_NAMESPACE = "kube-system"

Reach = Callable[[], Awaitable[Connection | None]]
"""The way to the cluster; None while there is none."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class AddOn:
    """One file."""

    file: str
    objects: tuple[dict[str, Any], ...]


class AddOns:
    def __init__(self, addons: Sequence[AddOn], reach: Reach, say: Say) -> None:
        self._addons = addons
        self._reach = reach
        self._say = say
        self._applied: dict[str, list[tuple[Kind, dict[str, Any]]]] = {}
        self.waits_for = "for the new cluster's API"
        """What is going on, for who asks why it takes so long."""

    async def apply(self) -> None:
        """All of them, however often the cluster fails to answer. Raises CliError for what it refuses."""
        while len(self._applied) < len(self._addons):
            try:
                connection = await self._reach()
                if connection is not None:
                    await self._apply_in(connection)
                    return
            except (ApiError, NoAnswer, ConfigurationError) as error:
                self.waits_for = f"for the new cluster's API: {error}"
            await asyncio.sleep(RETRY_SECONDS)

    async def until_at_work(self) -> None:
        """Wait for what they start: Deployments, DaemonSets, StatefulSets, Jobs, CRDs and APIServices."""
        for file, applied in self._applied.items():
            for kind, obj in applied:
                await self._until_at_work(file, kind, obj)

    async def _apply_in(self, connection: Connection) -> None:
        async with KubeClient(connection, "cli") as client:
            await client.get(NAMESPACE, Key("", _LAST_NAMESPACE))  # a young API server answers before it has made them
            applier = Applier(client)
            for addon in self._addons:
                if addon.file in self._applied:
                    continue
                self.waits_for = f"to apply {addon.file}"
                self._applied[addon.file] = [await applier.apply(obj) for obj in addon.objects]
                self._say(f"add-on {addon.file} applied")

    async def _until_at_work(self, file: str, kind: Kind, obj: dict[str, Any]) -> None:
        while True:
            try:
                connection = await self._reach()
                if connection is not None and not await self._waits(connection, file, kind, obj):
                    return
            except (ApiError, NoAnswer, ConfigurationError) as error:
                self.waits_for = f"for {file}: {error}"
            await asyncio.sleep(RETRY_SECONDS)

    async def _waits(self, connection: Connection, file: str, kind: Kind, obj: dict[str, Any]) -> str:
        async with KubeClient(connection, "cli") as client:
            why = waits(await client.get(kind, key_of(obj)))
        self.waits_for = f"for {file}: {kind.name} {key_of(obj)}: {why}"
        return why
