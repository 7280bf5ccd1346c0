"""The store: a Kubernetes API's state and behaviour, without HTTP. Pure, synchronous, clock and uids injected."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from nodewright.apiserver.store.change_log import Change
from nodewright.apiserver.store.custom_kinds import CRD_COLLECTION
from nodewright.apiserver.store.custom_resources import CustomResources
from nodewright.apiserver.store.deleting import START_NAMESPACES, Deleter
from nodewright.apiserver.store.evicting import Evictor
from nodewright.apiserver.store.housekeeping import Housekeeper
from nodewright.apiserver.store.journal import Journal, JournalEntry
from nodewright.apiserver.store.kernel import Kernel, StoreOptions
from nodewright.apiserver.store.priorities import SYSTEM_CLASSES
from nodewright.apiserver.store.reading import Reader
from nodewright.apiserver.store.registry import ResourceRegistry, collection_name
from nodewright.apiserver.store.scaling import Scaler
from nodewright.apiserver.store.shaping import Shapes
from nodewright.apiserver.store.standard_seams import standard_seams
from nodewright.apiserver.store.state import ObjectKey, State
from nodewright.apiserver.store.watching import Watch
from nodewright.apiserver.store.writing import Target, Writer
from nodewright.apiserver.values import (
    ApiError,
    DeleteOptions,
    ListOptions,
    ListResult,
    Obj,
    PatchRequest,
    Resource,
    WatchOptions,
    WriteOptions,
    Written,
)

ChangeCallback = Callable[[str], None]
"""Takes the name of the collection that changed: `Watch.group_resource` of the watches that may have events."""

WRITABLE = ("", "status", "scale", "finalize", "approval")
"""What PUT and PATCH can be aimed at; the other subresources are POSTed to."""


class Store:
    """All objects of the embedded control plane.

    Every object that goes out is the stored one, or shares parts with it: readers must not change it. Every method
    that takes a resource raises ApiError for what a real API server would refuse, with its code and words. Namespaces
    are "" for cluster-scoped kinds, and for reads over all namespaces.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], datetime],
        new_uid: Callable[[], str],
        journal: Journal | None = None,
        options: StoreOptions | None = None,
    ) -> None:
        chosen = options or StoreOptions()
        self.resources = ResourceRegistry()
        self._state = State(journal, chosen.log_length)
        seams = standard_seams()
        shapes = Shapes(seams)
        kernel = Kernel(self._state, self.resources, shapes, seams, clock, new_uid, chosen)
        self._custom_resources = CustomResources(kernel)
        self._reader = Reader(self._state)
        self._writer = Writer(kernel, self._custom_resources)
        self._scaler = Scaler(kernel, self._writer)
        self._deleter = Deleter(kernel, self._custom_resources)
        self._housekeeper = Housekeeper(kernel, self._deleter)
        self._evictor = Evictor(kernel, self._deleter, self._housekeeper.budgets)
        self._callbacks: list[ChangeCallback] = []
        self._undo_callbacks: list[Callable[[set[str]], None]] = []
        self._restore()
        self._state.on_commit(self._committed)
        self._state.on_drop(self._announce)
        self._state.on_undo(self._undone)
        self._create_missing()

    # Reading

    def get(self, resource: Resource, namespace: str, name: str) -> Obj:
        """Give one object. Raises ApiError 404."""
        return self._reader.get(resource, namespace, name)

    def list(self, resource: Resource, namespace: str, options: ListOptions | None = None) -> ListResult:
        """Give objects by namespace and name, selected and paged. Raises ApiError 400, 410, 504."""
        return self._reader.list(resource, namespace, options or ListOptions())

    def watch(self, resource: Resource, namespace: str, options: WatchOptions | None = None) -> Watch:
        """Start to watch; poll it after `on_change` calls. Raises ApiError 400, 410, 504."""
        return self._reader.watch(resource, namespace, options or WatchOptions())

    def get_scale(self, resource: Resource, namespace: str, name: str) -> Obj:
        """Give an object's autoscaling/v1 Scale. Raises ApiError 404."""
        return self._scaler.get(resource, namespace, name)

    @property
    def resource_version(self) -> str:
        """The resourceVersion of the last commit."""
        return str(self._state.revision)

    def snapshot(self) -> tuple[JournalEntry, ...]:
        """Give all objects as they are now, by collection, namespace and name; not serialised yet."""
        return tuple(
            JournalEntry(each.name, meta.get("namespace", ""), meta["name"], int(meta["resourceVersion"]), obj)
            for each in self._state.collections()
            for obj in each.scan("")
            for meta in [obj["metadata"]]
        )

    # Writing

    def create(self, resource: Resource, namespace: str, body: Any, options: WriteOptions | None = None) -> Written:
        """Create an object. Raises ApiError 400, 403, 404 (no namespace), 405, 409, 422."""
        return self._writer.create(resource, namespace, body, options or WriteOptions())

    def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Any,
        options: WriteOptions | None = None,
        *,
        subresource: str = "",
    ) -> Written:
        """Replace an object or one of its subresources (status, scale, …). Raises ApiError 400, 404, 409, 422."""
        target = _target(resource, namespace, name, subresource)
        if subresource == "scale":
            return self._scaler.update(target, body, options or WriteOptions())
        return self._writer.update(target, body, options or WriteOptions())

    def patch(
        self, resource: Resource, namespace: str, name: str, request: PatchRequest, *, subresource: str = ""
    ) -> Written:
        """Patch an object or one of its subresources. Raises ApiError 400, 404, 409, 415, 422."""
        target = _target(resource, namespace, name, subresource)
        if subresource == "scale":
            return self._scaler.patch(target, request)
        return self._writer.patch(target, request)

    def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions | None = None) -> Obj:
        """Delete an object, or mark it while something holds it. Gives the object or a Status. Raises 403, 404, 409."""
        return self._deleter.delete(resource, namespace, name, options or DeleteOptions())

    def delete_collection(
        self,
        resource: Resource,
        namespace: str,
        selection: ListOptions | None = None,
        options: DeleteOptions | None = None,
    ) -> ListResult:
        """Delete all selected objects; gives them as they were."""
        chosen = selection or ListOptions()
        gone = self._deleter.delete_collection(resource, namespace, chosen, options or DeleteOptions())
        return ListResult(gone, self.resource_version)

    def evict(self, namespace: str, name: str, body: Any, *, dry_run: bool = False) -> Obj:
        """Evict a Pod if its PodDisruptionBudget allows it. Raises ApiError 404, 429 (cause DisruptionBudget)."""
        return self._evictor.evict(namespace, name, body, dry_run)

    def bind(self, namespace: str, name: str, body: Any) -> Obj:
        """Bind a Pod to the Node of a Binding's target. Raises ApiError 400, 404, 409 (already bound)."""
        return self._writer.bind(namespace, name, body)

    # Background work, wake-ups and durability

    def run_gc(self, limit: int = 100) -> int:
        """Do at most `limit` steps of garbage collection, namespace and kind deletion, budgets and Event expiry.

        Gives the number of steps done; 0 means that nothing is left. Call it after writes, until it gives 0.
        """
        return self._housekeeper.run(limit)

    @property
    def gc_pending(self) -> int:
        """Steps that wait for `run_gc`."""
        return self._housekeeper.pending

    def on_change(self, callback: ChangeCallback) -> None:
        """Call back synchronously after each commit, and when a kind's watches have ended.

        The callback must not write to the store.
        """
        self._callbacks.append(callback)

    @property
    def gc_due_seconds(self) -> float | None:
        """Seconds until `run_gc` has something to do though nothing is written; None if it has not."""
        return self._housekeeper.due_seconds

    def flush(self) -> None:
        """Write all commits to the journal. Nothing may be acknowledged before.

        Raises ApiError 507 if that fails; the commits since the last flush are then undone.
        """
        self._state.flush()

    def on_undo(self, callback: Callable[[set[str]], None]) -> None:
        """Call back with the names of the collections in which commits were undone: watches may have begun on them."""
        self._undo_callbacks.append(callback)

    def recover(self) -> None:
        """Go on after a failed flush, if the journal can be written again. Raises ApiError 507 if not."""
        self._state.probe()
        for collection in self._state.collections():
            for obj in collection.scan(""):
                key = ObjectKey(collection.name, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
                self._housekeeper.note_restored(key, obj)

    def close(self) -> None:
        """Flush and close the journal."""
        self._state.close()

    def _committed(self, collection: str, change: Change) -> None:
        self._housekeeper.note(collection, change)
        self._announce(collection)

    def _announce(self, collection: str) -> None:
        for callback in self._callbacks:
            callback(collection)

    def _undone(self, keys: set[ObjectKey]) -> None:
        """Serve the kinds that there are after an undo, and tell who watches."""
        for key in keys:
            if key.collection == CRD_COLLECTION:
                self._custom_resources.resync(key.name, self._state.find(key))
        for callback in self._undo_callbacks:
            callback({key.collection for key in keys})

    def _restore(self) -> None:
        """Read the journal, serve the custom kinds in it, and queue what was left undone."""
        restored = list(self._state.restore())
        for resource in self.resources.all():
            self._state.collection(collection_name(resource))
        for key, obj in restored:
            if key.collection == CRD_COLLECTION:
                self._custom_resources.serve(obj)
        for key, obj in restored:
            self._housekeeper.note_restored(key, obj)

    def _create_missing(self) -> None:
        """Create what every cluster has from the start: four namespaces and two priority classes."""
        for name in START_NAMESPACES:
            self._create_first("", "namespaces", {"metadata": {"name": name}})
        for name, value in SYSTEM_CLASSES.items():
            self._create_first("scheduling.k8s.io", "priorityclasses", {"metadata": {"name": name}, "value": value})

    def _create_first(self, group: str, plural: str, body: Obj) -> None:
        resource = self.resources.find(group, "v1", plural)
        assert resource is not None
        if self._state.find(ObjectKey(resource.group_resource, "", body["metadata"]["name"])) is None:
            head = {"apiVersion": resource.api_version, "kind": resource.kind}
            self.create(resource, "", {**head, **body}, WriteOptions(field_manager="nodewright"))


def _target(resource: Resource, namespace: str, name: str, subresource: str) -> Target:
    if subresource and subresource not in resource.subresources:
        raise ApiError.page_not_found()
    if subresource not in WRITABLE:
        raise ApiError.method_not_allowed(resource, "update")
    return Target(resource, namespace, name, subresource)
