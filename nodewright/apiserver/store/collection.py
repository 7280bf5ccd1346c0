"""What objects of one kind are there, in the order of their names, now and at an earlier resourceVersion?"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from nodewright.apiserver.store.change_log import Change, ChangeLog
from nodewright.apiserver.values import Obj

Key = tuple[str, str]
"""(namespace, name); the namespace is "" for cluster-scoped objects."""


class Collection:
    """The stored objects of one kind, whatever their version, with their change log.

    Each namespace is a dict kept in name order, re-sorted only when a list follows an insert out of order, so that
    listing costs no sort and writing no insertion.
    """

    def __init__(self, name: str, floor: int, log_length: int) -> None:
        self.name = name
        self.log = ChangeLog(floor, log_length)
        self.ended = False
        """True once the kind is no longer served: its watches end."""
        self._spaces: dict[str, dict[str, Obj]] = {}
        self._last: dict[str, str] = {}
        self._unsorted: set[str] = set()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, namespace: str, name: str) -> Obj | None:
        """Give the object of that name, or None."""
        space = self._spaces.get(namespace)
        return space.get(name) if space is not None else None

    def put(self, namespace: str, name: str, obj: Obj) -> None:
        """Add or replace an object."""
        space = self._spaces.get(namespace)
        if space is None:
            space = self._spaces[namespace] = {}
        if name not in space:
            self._count += 1
            if name > self._last.get(namespace, ""):
                self._last[namespace] = name
            else:
                self._unsorted.add(namespace)
        space[name] = obj

    def remove(self, namespace: str, name: str) -> None:
        """Remove an object that is there."""
        space = self._spaces[namespace]
        del space[name]
        self._count -= 1
        if not space:
            del self._spaces[namespace]
            self._last.pop(namespace, None)
            self._unsorted.discard(namespace)

    def count(self, namespace: str) -> int:
        """Count the objects of a namespace, or all for ""."""
        return len(self._spaces.get(namespace, ())) if namespace else self._count

    def scan(self, namespace: str) -> list[Obj]:
        """Give all objects of a namespace by name, or for "" all there are, by namespace and name."""
        if namespace:
            return list(self._space(namespace).values())
        return [obj for space in sorted(self._spaces) for obj in self._space(space).values()]

    def after(self, namespace: str, start: Key) -> Iterator[tuple[Key, Obj]]:
        """Give the objects whose key is greater than `start`, in order, lazily."""
        for space in sorted(self._spaces) if not namespace else [namespace]:
            if space < start[0]:
                continue
            members = self._space(space)
            names = list(members)
            first = bisect_right(names, start[1]) if space == start[0] else 0
            for name in names[first:]:
                yield (space, name), members[name]

    def at(self, revision: int, namespace: str) -> dict[Key, Obj]:
        """Rebuild what was there at an earlier resourceVersion (not below the log's floor), in order.

        Costs a scan and the changes since: the earliest change of a key after `revision` knows what was before.
        """
        state: dict[Key, Obj | None] = {_key(obj): obj for obj in self.scan(namespace)}
        touched: set[Key] = set()
        for change in self.log.since(self.log.position_after(revision)):
            key = (change.namespace, change.name)
            if key in touched or (namespace and change.namespace != namespace):
                continue
            touched.add(key)
            state[key] = change.previous
        return {key: obj for key in sorted(state) if (obj := state[key]) is not None}

    def record(self, change: Change) -> None:
        """Apply a change and log it."""
        if change.removed:
            self.remove(change.namespace, change.name)
        else:
            self.put(change.namespace, change.name, change.obj)
        self.log.append(change)

    def undo(self, change: Change) -> None:
        """Take back the last change."""
        if change.previous is None:
            self.remove(change.namespace, change.name)
        else:
            self.put(change.namespace, change.name, change.previous)
        self.log.undo(change)

    def _space(self, namespace: str) -> dict[str, Obj]:
        space = self._spaces.get(namespace)
        if space is None:
            return {}
        if namespace in self._unsorted:
            space = self._spaces[namespace] = dict(sorted(space.items()))
            self._last[namespace] = next(reversed(space))
            self._unsorted.discard(namespace)
        return space


def _key(obj: Obj) -> Key:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
