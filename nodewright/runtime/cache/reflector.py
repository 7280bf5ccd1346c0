"""Keep one store equal to the server: a paged list, then watches from where it ended, for ever.

How a watch ends, and what follows:

| end | then |
|---|---|
| clean (timeout; also how a busy server cuts slow watchers) | watch again from the last resourceVersion |
| silence (a kind that never changes gets no bookmarks) | the same |
| connection broken, garbage, 5xx or 429 (as answer or as ERROR event) | the same after a pause |
| 410 (as answer or as ERROR event), several failures without progress | list anew; what it lacks counts as deleted |
| 401, 403, 404 (the kind is not served yet) | pause, then list anew |
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from time import thread_time
from typing import Any, Protocol

import structlog

from controllers.kernel.refs import Kind
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.paging import Lists, pages
from nodewright.runtime.cache.shapes import Admitted
from nodewright.runtime.kube.client import Page
from nodewright.runtime.kube.errors import (
    AnswerTooLargeError,
    ApiError,
    KubeError,
    SilenceError,
    error_of_event,
)
from nodewright.runtime.telemetry import metrics

_AT_ONCE = 100
"""Objects of a page that are taken in before other tasks get a turn."""
_log = structlog.get_logger("nodewright.reflector")


_CHANGES = frozenset({"ADDED", "MODIFIED", "DELETED"})
_TYPES = _CHANGES | {"BOOKMARK", "ERROR"}


def _read(event: Any) -> tuple[str, dict[str, Any]]:
    """Type and object of a watch event; "unknown" for a type that there is none of (it is a label of a metric)."""
    if not isinstance(event, dict):
        return "unknown", {}
    type_, obj = event.get("type"), event.get("object")
    known = type_ if isinstance(type_, str) and type_ in _TYPES else "unknown"
    return known, obj if isinstance(obj, dict) else {}


class Source(Lists, Protocol):
    """What a reflector needs of a client (``KubeClient`` has it; the simulation brings its own)."""

    def watch(self, kind: Kind, resource_version: str, seconds: int = 300) -> AsyncIterator[list[dict[str, Any]]]: ...


@dataclass(frozen=True, slots=True)
class ReflectorOptions:
    """Times in seconds. ``stale_after``: without any sign of life for so long the kind counts as unread."""

    page_size: int = 500
    watch_seconds: int = 300
    backoff: float = 0.1
    longest_backoff: float = 30.0
    stale_after: float = 180.0
    failures_before_list: int = 5
    outage: float = 30.0
    """A shorter interruption than this is none: what is timed by objects of the kind goes on."""
    batch: int = 200
    """Events taken in before other tasks get a turn, at most."""
    slice: float = 0.005
    """CPU seconds after which they get it in any case: an event wakes many keys, or is of a large object."""
    pause: float = 0.0
    """How long that turn is at least: answering a call takes others several, and they want them soon."""


@dataclass(frozen=True, slots=True)
class Gap:
    """What is known of outages: since when nothing has been heard (None: it is), and when the last one ended.

    Times of the event loop. It is handed from one reflector to the next one of a kind whose connection changed.
    """

    lost_at: float | None = None
    returned_at: float = float("-inf")


class Reflector:
    """One kind. Made in a running event loop; ``run`` until cancelled; ``synced`` is set after the first list.

    ``gap`` is what others knew before.
    """

    def __init__(
        self, source: Source, cache: Cache, kind: Kind, options: ReflectorOptions | None = None, gap: Gap | None = None
    ) -> None:
        self.kind = kind
        self.synced = asyncio.Event()
        self.problem = ""
        """Why the kind is not current just now; "" while it is."""
        self.plain_problem = ""
        """The same without a word that the server wrote."""
        self._page_size = (options or ReflectorOptions()).page_size
        self._source = source
        self._cache = cache
        self._options = options or ReflectorOptions()
        self._version = ""
        self._failures = 0
        self._clock = asyncio.get_running_loop().time
        self._heard_at = float("-inf")
        self._gap = gap or Gap()
        self._random = random.Random()  # noqa: S311  (jitter)
        cache.keep_complete(kind, self)

    @property
    def staleness(self) -> float:
        """Seconds since the last sign of life; infinite before the first list."""
        return self._clock() - self._heard_at

    @property
    def gap(self) -> Gap:
        return self._gap

    @property
    def complete(self) -> bool:
        """True after the first list, while signs of life are younger than ``stale_after``."""
        return self.staleness < self._options.stale_after

    @property
    def current_for(self) -> float | None:
        """Seconds since the last outage of over ``outage`` seconds; infinite without one, None during one."""
        now = self._clock()
        lost_at, returned_at = self._gap.lost_at, self._gap.returned_at
        if lost_at is not None and now - lost_at > self._options.outage:
            return None
        return now - returned_at

    async def run(self) -> None:
        why = "start"
        while True:
            try:
                if not self._version:
                    await self._list(why)
                why = await self._watch()
            except SilenceError:
                why = "silence"
                metrics.of(metrics.WATCH_ENDS, self.kind.name, why).inc()
            except KubeError as error:
                why = self._after(error)
                await self._pause(error)
            except Exception as error:
                _log.exception("reflector failed", kind=self.kind.name)
                why, self._version = "bug", ""
                self.problem = self.plain_problem = f"what the server sent can't be taken in ({type(error).__name__})"
                self._failures += 1
                await self._pause(None)

    async def _list(self, why: str) -> None:
        try:
            await self._list_in_pages(why)
        except AnswerTooLargeError:
            self._page_size = max(1, self._page_size // 4)
            raise

    async def _list_in_pages(self, why: str) -> None:
        objects: list[dict[str, Any] | Admitted] = []
        version, begun = "", False
        try:
            async with contextlib.aclosing(pages(self._source, self.kind, self._page_size)) as listed:
                async for page in listed:
                    version = version or page.resource_version  # the oldest: the watch delivers what happened since
                    begun = True
                    await self._admit(page, objects)
        except ApiError as error:
            if not (error.expired and begun):
                raise
            objects.clear()  # the snapshot was compacted under a slow list: take it in one piece
            page = await self._source.list_page(self.kind, 0)
            version = page.resource_version
            await self._admit(page, objects)
        self._cache.listed(self.kind, objects, version)
        self._version = version
        metrics.of(metrics.LISTS, self.kind.name, why).inc()
        self.synced.set()
        self._heard()

    async def _admit(self, page: Page, objects: list[dict[str, Any] | Admitted]) -> None:
        """In turns, so that the next page is read from the network meanwhile."""
        for first in range(0, len(page.items), _AT_ONCE):
            objects.extend(self._cache.stores[self.kind].admitted(page.items[first : first + _AT_ONCE]))
            await asyncio.sleep(0)

    async def _watch(self) -> str:
        """Follow one watch to its clean end. Raises KubeError for every other end."""
        loop = asyncio.get_running_loop()
        started, before = loop.time(), self._version
        seconds = int(self._options.watch_seconds * self._random.uniform(1.0, 2.0))
        async with contextlib.aclosing(self._source.watch(self.kind, self._version, seconds)) as batches:  # type: ignore[type-var]
            async for batch in batches:
                self._heard()
                await self._take(batch)
        metrics.of(metrics.WATCH_ENDS, self.kind.name, "clean").inc()
        self._heard()
        if self._version == before and loop.time() - started < 1.0:
            self._failures += 1  # an end at once, again and again, must not become a busy loop
            await self._pause(None)
        return "clean"

    async def _take(self, batch: list[dict[str, Any]]) -> None:
        began, taken = thread_time(), 0
        for event in batch:
            type_, obj = _read(event)
            metrics.of(metrics.WATCH_EVENTS, self.kind.name, type_).inc()
            if type_ == "ERROR":
                raise error_of_event(obj)
            meta = obj.get("metadata")
            version = meta.get("resourceVersion") if isinstance(meta, dict) else None
            if type_ in _CHANGES:
                obj.setdefault("apiVersion", self.kind.api_version)
                obj.setdefault("kind", self.kind.name)
                self._cache.watched(self.kind, type_, obj)
            if version:
                self._version = str(version)
                self._failures = 0
            taken += 1
            if taken >= self._options.batch or thread_time() - began > self._options.slice:
                await asyncio.sleep(self._options.pause)
                began, taken = thread_time(), 0

    def _heard(self) -> None:
        """A sign of life; before the first list nothing is complete by it."""
        now = self._clock()
        if self.synced.is_set():
            self._heard_at = now
        lost_at, returned_at = self._gap.lost_at, self._gap.returned_at
        if lost_at is not None:
            self._gap = Gap(None, now if now - lost_at > self._options.outage else returned_at)
        self.problem = self.plain_problem = ""

    def _after(self, error: KubeError) -> str:
        """Decide between resuming and listing anew; the answer is the list's reason."""
        self._failures += 1
        if self._gap.lost_at is None:
            self._gap = Gap(self._clock(), self._gap.returned_at)
        code = error.code if isinstance(error, ApiError) else 0
        why = "expired" if isinstance(error, ApiError) and error.expired else str(code or "connection")
        metrics.of(metrics.WATCH_ENDS, self.kind.name, why).inc()
        too_often = self._failures >= self._options.failures_before_list
        if why == "expired" or code in {400, 401, 403, 404} or too_often:
            self._version = ""
        self.problem, self.plain_problem = str(error), error.plain
        if self._failures in {1, 5} or self._failures % 20 == 0:
            _log.debug("watch interrupted", kind=self.kind.name, why=str(error), failures=self._failures)
        return why

    async def _pause(self, error: KubeError | None) -> None:
        if isinstance(error, ApiError) and error.expired and self._failures <= 1:
            return
        exponent = min(self._failures - 1, 16)
        pause = min(self._options.backoff * 2**exponent, self._options.longest_backoff)
        if isinstance(error, ApiError) and error.retry_after is not None:
            pause = max(pause, min(error.retry_after, self._options.longest_backoff))
        await asyncio.sleep(pause * self._random.uniform(0.5, 1.5))
