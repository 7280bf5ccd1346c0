"""All objects of one kind as plain dicts, indexed; tells what changed.

Three sources feed it: complete lists, watch events, and the answers to our own writes (so that a controller sees at
once what it did). They arrive in any order; of two versions of an object the newer one stays:

* resourceVersions of one kind are compared as numbers (KEP-5504 makes official what has always held on etcd); where
  they are no numbers, own writes are not applied and only the watch speaks.
* a uid that was deleted never comes back, whatever late answer still names it (``_gone``).
* a list replaces everything but own writes that are newer than it. If the server's counter went back (restored from a
  backup, started anew), the list is the truth without exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controllers.kernel.refs import Key, Kind, Obj, key_of
from nodewright.runtime.cache.filing import Filing
from nodewright.runtime.cache.indexes import INDEXES, Indexer
from nodewright.runtime.cache.shapes import Admitted, admit, is_named

_MOST_GONE = 20_000
"""Deleted uids remembered: far more than can be deleted while one answer is under way."""


@dataclass(frozen=True, slots=True)
class Change:
    """``old`` None: it is new. ``new`` None: it is gone. A namesake with another uid gives two changes."""

    kind: Kind
    key: Key
    old: Obj | None
    new: Obj | None


class Store:
    """Objects handed in belong to the store from then on; objects handed out must not be changed."""

    def __init__(self, kind: Kind, indexers: Mapping[str, Indexer] | None = None) -> None:
        self.kind = kind
        self._objects: dict[Key, dict[str, Any]] = {}
        self._filing = Filing(INDEXES.get(kind, {}) if indexers is None else indexers, self._objects)
        self._by_uid: dict[str, Key] = {}
        self._faults: dict[Key, tuple[str, ...]] = {}
        self._own_writes: dict[Key, int] = {}
        self._gone: dict[str, None] = {}
        self._seen = 0
        """The newest version that a list or the watch has shown."""

    def __len__(self) -> int:
        return len(self._objects)

    def copy(self) -> Store:
        """The same objects in a store of its own, which nothing feeds: for a thread to read while this one goes on."""
        copied = Store(self.kind)
        copied._objects.update(self._objects)
        copied._by_uid.update(self._by_uid)
        copied._faults.update(self._faults)
        return copied

    def __iter__(self) -> Iterator[Obj]:
        return iter(self._objects.values())

    def keys(self) -> Sequence[Key]:
        return list(self._objects)

    def get(self, key: Key) -> Obj | None:
        return self._objects.get(key)

    def faults(self, key: Key) -> tuple[str, ...]:
        """What of the object's spec was left out because it is of a wrong type: ``path: must be ...``, one each."""
        return self._faults.get(key, ())

    def by_uid(self, uid: str) -> Obj | None:
        key = self._by_uid.get(uid)
        return None if key is None else self._objects[key]

    def indexed(self, index: str, value: str) -> Sequence[Obj]:
        """Raises KeyError for an index that this kind does not have."""
        return self._filing.under(index, value)

    def admitted(self, page: Iterable[dict[str, Any]]) -> list[dict[str, Any] | Admitted]:
        """A page of a list for ``replace``, already without what is not kept: 10,000 Machines as the server sends them
        take twice as much, and what is freed between them stays with the process.
        """
        named = (obj for obj in page if is_named(self.kind, obj))
        return [obj if self._same_version(key_of(obj), obj) else admit(self.kind, obj) for obj in named]

    def replace(self, objects: Iterable[dict[str, Any] | Admitted], resource_version: str) -> list[Change]:
        """Make the store equal to a complete list; what the list lacks was deleted meanwhile and is reported so."""
        version = _number(resource_version)
        went_back = version is not None and version < self._seen
        if went_back:
            self._own_writes.clear()
            self._gone.clear()
        self._seen = version or 0
        changes: list[Change] = []
        listed: set[Key] = set()
        for each in objects:
            obj = each.obj if isinstance(each, Admitted) else each
            if obj is each and not is_named(self.kind, obj):
                continue
            key = key_of(obj)
            listed.add(key)
            own = self._own_writes.get(key)
            if own is not None and (_version_of(obj) or 0) < own and self._same_uid(key, obj):
                continue
            self._gone.pop(_uid(obj), None)  # a consistent list shows it: it is there
            self._own_writes.pop(key, None)
            if not self._same_version(key, obj):
                changes.extend(self._put(key, each if isinstance(each, Admitted) else admit(self.kind, each)))
        for key in [key for key in self._objects if key not in listed]:
            own = self._own_writes.get(key)
            if own is None or version is None or own <= version:
                changes.append(self._drop(key))
        return changes

    def watched(self, type_: str, obj: dict[str, Any]) -> list[Change]:
        """Take in a watch event of type ADDED, MODIFIED or DELETED."""
        if not is_named(self.kind, obj):
            return []
        key, uid, version = key_of(obj), _uid(obj), _version_of(obj)
        if version is not None and version > self._seen:
            self._seen = version
        if type_ == "DELETED":
            self._bury(uid)
            return [self._drop(key)] if self._same_uid(key, obj) else []
        if uid in self._gone:
            return []
        known = self._objects.get(key)
        if known is not None and _uid(known) == uid and version is not None and version <= (_version_of(known) or 0):
            return []  # the echo of an own write, or from before it
        self._own_writes.pop(key, None)
        return self._put(key, admit(self.kind, obj))

    def wrote(self, obj: dict[str, Any]) -> list[Change]:
        """Take in the answer to an own write, if it is newer than what is known."""
        if not is_named(self.kind, obj):
            return []
        key, version = key_of(obj), _version_of(obj)
        if version is None or version <= self._seen or _uid(obj) in self._gone:
            return []  # the watch is past it: what it says is known, or deleted since
        known = self._objects.get(key)
        if known is not None and version <= (_version_of(known) or 0):
            return []
        self._own_writes[key] = version
        return self._put(key, admit(self.kind, obj))

    def deleted(self, key: Key, uid: str) -> list[Change]:
        """The server has confirmed that the object is gone (an own DELETE, or a 404)."""
        self._bury(uid)
        known = self._objects.get(key)
        return [self._drop(key)] if known is not None and _uid(known) == uid else []

    def _same_uid(self, key: Key, obj: Obj) -> bool:
        known = self._objects.get(key)
        return known is not None and _uid(known) == _uid(obj)

    def _same_version(self, key: Key, obj: Obj) -> bool:
        known = self._objects.get(key)
        if known is None:
            return False
        versions = known["metadata"].get("resourceVersion"), obj["metadata"].get("resourceVersion")
        return versions[0] == versions[1] and _uid(known) == _uid(obj)

    def _bury(self, uid: str) -> None:
        if not uid:
            return
        self._gone[uid] = None
        if len(self._gone) > _MOST_GONE:
            del self._gone[next(iter(self._gone))]

    def _put(self, key: Key, admitted: Admitted) -> list[Change]:
        obj = admitted.obj
        old = self._objects.get(key)
        changes = []
        if old is not None and _uid(old) != _uid(obj):
            own = self._own_writes.get(key)
            changes.append(self._drop(key))
            if own is not None:
                self._own_writes[key] = own
            old = None
        self._objects[key] = obj
        if admitted.faults:
            self._faults[key] = admitted.faults
        else:
            self._faults.pop(key, None)
        self._by_uid[_uid(obj)] = key
        self._filing.put(key, old, obj)
        changes.append(Change(self.kind, key, old, obj))
        return changes

    def _drop(self, key: Key) -> Change:
        old = self._objects.pop(key)
        self._faults.pop(key, None)
        self._own_writes.pop(key, None)
        self._by_uid.pop(_uid(old), None)
        self._filing.drop(key, old)
        return Change(self.kind, key, old, None)


def _uid(obj: Obj) -> str:
    uid: str = obj["metadata"].get("uid", "")
    return uid


def _version_of(obj: Obj) -> int | None:
    return _number(obj["metadata"].get("resourceVersion"))


def _number(text: str | None) -> int | None:
    """None for what is no version of etcd's; one of over 20 digits is none either (64 bits)."""
    return int(text) if isinstance(text, str) and len(text) <= 20 and text.isascii() and text.isdigit() else None
