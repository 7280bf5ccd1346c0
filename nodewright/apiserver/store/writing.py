"""How do objects come to be and change? Create, update and patch, with admission and validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nodewright.apiserver.store import builtin_checks, builtin_defaults, metadata
from nodewright.apiserver.store.admission import admit_create, check_options
from nodewright.apiserver.store.copying import deep_copy
from nodewright.apiserver.store.custom_resources import CustomResources
from nodewright.apiserver.store.envelope import check_envelope, check_patched, part
from nodewright.apiserver.store.kernel import Kernel
from nodewright.apiserver.store.names import generated_name
from nodewright.apiserver.store.priorities import resolve_priority
from nodewright.apiserver.store.replacing import merge_old, only_times_differ, same_content
from nodewright.apiserver.store.scale_paths import scale_faults
from nodewright.apiserver.store.state import ObjectKey
from nodewright.apiserver.store.versions import as_served
from nodewright.apiserver.values import ApiError, Obj, PatchRequest, Resource, WriteOptions, Written

MAX_NAME_ATTEMPTS = 8
"""Names that are tried for one generateName (apiserver/pkg/registry/rest/create.go)."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a write is aimed at. `name` is "" on create."""

    resource: Resource
    namespace: str
    name: str
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Intent:
    """How a write is meant: `operation` is "Update" or "Apply" ("Apply" has its field ownership done already).

    `door` is the subresource that managedFields name; it is the target's, but for scale, which writes the object.
    """

    options: WriteOptions
    operation: str = "Update"
    warnings: tuple[str, ...] = ()
    managed_subresource: str = ""


class Writer:
    """Writes single objects. Bodies are copied at the door; what is returned is the stored object."""

    def __init__(self, kernel: Kernel, crds_: CustomResources) -> None:
        self._kernel = kernel
        self._custom_resources = crds_

    def create(self, resource: Resource, namespace: str, body: Any, options: WriteOptions) -> Written:
        """Create an object.

        Raises ApiError 400, 403 (namespace terminating), 404 (no namespace), 405, 409 (exists), 422.
        """
        check_options(options)
        check_envelope(resource, namespace, "", body)
        if metadata.states_revision((body.get("metadata") or {}).get("resourceVersion", "")):
            raise ApiError.bad_request("resourceVersion should not be set on objects to be created")
        admit_create(self._kernel, resource, namespace, (body.get("metadata") or {}).get("name", ""))
        obj, warnings = self._kernel.shapes.fit(resource, deep_copy(body), options.field_validation)
        return self._insert(Target(resource, namespace, ""), obj, Intent(options, "Update", warnings))

    def update(self, target: Target, body: Any, options: WriteOptions) -> Written:
        """Replace an object, or its status. Raises ApiError 400, 404, 409, 422."""
        check_options(options)
        resource = target.resource
        check_envelope(resource, target.namespace, target.name, body)
        old = self._kernel.find(resource, target.namespace, target.name)
        if old is None:
            if target.subresource or not self._kernel.registry.traits(resource).creates_on_update:
                raise ApiError.not_found(resource, target.name)
            return self.create(resource, target.namespace, body, options)
        metadata.check_uid(resource, target.name, body["metadata"].get("uid", ""), old["metadata"])
        new, warnings = self._kernel.shapes.fit(resource, deep_copy(body), options.field_validation)
        return self._replace(target, old, new, Intent(options, "Update", warnings))

    def replace(self, target: Target, new: Obj, options: WriteOptions) -> Written:
        """Store a state that was made here from the old one, which is there. Raises ApiError 409, 422."""
        check_options(options)
        old = self._kernel.require(target.resource, target.namespace, target.name)
        whole = Target(target.resource, target.namespace, target.name)
        return self._replace(whole, old, new, Intent(options, managed_subresource=target.subresource))

    def patch(self, target: Target, request: PatchRequest) -> Written:
        """Patch an object, or its status; "apply" creates what is not there.

        Raises ApiError 400, 404, 409 (conflicts of field managers too), 415 (strategic on a custom resource), 422.
        """
        check_options(request.options, request)
        if request.type == "apply":
            return self._apply(target, request)
        old = self._kernel.require(target.resource, target.namespace, target.name)
        patched = self._patched(target.resource, as_served(target.resource, old), request)
        check_patched(target.resource, target.namespace, target.name, patched)
        new, warnings = self._kernel.shapes.fit(target.resource, patched, request.options.field_validation)
        return self._replace(target, old, new, Intent(request.options, "Update", warnings))

    def bind(self, namespace: str, name: str, body: Any) -> Obj:
        """Set a Pod's node from a Binding, once; gives a Status of code 201. Raises ApiError 400, 404, 409."""
        pods = self._kernel.registry.by_kind("", "v1", "Pod")
        assert pods is not None
        node = part(body, "target").get("name") if isinstance(body, dict) else None
        if not node or not isinstance(node, str):
            raise ApiError.bad_request("target.name: Required value")
        pod = self._kernel.require(pods, namespace, name)
        why = _unbindable(pod, part(body, "metadata"))
        if why:
            raise ApiError.conflict(pods, name, why)
        conditions = [c for c in (pod.get("status") or {}).get("conditions") or () if c.get("type") != "PodScheduled"]
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": self._kernel.now()}
        spec = {**(pod.get("spec") or {}), "nodeName": node}
        status = {**(pod.get("status") or {}), "conditions": [*conditions, scheduled]}
        new = {**pod, "metadata": dict(pod["metadata"]), "spec": spec, "status": status}
        self._kernel.put(pods, self._kernel.key(pods, namespace, name), new)
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    def _patched(self, resource: Resource, current: Obj, request: PatchRequest) -> Obj:
        patching = self._kernel.seams.patching
        body = deep_copy(request.body)
        if request.type == "json":
            return patching.apply_json(current, body)
        if request.type == "merge":
            return patching.apply_merge(current, body)
        if not resource.builtin:
            raise ApiError.unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
            )
        return patching.apply_strategic(resource, current, body)

    def _apply(self, target: Target, request: PatchRequest) -> Written:
        resource = target.resource
        body = request.body
        old = self._kernel.find(resource, target.namespace, target.name)
        if isinstance(body, dict) and isinstance(body.get("metadata", {}), dict):
            known = {} if old is None else {"name": target.name}
            body = {**body, "metadata": {**known, **(body.get("metadata") or {})}}
        check_envelope(resource, target.namespace, target.name, body)
        stated = body["metadata"]
        if stated.get("managedFields"):
            raise ApiError.bad_request("metadata.managedFields must be nil")
        if old is None and target.subresource:
            raise ApiError.not_found(resource, target.name)
        if old is None and stated.get("uid"):
            text = f"uid mismatch: the provided object specified uid {stated['uid']}, and no existing object was found"
            raise ApiError.conflict(resource, target.name, text)
        live = None if old is None else as_served(resource, old)
        applied = deep_copy(body)
        warnings: tuple[str, ...] = ()
        if resource.builtin:  # the schema of a custom kind says itself what it does not declare
            applied, warnings = self._kernel.shapes.known(resource, applied, request.options.field_validation)
        author = self._kernel.author(request.options, "Apply", target.subresource)
        merged = self._kernel.seams.ownership.apply(resource, live, applied, author, request.force)
        new, _ = self._kernel.shapes.fit(resource, merged, "Ignore")
        intent = Intent(request.options, "Apply", warnings)
        if old is not None:
            return self._replace(target, old, new, intent)
        admit_create(self._kernel, resource, target.namespace, target.name)
        return self._insert(target, new, intent)

    def _insert(self, target: Target, obj: Obj, intent: Intent) -> Written:
        kernel, resource = self._kernel, target.resource
        obj = dict(obj)
        key = self._name(target, obj)
        traits = kernel.registry.traits(resource)
        now = kernel.now()
        if "status" in resource.subresources and not traits.keeps_status_on_create:
            obj.pop("status", None)
        metadata.fill_new(obj["metadata"], kernel.new_uid(), now)
        if intent.operation != "Apply":
            builtin_defaults.decode(resource, obj)
            obj["metadata"].pop("managedFields", None)
            author = kernel.author(intent.options, intent.operation, "")
            obj = kernel.seams.ownership.track(resource, None, obj, author)
            obj["metadata"] = dict(obj["metadata"])
        obj["metadata"].pop("generation", None)
        if traits.counts_generation:
            obj["metadata"]["generation"] = 1
        builtin_defaults.prepare_new(resource, obj)
        resolve_priority(kernel, resource, obj)
        self._custom_resources.prepare(resource, obj, None, now)
        self._check(resource, key.name, obj, None)
        taken = kernel.state.find(key)
        if taken is not None:
            raise ApiError.already_exists(resource, key.name, bool(taken["metadata"].get("deletionTimestamp")))
        if intent.options.dry_run:
            return Written(obj, intent.warnings, created=True)
        stored = kernel.put(resource, key, obj)
        self._custom_resources.changed(resource, stored)
        return Written(stored, intent.warnings, created=True)

    def _name(self, target: Target, obj: Obj) -> ObjectKey:
        """Give the object its name and namespace, and the key under which it will lie."""
        kernel, resource = self._kernel, target.resource
        meta = obj["metadata"] = dict(obj.get("metadata") or {})
        meta.pop("namespace", None)
        if resource.namespaced:
            meta["namespace"] = target.namespace
        prefix = meta.get("generateName")
        if meta.get("name") or not prefix:
            return kernel.key(resource, target.namespace, meta.get("name", ""))
        for _ in range(MAX_NAME_ATTEMPTS):
            meta["name"] = generated_name(prefix, kernel.new_uid())
            key = kernel.key(resource, target.namespace, meta["name"])
            if kernel.state.find(key) is None:
                return key
        raise ApiError.already_exists(resource, meta["name"])

    def _replace(self, target: Target, stored: Obj, new: Obj, intent: Intent) -> Written:
        kernel, resource = self._kernel, target.resource
        old = as_served(resource, stored)
        traits = kernel.registry.traits(resource)
        meta = dict(new.get("metadata") or {})
        new = {**new, "metadata": meta}
        revision = meta.get("resourceVersion", "")
        if revision == "0":  # the same as none, for the storage of a real server
            revision = ""
        if not revision and not traits.unconditional_update:
            cause = metadata.invalid("metadata.resourceVersion", "0", "must be specified for an update")
            raise ApiError.invalid(resource.group_resource, target.name, [cause])
        metadata.check_revision(resource, target.name, revision, old["metadata"])
        new = merge_old(resource, traits, new, old, target.subresource)
        metadata.carry_over(new["metadata"], old["metadata"])
        builtin_defaults.prepare_changed(resource, new, old)
        now = kernel.now()
        self._custom_resources.prepare(resource, new, old, now)
        self._check_update(resource, target.name, new, old)
        if _unchanged(new, old, intent.operation):
            return Written(old, intent.warnings)
        if intent.operation != "Apply":
            author = kernel.author(intent.options, intent.operation, intent.managed_subresource or target.subresource)
            new = kernel.seams.ownership.track(resource, old, new, author)
            new["metadata"] = dict(new["metadata"])
        if traits.counts_generation and not same_content(new, old, ("metadata", "status")):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if intent.options.dry_run:
            return Written(new, intent.warnings)
        return Written(self._store(target, new), intent.warnings)

    def _store(self, target: Target, new: Obj) -> Obj:
        """Put the new state, or remove the object if this write took away what had held it."""
        kernel, resource = self._kernel, target.resource
        key = kernel.key(resource, target.namespace, target.name)
        if is_released(resource, new):
            kernel.state.remove(key)  # the answer keeps the version that was changed, as upstream
            self._custom_resources.removed(resource, new)
            return new
        stored = kernel.put(resource, key, new)
        self._custom_resources.changed(resource, stored)
        return stored

    def _check(self, resource: Resource, name: str, obj: Obj, old: Obj | None) -> None:
        causes = metadata.faults(resource, obj["metadata"])
        causes += self._kernel.shapes.faults(resource, obj, old)
        causes += scale_faults(resource, obj)
        causes += builtin_checks.faults(resource, obj, old)
        causes += self._custom_resources.faults(resource, obj, old)
        if causes:
            # The note that rules were not checked comes last, whoever found the faults before it.
            raise ApiError.invalid(resource.group_kind, name, sorted(causes, key=lambda c: c.field == "<nil>"))

    def _check_update(self, resource: Resource, name: str, new: Obj, old: Obj) -> None:
        causes = metadata.update_faults(new["metadata"], old["metadata"])
        if causes:
            raise ApiError.invalid(resource.group_kind, name, causes)
        if same_content(new, old, ("metadata",)):
            # Content that did not change is not judged again, as the real server's ratcheting has it.
            causes = metadata.faults(resource, new["metadata"])
            causes += self._custom_resources.faults(resource, new, old)
            if causes:
                raise ApiError.invalid(resource.group_kind, name, causes)
            return
        self._check(resource, name, new, old)


def _unchanged(new: Obj, old: Obj, operation: str) -> bool:
    """Say whether a write changes nothing, so that nothing is stored.

    To state other managedFields is a change: kubectl does so to turn client-side apply into server-side apply.
    """
    if operation == "Apply":
        return only_times_differ(new, old)
    stated, before = new["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    return same_content(new, old) and stated == before


def is_released(resource: Resource, obj: Obj) -> bool:
    """Say whether nothing holds a deleting object any more: no finalizer, no grace period to wait for."""
    meta = obj["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers"):
        return False
    if resource.group_kind == "Namespace" and (obj.get("spec") or {}).get("finalizers"):
        return False
    return not meta.get("deletionGracePeriodSeconds")


def _unbindable(pod: Obj, expected: Obj) -> str:
    """Why a Pod can't be bound as the metadata of a Binding expects it; "" if it can."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    for field, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if expected.get(field) and expected[field] != meta[field]:
            return (
                f"Precondition failed: {word} in precondition: {expected[field]}, {word} in object meta: {meta[field]}"
            )
    if meta.get("deletionTimestamp"):
        return f"pod {meta['name']} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {meta["name"]} is already assigned to node "{spec["nodeName"]}"'
    return f"pod {meta['name']} has non-empty .spec.schedulingGates" if spec.get("schedulingGates") else ""
