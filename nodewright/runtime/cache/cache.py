"""The stores of all kinds that somebody reads, and who wants to hear of changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import structlog

from controllers.kernel import memory
from controllers.kernel.refs import WORKLOAD_KINDS, Key, Kind, Obj
from controllers.kernel.view import MANAGEMENT_CLUSTER, Reached, ShapeRead, ShapeUnknown, Workload
from nodewright.runtime.cache.shapes import Admitted
from nodewright.runtime.cache.store import Change, Store
from nodewright.runtime.telemetry import metrics

_log = structlog.get_logger("nodewright.cache")
_DAWN = datetime.min.replace(tzinfo=UTC)
Listener = Callable[[Change, bool], None]
"""Called with each change after it is in the store; the flag says that it came from a list (start or relist)."""


class Completeness(Protocol):
    """Whether a kind is completely read and current; a reflector knows."""

    @property
    def complete(self) -> bool: ...

    @property
    def current_for(self) -> float | None:
        """Seconds since the last outage ended: infinite if there was none, None during one."""


@dataclass(frozen=True, slots=True)
class _AsOf:
    """What was so when a cache was copied."""

    complete: bool
    current_for: float | None


class Cache:
    """Synchronous; one event loop. Kinds are declared once, before anything feeds them."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.stores: dict[Kind, Store] = {kind: Store(kind) for kind in kinds}
        self._listeners: dict[Kind, list[Listener]] = {kind: [] for kind in self.stores}
        self._completeness: dict[Kind, Completeness] = {}

    def listen(self, kind: Kind, listener: Listener) -> None:
        self._listeners[kind].append(listener)

    def keep_complete(self, kind: Kind, source: Completeness) -> None:
        """Name who knows whether ``kind`` is complete."""
        self._completeness[kind] = source

    def complete(self, kind: Kind) -> bool:
        source = self._completeness.get(kind)
        return source is not None and source.complete

    def current_for(self, kind: Kind) -> float | None:
        source = self._completeness.get(kind)
        return source.current_for if source is not None and source.complete else None

    def listed(self, kind: Kind, objects: Sequence[dict[str, Any] | Admitted], resource_version: str) -> None:
        self._tell(kind, self.stores[kind].replace(objects, resource_version), from_list=True)

    def watched(self, kind: Kind, type_: str, obj: dict[str, Any]) -> None:
        self._tell(kind, self.stores[kind].watched(type_, obj))

    def wrote(self, kind: Kind, obj: Mapping[str, Any]) -> None:
        """The answer to an own write. Kinds that nobody reads are passed over."""
        store = self.stores.get(kind)
        if store is not None and "metadata" in obj:
            self._tell(kind, store.wrote(dict(obj)))

    def deleted(self, kind: Kind, key: Key, uid: str) -> None:
        store = self.stores.get(kind)
        if store is not None:
            self._tell(kind, store.deleted(key, uid))

    def view(self, now: datetime) -> CacheView:
        return CacheView(self, now)

    def copy(self) -> Cache:
        """The same objects as of now, fed by nothing: for a thread to read while this one goes on."""
        copied = Cache(())
        copied.stores = {kind: store.copy() for kind, store in self.stores.items()}
        copied._completeness = {kind: _AsOf(self.complete(kind), self.current_for(kind)) for kind in self.stores}
        return copied

    def close(self) -> None:
        """Nothing feeds it any more."""
        for kind, store in self.stores.items():
            metrics.of(metrics.CACHE_OBJECTS, kind.name).dec(len(store))

    def _tell(self, kind: Kind, changes: list[Change], from_list: bool = False) -> None:
        if not changes:
            return
        more = 0
        for change in changes:
            more += (change.old is None) - (change.new is None)
        if more:
            metrics.of(metrics.CACHE_OBJECTS, kind.name).inc(more)
        for change in changes:
            for listener in self._listeners[kind]:
                try:
                    listener(change, from_list)
                except Exception:  # the others must hear of it all the same, and the watch must go on
                    metrics.of(metrics.RECONCILER_ERRORS, "cache").inc()
                    _log.exception("listener failed", kind=kind.name, object=str(change.key))
            if change.new is None and change.old is not None:
                memory.forget(change.old)


@dataclass(frozen=True, slots=True)
class CacheView:
    """``controllers.kernel.view.View`` on the cache at one moment. Valid until the next ``await``.

    ``remote`` holds the kinds of the workload cluster, if that is another one than the cache's. ``sees`` gives the view
    of another Cluster; None: all are in the management cluster. ``shapes`` asks providers what hosts would be like;
    None: nobody does. ``cluster``: whose kinds ``remote`` holds.
    """

    cache: Cache
    now: datetime
    workload: Workload = MANAGEMENT_CLUSTER
    remote: Cache | None = None
    sees: Callable[[Key | None], CacheView] | None = None
    shapes: Callable[[Mapping[str, Any], str], ShapeRead] | None = None
    cluster: Key | None = None

    def of_cluster(self, cluster: Key | None) -> CacheView:
        return self.sees(cluster) if self.sees is not None else self

    def complete(self, kind: Kind) -> bool:
        source = self._source(kind)
        return source.complete(kind) and (source is self.cache or isinstance(self.workload, Reached))

    def current_since(self, kind: Kind) -> datetime | None:
        source = self._source(kind)
        lost = source is not self.cache and not isinstance(self.workload, Reached)
        seconds = None if lost else source.current_for(kind)
        if seconds is None:
            return None
        return _DAWN if seconds == float("inf") else self.now - timedelta(seconds=seconds)

    def get(self, kind: Kind, key: Key) -> Obj | None:
        return self._source(kind).stores[kind].get(key)

    def by_uid(self, kind: Kind, uid: str) -> Obj | None:
        return self._source(kind).stores[kind].by_uid(uid)

    def indexed(self, kind: Kind, index: str, value: str) -> Sequence[Obj]:
        return self._source(kind).stores[kind].indexed(index, value)

    def all(self, kind: Kind) -> Sequence[Obj]:
        return list(self._source(kind).stores[kind])

    def shape(self, config: Mapping[str, Any], namespace: str) -> ShapeRead:
        return self.shapes(config, namespace) if self.shapes is not None else ShapeUnknown("no provider is asked here")

    def _source(self, kind: Kind) -> Cache:
        return self.remote if self.remote is not None and kind in WORKLOAD_KINDS else self.cache
