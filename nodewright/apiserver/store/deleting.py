"""How do objects go? Deletes with finalizers, propagation, grace periods and preconditions."""

from __future__ import annotations

from datetime import datetime, timedelta

from nodewright.apiserver.store import custom_kinds, metadata
from nodewright.apiserver.store.custom_resources import CustomResources
from nodewright.apiserver.store.kernel import Kernel
from nodewright.apiserver.store.metadata import FOREGROUND, ORPHAN, timestamp
from nodewright.apiserver.store.selection import key_of, select
from nodewright.apiserver.store.state import ObjectKey
from nodewright.apiserver.store.versions import as_served
from nodewright.apiserver.values import ApiError, Cause, DeleteOptions, ListOptions, Obj, Resource

IMMORTAL_NAMESPACES = frozenset(("default", "kube-system", "kube-public"))
START_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PROPAGATIONS = ("", "Background", "Foreground", "Orphan")
_WITHOUT_GRACE = ("Namespace", "CustomResourceDefinition.apiextensions.k8s.io")
"""Kinds whose deletion upstream has a way of its own, with no word about grace."""
_MAX_GRACE = 10 * 365 * 86_400
"""Seconds. Ten years are enough for every kubelet, and a moment that far away is still one that can be written."""
_ENDED_PHASES = ("Succeeded", "Failed")


class Deleter:
    """Deletes objects, or marks them until what holds them lets go."""

    def __init__(self, kernel: Kernel, crds_: CustomResources) -> None:
        self._kernel = kernel
        self._custom_resources = crds_

    def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> Obj:
        """Delete one object. Gives the object if it stays for now, otherwise a Status (or the object, for Pods).

        Raises ApiError 403 (immortal namespace), 404, 409 (precondition).
        """
        kernel = self._kernel
        _check_options(options)
        old = as_served(resource, kernel.require(resource, namespace, name))
        metadata.check_preconditions(resource, name, options.uid, options.resource_version, old["metadata"])
        if resource.group_kind == "Namespace" and name in IMMORTAL_NAMESPACES:
            raise ApiError.forbidden(resource, name, "this namespace may not be deleted")
        finalizers = self._finalizers(resource, old, options)
        grace = self._grace(resource, old, options)
        if finalizers or grace or _holds_itself(resource, old):
            marked = self._marked(resource, old, finalizers, grace)
            if options.dry_run or marked is old:
                return marked
            return kernel.put(resource, kernel.key(resource, namespace, name), marked)
        gone = old if options.dry_run else self.remove(resource, kernel.key(resource, namespace, name))
        return _answer(kernel, resource, gone)

    def delete_collection(
        self, resource: Resource, namespace: str, selection: ListOptions, options: DeleteOptions
    ) -> list[Obj]:
        """Delete all selected objects; gives them as they were."""
        chosen = select(resource, namespace, selection.label_selector, selection.field_selector)
        collection = self._kernel.state.collection(self._kernel.key(resource, "", "").collection)
        found = [obj for obj in collection.scan(chosen.namespace) if chosen.accepts(obj)]
        for obj in found:
            self.delete(resource, *key_of(obj), options)
        return [as_served(resource, obj) for obj in found]

    def remove(self, resource: Resource, key: ObjectKey) -> Obj:
        """Remove an object now, whatever holds it; gives its last state."""
        tombstone = as_served(resource, self._kernel.state.remove(key))
        self._custom_resources.removed(resource, tombstone)
        return tombstone

    def _finalizers(self, resource: Resource, old: Obj, options: DeleteOptions) -> list[str]:
        """Give the finalizers after this delete: propagation is kept as one of the two that the collector serves."""
        present = list(old["metadata"].get("finalizers") or ())
        kept = [finalizer for finalizer in present if finalizer not in (FOREGROUND, ORPHAN)]
        propagation = options.propagation
        if not propagation and FOREGROUND in present:
            propagation = "Foreground"
        elif not propagation and (ORPHAN in present or self._kernel.registry.traits(resource).orphans_dependents):
            propagation = "Orphan"
        if propagation == "Foreground":
            kept.append(FOREGROUND)
        elif propagation == "Orphan":
            kept.append(ORPHAN)
        # As the real server, a CRD gets the finalizer that waits for its objects with the first delete.
        is_crd = resource.group_kind.startswith("CustomResourceDefinition.")
        if is_crd and not old["metadata"].get("deletionTimestamp") and custom_kinds.CLEANUP_FINALIZER not in kept:
            kept.append(custom_kinds.CLEANUP_FINALIZER)
        return kept

    def _grace(self, resource: Resource, old: Obj, options: DeleteOptions) -> int:
        """Give the seconds that a kubelet is given to stop this Pod; 0 for all else."""
        if resource.group_kind != "Pod" or not self._kernel.options.kubelets_confirm_deletes:
            return 0
        spec, status = old.get("spec") or {}, old.get("status") or {}
        if not spec.get("nodeName") or status.get("phase") in _ENDED_PHASES:
            return 0
        wanted = options.grace_seconds
        if wanted is None:
            wanted = spec.get("terminationGracePeriodSeconds", 30)
        return min(max(0, int(wanted)), _MAX_GRACE)

    def _marked(self, resource: Resource, old: Obj, finalizers: list[str], grace: int) -> Obj:
        """Give the object marked as deleting; the same object if it already is so."""
        before = old["metadata"]
        meta = dict(before)
        now = self._kernel.clock()
        _set_deadline(resource, meta, now, grace)
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
        marked = {**old, "metadata": meta}
        if resource.group_kind == "Namespace":
            marked["status"] = {**(old.get("status") or {}), "phase": "Terminating"}
        elif resource.group_kind.startswith("CustomResourceDefinition.") and not before.get("deletionTimestamp"):
            marked["status"] = custom_kinds.terminating(old, timestamp(now))
        return old if marked == old else marked


def _set_deadline(resource: Resource, meta: Obj, now: datetime, grace: int) -> None:
    """Say in the metadata that the object is being deleted, and by when; a later delete may only bring that forward."""
    if not meta.get("deletionTimestamp"):
        meta["deletionTimestamp"] = timestamp(now + timedelta(seconds=grace))
        if resource.group_kind not in _WITHOUT_GRACE:
            meta["deletionGracePeriodSeconds"] = grace
        if "generation" in meta:
            meta["generation"] += 1
    elif grace < meta.get("deletionGracePeriodSeconds", 0):
        meta["deletionTimestamp"] = timestamp(now + timedelta(seconds=grace))
        meta["deletionGracePeriodSeconds"] = grace


def _check_options(options: DeleteOptions) -> None:
    found = []
    if options.propagation not in _PROPAGATIONS:
        message = f'Unsupported value: "{options.propagation}": supported values: '
        message += '"Foreground", "Background", "Orphan", "nil"'
        found.append(Cause("propagationPolicy", "FieldValueNotSupported", message))
    if found:
        raise ApiError.invalid("DeleteOptions.meta.k8s.io", "", found)


def _holds_itself(resource: Resource, obj: Obj) -> bool:
    return resource.group_kind == "Namespace" and bool((obj.get("spec") or {}).get("finalizers"))


def _answer(kernel: Kernel, resource: Resource, obj: Obj) -> Obj:
    if kernel.registry.traits(resource).returns_deleted:
        return obj
    details: Obj = {"name": obj["metadata"]["name"]}
    if resource.group:
        details["group"] = resource.group
    details |= {"kind": resource.plural, "uid": obj["metadata"]["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
