"""Writes to a workload cluster go through here: to the connection of the moment, or nowhere.

A write that was decided a moment before contact was lost must neither reach another cluster nor wait for this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.kernel.refs import Key, Kind, Obj, Ref
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import NoAnswer


class Gate:
    """A Writer (``nodewright.runtime.writes.executor``). ``client`` is None while there is no contact."""

    def __init__(self, title: str) -> None:
        self.client: KubeClient | None = None
        self._title = title

    async def get(self, kind: Kind, key: Key) -> dict[str, Any]:
        return await self._open().get(kind, key)

    async def create(self, kind: Kind, body: Obj) -> dict[str, Any]:
        return await self._open().create(kind, body)

    async def merge_patch(
        self, target: Ref, patch: Mapping[str, Any], *, subresource: str = "", resource_version: str = ""
    ) -> dict[str, Any]:
        client = self._open()
        return await client.merge_patch(target, patch, subresource=subresource, resource_version=resource_version)

    async def scale(self, target: Ref, replicas: int, resource_version: str = "") -> dict[str, Any]:
        return await self._open().scale(target, replicas, resource_version)

    async def delete(
        self,
        target: Ref,
        propagation: str = "Background",
        grace_seconds: int | None = None,
        resource_version: str = "",
    ) -> dict[str, Any]:
        return await self._open().delete(target, propagation, grace_seconds, resource_version)

    async def evict(self, target: Ref, grace_seconds: int | None = None) -> dict[str, Any]:
        return await self._open().evict(target, grace_seconds)

    def _open(self) -> KubeClient:
        if self.client is None:
            raise NoAnswer(f"{self._title} can't be reached", sent=False)
        return self.client
