"""All objects at one resourceVersion, for a backup of a plane that runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson
from aiohttp import web

from nodewright.apiserver.app.commits import Commits
from nodewright.apiserver.store import JournalEntry, Store

PATH = "/nodewright/v1/snapshot"
"""Below none of Kubernetes' own paths. Administrators alone may ask."""


@dataclass(frozen=True, slots=True)
class Snapshots:
    """Serves ``PATH``."""

    store: Store
    commits: Commits

    async def serve(self) -> web.Response:
        """Answer with what is on the disk now. Raises ApiError 507 if it can't be written."""
        self.commits.make_durable()
        revision, entries = int(self.store.resource_version), self.store.snapshot()  # in one turn of the loop
        body = await asyncio.to_thread(_encode, revision, entries)
        return web.Response(body=body, content_type="application/json")


def _encode(revision: int, entries: Sequence[JournalEntry]) -> bytes:
    """JSON by lines: the revision and the number of objects, then each with its place. Stored objects never change."""
    head = orjson.dumps({"revision": revision, "objects": len(entries)})
    return b"\n".join((head, *(orjson.dumps([*entry[:4], entry.obj]) for entry in entries)))


def decode(body: bytes) -> tuple[int, list[JournalEntry]]:
    """Read an answer of ``PATH``. Raises ValueError for one that is cut, or is none."""
    lines = body.split(b"\n")
    try:
        head = orjson.loads(lines[0])
        revision, count = int(head["revision"]), head["objects"]
        entries = list(_entries(lines[1:]))
    except (KeyError, TypeError) as error:
        raise ValueError("the answer is no snapshot") from error
    if len(entries) != count:
        raise ValueError("the answer is cut")
    return revision, entries


def _entries(lines: Sequence[bytes]) -> Iterator[JournalEntry]:
    for line in lines:
        collection, namespace, name, revision, obj = orjson.loads(line)
        yield JournalEntry(collection, namespace, name, revision, obj, orjson.dumps(obj))
