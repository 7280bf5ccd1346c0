"""Some objects of a kind, as a reflector's source: no right to read all of them is needed, and none of them is held."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from controllers.kernel.refs import Key, Kind
from nodewright.runtime.kube.client import KubeClient, Page


class Part:
    """The object ``key``, or without a name all of its namespace."""

    def __init__(self, client: KubeClient, key: Key) -> None:
        self._client = client
        self._key = key

    async def list_page(self, kind: Kind, limit: int = 500, continue_: str = "") -> Page:
        return await self._client.list_page(kind, limit, continue_, self._key.namespace, self._key.name)

    def watch(self, kind: Kind, resource_version: str, seconds: int = 300) -> AsyncIterator[list[dict[str, Any]]]:
        return self._client.watch(kind, resource_version, seconds, self._key.namespace, self._key.name)
