"""One object read by its name again and again, as a reflector's source: no right to list or watch its kind is needed.

A ClusterRole can grant ``get`` of Secrets without their names becoming known; ``list`` and ``watch`` show them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from controllers.kernel.refs import Key, Kind, Obj, resource_version_of, uid_of
from nodewright.runtime.cache.reflector import Source
from nodewright.runtime.kube.client import KubeClient, Page
from nodewright.runtime.kube.errors import ApiError

FIRST_PAUSE = 0.5
"""Seconds between two reads after a change, and at the start: what is being set up changes soon again."""
_GROWTH = 1.5


class Polled(Source):
    """The object ``key``. ``pause``: seconds between two reads while nothing changes, reached step by step."""

    def __init__(self, client: KubeClient, key: Key, pause: float) -> None:
        self._client = client
        self._key = key
        self._longest = pause
        self._pause = min(FIRST_PAUSE, pause)
        self._known: Obj | None = None

    async def list_page(self, kind: Kind, limit: int = 500, continue_: str = "") -> Page:
        self._known = found = await self._read(kind)
        self._pause = min(FIRST_PAUSE, self._longest)
        return Page([dict(found)] if found is not None else [], _version(found), "")

    async def watch(self, kind: Kind, resource_version: str, seconds: int = 300) -> AsyncIterator[list[dict[str, Any]]]:
        """An empty batch is a sign of life: the object was read, and is as it was."""
        yield []
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while clock() < until:
            await asyncio.sleep(self._pause)
            before, found = self._known, await self._read(kind)
            self._known = found
            if _identity(found) == _identity(before):
                self._pause = min(self._pause * _GROWTH, self._longest)
                yield []
                continue
            self._pause = min(FIRST_PAUSE, self._longest)
            yield list(_events(before, found))

    async def _read(self, kind: Kind) -> Obj | None:
        try:
            return await self._client.get(kind, self._key)
        except ApiError as error:
            if error.not_found:
                return None
            raise


def _events(before: Obj | None, found: Obj | None) -> list[dict[str, Any]]:
    if found is None:
        return [{"type": "DELETED", "object": dict(before or {})}]
    return [{"type": "ADDED" if before is None else "MODIFIED", "object": dict(found)}]


def _identity(obj: Obj | None) -> tuple[str, str] | None:
    return None if obj is None else (uid_of(obj), resource_version_of(obj))


def _version(obj: Obj | None) -> str:
    """A reflector lists again without one."""
    return resource_version_of(obj) if obj is not None else "none"
