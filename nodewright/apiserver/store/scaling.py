"""How many, and how many does it want? The scale subresource (autoscaling/v1 Scale) over a kind's own fields."""

from __future__ import annotations

from typing import Any

from nodewright.apiserver.store.copying import deep_copy
from nodewright.apiserver.store.envelope import check_envelope
from nodewright.apiserver.store.kernel import Kernel
from nodewright.apiserver.store.metadata import invalid
from nodewright.apiserver.store.scale_paths import read_path, write_path
from nodewright.apiserver.store.versions import as_served
from nodewright.apiserver.store.writing import Target, Writer
from nodewright.apiserver.values import (
    ApiError,
    Obj,
    PatchRequest,
    Resource,
    ScalePaths,
    WriteOptions,
    Written,
)

_SCALE = Resource("autoscaling", "v1", "Scale", "scales", "scale", "ScaleList", namespaced=True)
_HEAD = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class Scaler:
    """Reads and writes scales. A written scale becomes an update of the object under it."""

    def __init__(self, kernel: Kernel, writer: Writer) -> None:
        self._kernel = kernel
        self._writer = writer

    def get(self, resource: Resource, namespace: str, name: str) -> Obj:
        """Give an object's scale. Raises ApiError 404 (no object, no scale), 500 (no replicas in the object)."""
        paths = _paths(resource)
        obj = as_served(resource, self._kernel.require(resource, namespace, name))
        return _scale_of(resource, paths, obj)

    def update(self, target: Target, body: Any, options: WriteOptions) -> Written:
        """Set the replicas from a Scale. Raises ApiError 400, 404, 409 and 422 as an update does."""
        check_envelope(_SCALE, target.namespace, target.name, body)
        return self._set(target, body, options)

    def patch(self, target: Target, request: PatchRequest) -> Written:
        """Patch the Scale of an object. Raises ApiError as `update`."""
        if request.type == "apply":
            raise ApiError.unsupported_media_type("server-side apply is not supported on the scale subresource")
        paths = _paths(target.resource)
        obj = as_served(target.resource, self._kernel.require(target.resource, target.namespace, target.name))
        current = _scale_of(target.resource, paths, obj, missing_is_zero=True)
        patching = self._kernel.seams.patching
        if request.type == "json":
            patched = patching.apply_json(current, request.body)
        elif request.type == "strategic":
            patched = patching.apply_strategic(_SCALE, current, request.body)
        else:
            patched = patching.apply_merge(current, request.body)
        check_envelope(_SCALE, target.namespace, target.name, patched)
        return self._set(target, patched, request.options)

    def _set(self, target: Target, scale: Obj, options: WriteOptions) -> Written:
        resource = target.resource
        paths = _paths(resource)
        old = as_served(resource, self._kernel.require(resource, target.namespace, target.name))
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        if type(replicas) is not int:
            raise ApiError.bad_request("Scale.spec.replicas must be an integer")
        if replicas < 0 and resource.builtin:
            fault = invalid("spec.replicas", str(replicas), "must be greater than or equal to 0")
            raise ApiError.invalid("Scale.autoscaling", target.name, [fault])
        stated = scale.get("metadata") or {}
        new = deep_copy(old)
        write_path(new, paths.spec_replicas, replicas)
        new["metadata"]["resourceVersion"] = stated.get("resourceVersion") or old["metadata"]["resourceVersion"]
        if stated.get("uid"):
            new["metadata"]["uid"] = stated["uid"]
        written = self._writer.replace(target, new, options)
        return Written(_scale_of(resource, paths, written.obj), written.warnings)


def _scale_of(resource: Resource, paths: ScalePaths, obj: Obj, missing_is_zero: bool = False) -> Obj:
    wanted = read_path(obj, paths.spec_replicas)
    if wanted is None and not missing_is_zero:
        raise ApiError.internal(f'the spec replicas field "{paths.spec_replicas}" does not exist')
    status: Obj = {"replicas": read_path(obj, paths.status_replicas) or 0}
    selector = _selector(resource, paths, obj)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: obj["metadata"][field] for field in _HEAD if field in obj["metadata"]},
        # autoscaling/v1 leaves a zero out.
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }


def _selector(resource: Resource, paths: ScalePaths, obj: Obj) -> str:
    if not resource.builtin:
        found = read_path(obj, paths.label_selector) if paths.label_selector else ""
        return found if isinstance(found, str) else ""
    selector = (obj.get("spec") or {}).get("selector") or {}
    if resource.kind == "ReplicationController":
        return ",".join(f"{key}={selector[key]}" for key in sorted(selector))
    return selector_text(selector)


def selector_text(selector: Obj) -> str:
    """Write a metav1.LabelSelector as a query-string selector, keys in order."""
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        key, values = expression.get("key", ""), ",".join(sorted(expression.get("values") or ()))
        text = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }.get(expression.get("operator", ""), "")
        parts.append((key, text))
    return ",".join(text for _, text in sorted(parts))


def _paths(resource: Resource) -> ScalePaths:
    if resource.scale is None:
        raise ApiError.page_not_found()
    return resource.scale
