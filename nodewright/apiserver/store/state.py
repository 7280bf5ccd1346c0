"""What is the state, and how does it change? The only place where stored objects are replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from nodewright.apiserver.store.change_log import Change
from nodewright.apiserver.store.collection import Collection
from nodewright.apiserver.store.journal import Journal, JournalEntry
from nodewright.apiserver.store.storable import encode
from nodewright.apiserver.values import ApiError, Obj

MAX_UNFLUSHED = 4096
"""Changes that may wait for a flush; the next one flushes by itself."""


class ObjectKey(NamedTuple):
    """Where an object lies; `namespace` is "" for cluster-scoped objects."""

    collection: str
    namespace: str
    name: str


CommitHook = Callable[[str, Change], None]
"""Takes the collection's name and the change."""


class State:
    """All collections, one resourceVersion for all, and the indexes that garbage collection needs.

    Objects handed to `put` belong to the state from then on and are never changed again.
    """

    def __init__(self, journal: Journal | None, log_length: int) -> None:
        self.revision = 0
        self.by_uid: dict[str, ObjectKey] = {}
        self.dependents: dict[str, dict[ObjectKey, None]] = {}
        """Owner's uid → keys of the objects that name it in their ownerReferences, in order of arrival."""
        self._collections: dict[str, Collection] = {}
        self._journal = journal
        self._unflushed: list[JournalEntry] = []
        self._pending: list[tuple[Collection, Change]] = []
        """What `_unflushed` did to the collections, to be undone if it can't be written."""
        self._log_length = log_length
        self._hooks: list[CommitHook] = []
        self._drop_hooks: list[Callable[[str], None]] = []
        self._undo_hooks: list[Callable[[set[ObjectKey]], None]] = []

    def restore(self) -> Iterator[tuple[ObjectKey, Obj]]:
        """Fill the state from the journal, giving each (key, object) as it is put in place.

        The resourceVersion then skips all numbers that the last process may have shown to watchers before it
        wrote them down, so that no number is ever used for two states.
        """
        if self._journal is None:
            return
        entries, last = self._journal.load()
        self.revision = last + 2 * MAX_UNFLUSHED if last else 0
        for entry in entries:
            if entry.obj is not None:
                key = ObjectKey(entry.collection, entry.namespace, entry.name)
                self.collection(entry.collection).put(entry.namespace, entry.name, entry.obj)
                self._index(key, entry.obj)
                yield key, entry.obj

    def on_commit(self, hook: CommitHook) -> None:
        """Call `hook` after every commit, in the order of registration."""
        self._hooks.append(hook)

    def on_drop(self, hook: Callable[[str], None]) -> None:
        """Call `hook` with the name of every collection that is dropped."""
        self._drop_hooks.append(hook)

    def on_undo(self, hook: Callable[[set[ObjectKey]], None]) -> None:
        """Call `hook` with the keys of the objects that are as they were before, since a flush failed."""
        self._undo_hooks.append(hook)

    def collection(self, name: str) -> Collection:
        """Give a collection, empty if nothing was ever put in it.

        A new one knows its history from now on: whoever holds an older resourceVersion didn't get it from here.
        """
        found = self._collections.get(name)
        if found is None:
            found = self._collections[name] = Collection(name, self.revision, self._log_length)
        return found

    def collections(self) -> list[Collection]:
        """Give the collections there are, by name."""
        return [self._collections[name] for name in sorted(self._collections)]

    def drop(self, name: str) -> None:
        """Forget an empty collection whose kind is gone: its watches end, and cannot resume on a later one."""
        collection = self._collections.get(name)
        if collection is not None:
            collection.ended = True
            del self._collections[name]
            for hook in self._drop_hooks:
                hook(name)

    def find(self, key: ObjectKey) -> Obj | None:
        """Give the object at a key, or None."""
        collection = self._collections.get(key.collection)
        return collection.get(key.namespace, key.name) if collection is not None else None

    def find_uid(self, uid: str) -> Obj | None:
        """Give the object with a uid, or None."""
        key = self.by_uid.get(uid)
        return self.find(key) if key is not None else None

    def put(self, key: ObjectKey, obj: Obj) -> Obj:
        """Store an object whose metadata dict is not shared, giving it the next resourceVersion.

        Raises ApiError 400 or 413, and changes nothing, for an object that could not be read again.
        """
        collection = self.collection(key.collection)
        previous = collection.get(key.namespace, key.name)
        obj["metadata"]["resourceVersion"] = str(self.revision + 1)
        body = encode(obj)
        self._commit(collection, key, Change(self.revision + 1, key.namespace, key.name, obj, previous, False), body)
        return obj

    def remove(self, key: ObjectKey) -> Obj:
        """Remove an object that is there; gives its tombstone."""
        collection = self.collection(key.collection)
        previous = collection.get(key.namespace, key.name)
        assert previous is not None, key
        metadata = {**previous["metadata"], "resourceVersion": str(self.revision + 1)}
        tombstone = {**previous, "metadata": metadata}
        change = Change(self.revision + 1, key.namespace, key.name, tombstone, previous, True)
        self._commit(collection, key, change, b"")
        return tombstone

    def flush(self) -> None:
        """Write what was committed to the journal. When this returns, it survives a crash.

        Raises ApiError 507 if the journal cannot be written: what was committed since the last flush is undone then, so
        that what was refused has not happened.
        """
        if self._journal is None or not self._unflushed:
            return
        try:
            self._journal.append(self._unflushed)
        except Exception as error:
            self._undo()
            raise ApiError.insufficient_storage(str(error)) from error
        self._unflushed, self._pending = [], []

    def probe(self) -> None:
        """Try whether the journal can be written, without a change. Raises ApiError 507."""
        if self._journal is None:
            return
        try:
            self._journal.probe()
        except Exception as error:
            raise ApiError.insufficient_storage(str(error)) from error

    def close(self) -> None:
        """Flush and let go of the journal."""
        try:
            self.flush()
        finally:
            if self._journal is not None:
                self._journal.close()

    def _undo(self) -> None:
        """Take back what is not flushed, the latest change first."""
        pending, self._pending, self._unflushed = self._pending, [], []
        for collection, change in reversed(pending):
            self._collections[collection.name] = collection
            collection.ended = False
            collection.undo(change)
            key = ObjectKey(collection.name, change.namespace, change.name)
            self._unindex(key, change.obj)
            if change.previous is not None:
                self._index(key, change.previous)
            self.revision = change.revision - 1
        touched = {ObjectKey(c.name, change.namespace, change.name) for c, change in pending}
        for hook in self._undo_hooks:
            hook(touched)

    def _commit(self, collection: Collection, key: ObjectKey, change: Change, body: bytes) -> None:
        if self._journal is not None:
            if len(self._unflushed) >= MAX_UNFLUSHED:
                self.flush()
            self._unflushed.append(JournalEntry(*key, change.revision, None if change.removed else change.obj, body))
            self._pending.append((collection, change))
        self.revision = change.revision
        collection.record(change)
        if change.removed or change.previous is None or _references_differ(change.previous, change.obj):
            self._unindex(key, change.previous)
            if not change.removed:
                self._index(key, change.obj)
        for hook in self._hooks:
            hook(key.collection, change)

    def _index(self, key: ObjectKey, obj: Obj) -> None:
        metadata = obj["metadata"]
        self.by_uid[metadata["uid"]] = key
        for reference in metadata.get("ownerReferences") or ():
            self.dependents.setdefault(reference["uid"], {})[key] = None

    def _unindex(self, key: ObjectKey, obj: Obj | None) -> None:
        if obj is None:
            return
        metadata = obj["metadata"]
        self.by_uid.pop(metadata["uid"], None)
        for reference in metadata.get("ownerReferences") or ():
            keys = self.dependents.get(reference["uid"])
            if keys is not None:
                keys.pop(key, None)
                if not keys:
                    del self.dependents[reference["uid"]]


def _references_differ(previous: Obj, obj: Obj) -> bool:
    old, new = previous["metadata"], obj["metadata"]
    return bool(old.get("ownerReferences") != new.get("ownerReferences"))
