"""A cluster on paper: a plan's actions change a copy, so that the next decision can be asked for.

It knows just what decisions depend on: names, owners, generations, finalizers and merge patches. It checks nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, assert_never

from controllers.kernel.actions import ApiAction, Create, CreateFromTemplate, Delete, Event, Evict, Patch, Scale
from controllers.kernel.conditions import format_time
from controllers.kernel.refs import Key, Kind, Obj, Ref, key_of, uid_of
from nodewright.apiserver.patch.merge import merged
from nodewright.cli.cluster.snapshot import now_view, objects_of
from nodewright.runtime.cache.cache import Cache, CacheView


class InMemoryCluster:
    """Works on ``cache``, which belongs to it from then on."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self._now = now_view(cache).now
        self._numbers = count(1 << 53)
        """Versions above any that a server has given: they are compared as numbers."""

    def view(self) -> CacheView:
        return self.cache.view(self._now)

    def keys(self, kind: Kind) -> list[Key]:
        return sorted(key_of(obj) for obj in objects_of(self.cache, kind))

    def apply(self, kind: Kind, obj: Mapping[str, Any]) -> bool:
        """As ``kubectl apply`` of one object; whether it is new."""
        key = key_of(obj)
        live = self.view().get(kind, key)
        if live is None:
            self._create(kind, obj)
            return True
        after = copy.deepcopy(dict(live))
        meta = obj["metadata"]
        for name in ("labels", "annotations"):
            if meta.get(name):
                after["metadata"][name] = {**(after["metadata"].get(name) or {}), **meta[name]}
        for name in obj.keys() - {"apiVersion", "kind", "metadata", "status"}:
            after[name] = merged(after.get(name), obj[name])
        self._put(kind, live, after)
        return False

    def perform(self, action: ApiAction) -> None:
        """Do what a server would do."""
        match action:
            case Create():
                if self.view().get(action.kind, key_of(action.body)) is None:
                    self._create(action.kind, action.body)
            case Patch():
                self._merge(action.target, action.patch)
            case Scale():
                self._merge(action.target, {"spec": {"replicas": action.replicas}})
            case Delete():
                self._delete(action.target.kind, action.target.key)
            case Evict() | Event() | CreateFromTemplate():
                return  # no reconciler of those that are foreseen reads what comes of them
            case _:
                assert_never(action)

    def _merge(self, target: Ref, patch: Mapping[str, Any]) -> None:
        live = self.view().get(target.kind, target.key)
        if live is not None:
            self._put(target.kind, live, merged(live, patch))

    def _create(self, kind: Kind, body: Mapping[str, Any]) -> None:
        number = next(self._numbers)
        obj = copy.deepcopy(dict(body))
        obj["metadata"] = {
            **obj["metadata"],
            "uid": f"planned-{number}",
            "generation": 1,
            "resourceVersion": str(number),
            "creationTimestamp": format_time(self._now),
        }
        obj.pop("status", None)
        self.cache.watched(kind, "ADDED", obj)

    def _put(self, kind: Kind, before: Obj, after: dict[str, Any]) -> None:
        meta = dict(after["metadata"])
        meta["resourceVersion"] = str(next(self._numbers))
        if any(before.get(name) != after.get(name) for name in (after.keys() | before.keys()) - {"metadata", "status"}):
            meta["generation"] = int(before["metadata"].get("generation", 1)) + 1
        after = {**after, "metadata": meta}
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            self._drop(kind, after)
        elif before != {**after, "metadata": {**meta, "resourceVersion": before["metadata"].get("resourceVersion")}}:
            self.cache.watched(kind, "MODIFIED", after)

    def _delete(self, kind: Kind, key: Key) -> None:
        live = self.view().get(kind, key)
        if live is None:
            return
        marked = merged(live, {"metadata": {"deletionTimestamp": format_time(self._now)}})
        self._put(kind, live, marked)

    def _drop(self, kind: Kind, obj: dict[str, Any]) -> None:
        self.cache.watched(kind, "DELETED", obj)
        for other, dependent in self._dependents(uid_of(obj)):
            self._delete(other, key_of(dependent))

    def _dependents(self, uid: str) -> Iterator[tuple[Kind, Obj]]:
        for kind in self.cache.stores:
            for obj in objects_of(self.cache, kind):
                if any(r.get("uid") == uid for r in obj["metadata"].get("ownerReferences") or ()):
                    yield kind, obj
