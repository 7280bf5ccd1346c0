"""What is left in a namespace, or of a custom kind, that is being deleted? Contents first, then the thing itself.

Follows kube-controller-manager's namespace controller and apiextensions' finalizer controller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from nodewright.apiserver.store.change_log import Change
from nodewright.apiserver.store.custom_kinds import CLEANUP_FINALIZER, CRD_COLLECTION
from nodewright.apiserver.store.deleting import Deleter
from nodewright.apiserver.store.kernel import Kernel
from nodewright.apiserver.store.registry import collection_name
from nodewright.apiserver.store.releasing import Releaser
from nodewright.apiserver.store.selection import key_of
from nodewright.apiserver.store.state import ObjectKey
from nodewright.apiserver.store.work_queue import WorkQueue
from nodewright.apiserver.values import DeleteOptions, Obj, Resource

NAMESPACE = "namespace"
CUSTOM_KIND = "custom kind"
PORTION = 50
"""Objects that one step deletes."""


class Drainer:
    """Empties what is being deleted, a portion at a time."""

    def __init__(self, kernel: Kernel, deleter: Deleter, releaser: Releaser, queue: WorkQueue) -> None:
        self._kernel = kernel
        self._deleter = deleter
        self._releaser = releaser
        self._queue = queue
        self._terminating: set[str] = set()
        self._swept: set[str] = set()
        """Namespaces and CRDs (whose names have dots) all of whose contents are deleted or marked."""
        self._reported: dict[str, int] = {}
        self._due: dict[ObjectKey, datetime] = {}
        """Namespaces whose time has not come, in the order of their deletion."""

    def note(self, collection: str, change: Change) -> None:
        """Queue namespaces and CRDs that began to go, and those from which something went."""
        self._note_container(collection, change)
        if change.removed:
            if change.namespace in self._terminating:
                self._queue.add(NAMESPACE, ObjectKey("namespaces", "", change.namespace))
            self._queue_kind(collection)

    def note_restored(self, key: ObjectKey, obj: Obj) -> None:
        """Queue an object that was read from the journal in the middle of its deletion."""
        if obj["metadata"].get("deletionTimestamp"):
            self._begin(key)

    @property
    def next_due(self) -> datetime | None:
        """When the next namespace begins to drain."""
        return next(iter(self._due.values()), None)

    def fall_due(self) -> None:
        """Queue the namespaces whose time has come."""
        now = self._kernel.clock() if self._due else None
        while now is not None and self._due and next(iter(self._due.values())) <= now:
            key = next(iter(self._due))
            del self._due[key]
            self._terminating.add(key.name)
            self._queue.add(NAMESPACE, key)

    def look_at_namespace(self, key: ObjectKey) -> None:
        """Delete a portion of what is in a namespace, and the namespace once nothing is."""
        namespace = self._kernel.state.find(key)
        if namespace is None or not namespace["metadata"].get("deletionTimestamp"):
            self._forget(key)
            return
        if key.name not in self._swept and not self._sweep_namespace(key):
            return
        itself = self._kernel.registry.by_kind("", "v1", "Namespace")
        assert itself is not None
        remaining = self._remaining(key.name)
        if remaining:
            self._report(itself, key, namespace, remaining)
            return
        finalizers = [f for f in namespace["spec"].get("finalizers") or () if f != "kubernetes"]
        spec = {**namespace["spec"], "finalizers": finalizers}
        if not finalizers:
            del spec["finalizers"]
        if spec != namespace["spec"]:
            self._releaser.settle(itself, key, {**namespace, "spec": spec})

    def look_at_kind(self, key: ObjectKey) -> None:
        """Delete a portion of a kind's objects, and let its CRD go once there are none."""
        crd = self._kernel.state.find(key)
        if crd is None or not crd["metadata"].get("deletionTimestamp"):
            self._forget(key)
            return
        if key.name not in self._swept and not self._sweep_kind(key):
            return
        if not len(self._kernel.state.collection(key.name)) or not self._kernel.registry.custom(key.name):
            definition = self._kernel.registry.by_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
            assert definition is not None
            self._releaser.drop_finalizer(definition, key, CLEANUP_FINALIZER)

    def _sweep_namespace(self, key: ObjectKey) -> bool:
        """Delete a portion of a namespace's contents; True once all of it is deleted or marked."""
        undeleted = (found for found in self._contents(key.name) if not found[1]["metadata"].get("deletionTimestamp"))
        portion = list(islice(undeleted, PORTION))
        for resource, obj in portion:
            self._deleter.delete(resource, *key_of(obj), DeleteOptions("Background"))
        return self._swept_portion(NAMESPACE, key, len(portion))

    def _sweep_kind(self, key: ObjectKey) -> bool:
        """Delete a portion of a kind's objects; True once all of them are deleted or marked."""
        resources = self._kernel.registry.custom(key.name)
        objects = self._kernel.state.collection(key.name).scan("") if resources else ()
        undeleted = (obj for obj in objects if not obj["metadata"].get("deletionTimestamp"))
        portion = list(islice(undeleted, PORTION))
        for obj in portion:
            self._deleter.delete(resources[0], *key_of(obj), DeleteOptions("Background"))
        return self._swept_portion(CUSTOM_KIND, key, len(portion))

    def _swept_portion(self, task: str, key: ObjectKey, size: int) -> bool:
        if size == PORTION:
            self._queue.add(task, key)
            return False
        # Nothing can be created there any more, so that one sweep is enough.
        self._swept.add(key.name)
        return True

    def _note_container(self, collection: str, change: Change) -> None:
        key = ObjectKey(collection, change.namespace, change.name)
        if collection in ("namespaces", CRD_COLLECTION) and change.removed:
            self._forget(key)
        elif not change.removed and change.obj["metadata"].get("deletionTimestamp"):
            self._begin(key)

    def _begin(self, key: ObjectKey) -> None:
        if key.collection == "namespaces":
            if key.name in self._terminating:
                self._queue.add(NAMESPACE, key)
            else:
                self._due.setdefault(key, self._kernel.clock() + self._kernel.options.namespace_grace)
                self.fall_due()
        elif key.collection == CRD_COLLECTION:
            self._queue.add(CUSTOM_KIND, key)

    def _forget(self, key: ObjectKey) -> None:
        self._terminating.discard(key.name)
        self._swept.discard(key.name)
        self._reported.pop(key.name, None)
        self._due.pop(key, None)

    def _queue_kind(self, collection: str) -> None:
        crd = self._kernel.state.collection(CRD_COLLECTION).get("", collection)
        if crd is not None and crd["metadata"].get("deletionTimestamp"):
            self._queue.add(CUSTOM_KIND, ObjectKey(CRD_COLLECTION, "", collection))

    def _remaining(self, namespace: str) -> Counter[str]:
        counts: Counter[str] = Counter()
        for resource in self._namespaced():
            count = self._kernel.state.collection(collection_name(resource)).count(namespace)
            if count:
                counts[resource.group_resource] = count
        return counts

    def _contents(self, namespace: str) -> Iterator[tuple[Resource, Obj]]:
        for resource in self._namespaced():
            for obj in self._kernel.state.collection(collection_name(resource)).scan(namespace):
                yield resource, obj

    def _namespaced(self) -> Iterator[Resource]:
        """Give one resource for each collection of namespaced objects."""
        seen = set()
        for resource in self._kernel.registry.all():
            name = collection_name(resource)
            if resource.namespaced and name not in seen:
                seen.add(name)
                yield resource

    def _report(self, itself: Resource, key: ObjectKey, namespace: Obj, remaining: Counter[str]) -> None:
        """Write down what is left: again only when half is gone, so that a large namespace costs few writes."""
        count = sum(remaining.values())
        if 2 * count <= self._reported.get(key.name, 2 * count):
            self._reported[key.name] = count
            self._releaser.set_status(itself, key, self._remaining_status(namespace, remaining))

    def _finalizers_in(self, name: str) -> Counter[str]:
        """Count the finalizers of all that is in a namespace."""
        return Counter(
            finalizer for _, obj in self._contents(name) for finalizer in obj["metadata"].get("finalizers") or ()
        )

    def _remaining_status(self, namespace: Obj, remaining: Counter[str]) -> Obj:
        finalizers = self._finalizers_in(namespace["metadata"]["name"])
        left = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(remaining.items()))
        held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
        wanted = [("NamespaceContentRemaining", "SomeResourcesRemain", f"Some resources are remaining: {left}")]
        if held:
            message = f"Some content in the namespace has finalizers remaining: {held}"
            wanted.append(("NamespaceFinalizersRemaining", "SomeFinalizersRemain", message))
        status = namespace.get("status") or {}
        known = {c.get("type"): c for c in status.get("conditions") or ()}
        conditions = []
        for kind, reason, message in wanted:
            since = known.get(kind, {}).get("lastTransitionTime") or self._kernel.now()
            conditions.append(
                {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": since}
            )
        return {**status, "conditions": conditions}
