"""How does a stored object look in the version that a client asks for?

Custom resources convert by strategy None: only apiVersion changes. Events are stored as core/v1, and
events.k8s.io/v1 is the same object under other field names (kubernetes/pkg/apis/events/v1/conversion.go).
"""

from __future__ import annotations

from nodewright.apiserver.values import Obj, Resource

_EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES = {new: old for old, new in _EVENT_NAMES.items()}


def as_served(resource: Resource, stored: Obj) -> Obj:
    """Give a stored object in the version of `resource`; the same object if it is stored so."""
    if stored["apiVersion"] == resource.api_version:
        return stored
    if resource.group == "events.k8s.io":
        return {_EVENT_NAMES.get(k, k): v for k, v in stored.items()} | {"apiVersion": resource.api_version}
    return {**stored, "apiVersion": resource.api_version}


def as_stored(resource: Resource, obj: Obj, storage_version: str) -> Obj:
    """Give an object that came in the version of `resource` as it is stored, in `storage_version`."""
    if resource.group == "events.k8s.io":
        return {_CORE_NAMES.get(k, k): v for k, v in obj.items()} | {"apiVersion": "v1"}
    if obj["apiVersion"] == storage_version:
        return obj
    return {**obj, "apiVersion": storage_version}


def stored_field(resource: Resource, path: tuple[str, ...]) -> tuple[str, ...]:
    """Translate the path of a field selector into the stored object's names."""
    if resource.group == "events.k8s.io":
        return (_CORE_NAMES.get(path[0], path[0]), *path[1:])
    return path
