"""Some objects of a kind, as a reflector's source: no right to read all of them is needed, and none of them is held."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from controllers.kernel.refs import Key, Kind
from nodewright.runtime.kube.client import KubeClient, Page


@dataclass(frozen=True, slots=True)
class _End:
    """End of one watch; ``error`` None: the server ended it."""

    error: Exception | None


class Part:
    """The objects ``keys``; a key without a name is all of its namespace. There is at least one.

    Each key is listed and watched apart: a Role can name the objects that may be read (``resourceNames``), and then no
    request may ask for more than one of them.
    """

    def __init__(self, client: KubeClient, keys: Sequence[Key]) -> None:
        self._client = client
        self._keys = tuple(keys)
        self._seen: dict[Key, str] = {}
        """The resourceVersion up to which each key has been followed, where several are."""

    async def list_page(self, kind: Kind, limit: int = 500, continue_: str = "") -> Page:
        """One page; of several keys everything at once: they are few."""
        if len(self._keys) == 1:
            return await self._page(kind, self._keys[0], limit, continue_)
        pages = await asyncio.gather(*(self._page(kind, key, 0, "") for key in self._keys))
        self._seen = {key: page.resource_version for key, page in zip(self._keys, pages, strict=True)}
        return Page([item for page in pages for item in page.items], pages[0].resource_version, "")

    async def watch(self, kind: Kind, resource_version: str, seconds: int = 300) -> AsyncIterator[list[dict[str, Any]]]:
        """As the client's. Each key goes on where its own list or watch ended."""
        if len(self._keys) == 1:
            key = self._keys[0]
            only = self._client.watch(kind, resource_version, seconds, key.namespace, key.name)
            async with aclosing(only) as batches:  # type: ignore[type-var]
                async for found in batches:
                    yield found
            return
        heard: asyncio.Queue[list[dict[str, Any]] | _End] = asyncio.Queue()
        tasks = [asyncio.create_task(self._follow(kind, key, seconds, heard)) for key in self._keys]
        try:
            while not isinstance(batch := await heard.get(), _End):
                yield batch
            if batch.error is not None:
                raise batch.error
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(
        self, kind: Kind, key: Key, seconds: int, heard: asyncio.Queue[list[dict[str, Any]] | _End]
    ) -> None:
        """The end of one is the end of all: the next watches go on from there."""
        error: Exception | None = None
        try:
            batches = self._client.watch(kind, self._seen[key], seconds, key.namespace, key.name)
            async with aclosing(batches) as found:  # type: ignore[type-var]
                async for batch in found:
                    heard.put_nowait(batch)
                    for event in batch:
                        version = ((event.get("object") or {}).get("metadata") or {}).get("resourceVersion")
                        self._seen[key] = str(version) if version else self._seen[key]
        except Exception as raised:
            error = raised
        heard.put_nowait(_End(error))

    async def _page(self, kind: Kind, key: Key, limit: int, continue_: str) -> Page:
        return await self._client.list_page(kind, limit, continue_, key.namespace, key.name)
