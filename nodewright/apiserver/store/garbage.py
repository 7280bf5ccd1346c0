"""What must go because its owners went? Garbage collection by ownerReferences: background, foreground, orphan.

The decisions are those of kube-controller-manager's garbage collector (pkg/controller/garbagecollector), but the
graph is the store itself, so nothing is guessed: an owner is absent only if it is not in the store.
"""

from __future__ import annotations

from collections import OrderedDict

from nodewright.apiserver.store.change_log import Change
from nodewright.apiserver.store.deleting import Deleter
from nodewright.apiserver.store.kernel import Kernel
from nodewright.apiserver.store.metadata import FOREGROUND, ORPHAN
from nodewright.apiserver.store.releasing import Releaser
from nodewright.apiserver.store.state import ObjectKey
from nodewright.apiserver.store.work_queue import WorkQueue
from nodewright.apiserver.values import DeleteOptions, Obj, Resource

DEPENDENT = "dependent"
OWNER = "owner"
MAX_GONE = 10_000
"""Uids of removed objects that are remembered, for dependents whose owner's kind went with its CRD."""


class GarbageCollector:
    """Notes what each commit may have orphaned, and deals with it one object at a time."""

    def __init__(self, kernel: Kernel, deleter: Deleter, releaser: Releaser, queue: WorkQueue) -> None:
        self._kernel = kernel
        self._state = kernel.state
        self._deleter = deleter
        self._releaser = releaser
        self._queue = queue
        self._gone: OrderedDict[str, None] = OrderedDict()

    def note(self, collection: str, change: Change) -> None:
        """Queue what a commit gives the collector to do."""
        key = ObjectKey(collection, change.namespace, change.name)
        meta = change.obj["metadata"]
        before = change.previous["metadata"].get("ownerReferences") if change.previous is not None else None
        if change.removed:
            self._note_removed(meta["uid"])
            self._note_owners(before)
            return
        references = meta.get("ownerReferences")
        if references != before:
            self._note_owners(before)
        if references and any(self._needs_a_look(reference, change) for reference in references):
            self._queue.add(DEPENDENT, key)
        if meta.get("deletionTimestamp") and _collected(meta):
            self._queue.add(OWNER, key)

    def note_restored(self, key: ObjectKey, obj: Obj) -> None:
        """Queue an object that was read from the journal, where work may have been left undone."""
        if obj["metadata"].get("ownerReferences"):
            self._queue.add(DEPENDENT, key)
        if obj["metadata"].get("deletionTimestamp") and _collected(obj["metadata"]):
            self._queue.add(OWNER, key)

    def look_at_dependent(self, key: ObjectKey) -> None:
        """Delete an object none of whose owners is left, or drop its references to those that are not."""
        obj = self._state.find(key)
        references = obj["metadata"].get("ownerReferences") if obj is not None else None
        if obj is None or not references or obj["metadata"].get("deletionTimestamp"):
            return
        resource = self._resource(obj)
        if resource is None:
            return
        standings = {reference["uid"]: self._owner_state(reference, key) for reference in references}
        if any(standing == "unknown" for standing in standings.values()):
            return
        kept = [reference for reference in references if standings[reference["uid"]] == "solid"]
        if kept:
            if len(kept) < len(references):
                self._releaser.set_owners(resource, key, kept)
            return
        options = self._propagation(obj["metadata"], owner_waits="waiting" in standings.values())
        self._deleter.delete(resource, key.namespace, key.name, options)

    def _propagation(self, metadata: Obj, *, owner_waits: bool) -> DeleteOptions:
        """Say how a dependent is deleted: as its finalizers want it, and before an owner that waits for it."""
        finalizers = metadata.get("finalizers") or ()
        if ORPHAN in finalizers:
            return DeleteOptions("Orphan")
        has_dependents = bool(self._state.dependents.get(metadata["uid"]))
        foreground = FOREGROUND in finalizers or (owner_waits and has_dependents)
        return DeleteOptions("Foreground" if foreground else "Background")

    def look_at_owner(self, key: ObjectKey) -> None:
        """Go on with a deletion that waits for its dependents: let them go (orphan) or delete them first."""
        owner = self._state.find(key)
        if owner is None or not owner["metadata"].get("deletionTimestamp"):
            return
        resource = self._resource(owner)
        if resource is None:
            return
        finalizers = owner["metadata"].get("finalizers") or ()
        dependents = list(self._state.dependents.get(owner["metadata"]["uid"], ()))
        if ORPHAN in finalizers:
            self._orphan(owner["metadata"]["uid"], dependents)
            self._releaser.drop_finalizer(resource, key, ORPHAN)
        elif FOREGROUND in finalizers:
            blocking = [dependent for dependent in dependents if self._blocks(dependent, owner)]
            for dependent in blocking:
                self._queue.add(DEPENDENT, dependent)
            if not blocking:
                self._releaser.drop_finalizer(resource, key, FOREGROUND)

    def _orphan(self, uid: str, dependents: list[ObjectKey]) -> None:
        for key in dependents:
            obj = self._state.find(key)
            resource = self._resource(obj) if obj is not None else None
            if obj is not None and resource is not None:
                kept = [ref for ref in obj["metadata"]["ownerReferences"] if ref["uid"] != uid]
                self._releaser.set_owners(resource, key, kept)

    def _blocks(self, key: ObjectKey, owner: Obj) -> bool:
        obj = self._state.find(key)
        assert obj is not None, key
        owner_place = owner["metadata"].get("namespace", "")
        if owner_place and owner_place != key.namespace:
            return False
        return any(
            reference["uid"] == owner["metadata"]["uid"] and reference.get("blockOwnerDeletion")
            for reference in obj["metadata"]["ownerReferences"]
        )

    def _needs_a_look(self, reference: Obj, change: Change) -> bool:
        key = self._state.by_uid.get(reference["uid"])
        if key is None or key.name != reference["name"] or key.namespace not in ("", change.namespace):
            return True
        owner = self._state.find(key)
        return owner is not None and FOREGROUND in (owner["metadata"].get("finalizers") or ())

    def _note_removed(self, uid: str) -> None:
        self._gone[uid] = None
        if len(self._gone) > MAX_GONE:
            self._gone.popitem(last=False)
        for dependent in self._state.dependents.get(uid, ()):
            self._queue.add(DEPENDENT, dependent)

    def _note_owners(self, references: list[Obj] | None) -> None:
        for reference in references or ():
            key = self._state.by_uid.get(reference["uid"])
            owner = self._state.find(key) if key is not None else None
            if key is not None and owner is not None and owner["metadata"].get("deletionTimestamp"):
                self._queue.add(OWNER, key)

    def _owner_state(self, reference: Obj, dependent: ObjectKey) -> str:
        """Say how an owner stands: "solid", "waiting" for this dependent to go, "absent", or "unknown" (its kind)."""
        key = self._state.by_uid.get(reference["uid"])
        owner = self._state.find(key) if key is not None else None
        if key is None or owner is None:
            group = reference["apiVersion"].rpartition("/")[0]
            known = self._kernel.registry.any_version(group, reference["kind"]) is not None
            return "absent" if known or reference["uid"] in self._gone else "unknown"
        matches = key.name == reference["name"] and owner["kind"] == reference["kind"]
        if not matches or key.namespace not in ("", dependent.namespace):
            return "absent"
        deleting = owner["metadata"].get("deletionTimestamp")
        foreground = deleting and FOREGROUND in (owner["metadata"].get("finalizers") or ())
        return "waiting" if foreground and reference.get("blockOwnerDeletion") else "solid"

    def _resource(self, obj: Obj) -> Resource | None:
        group, _, version = obj["apiVersion"].rpartition("/")
        registry = self._kernel.registry
        return registry.by_kind(group, version, obj["kind"]) or registry.any_version(group, obj["kind"])


def _collected(meta: Obj) -> bool:
    finalizers = meta.get("finalizers") or ()
    return FOREGROUND in finalizers or ORPHAN in finalizers
