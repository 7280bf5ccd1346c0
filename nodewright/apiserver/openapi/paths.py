"""The paths of a resource: which verbs there are, and which query parameters each takes.

kubectl reads here whether a kind can be validated by the server: its PATCH must know `fieldValidation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from nodewright.apiserver.openapi.components import ANY_TYPE, DELETE_OPTIONS, EVICTION, SCALE, STATUS, TOKEN_REQUEST
from nodewright.apiserver.values import Obj, Resource

Reference = Callable[[str], Obj]

_PATCH_TYPES: Final = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
_STRATEGIC: Final = "application/strategic-merge-patch+json"


def _parameter(name: str, kind: str, description: str) -> Obj:
    schema: Obj = {"type": kind, "uniqueItems": True}
    return {"name": name, "in": "query", "description": description, "schema": schema}


_PRETTY: Final = _parameter("pretty", "string", "Whether to indent the answer.")
_WRITE: Final = (
    _parameter("dryRun", "string", "With the value All, nothing is stored."),
    _parameter("fieldManager", "string", "Who writes: the name under which fields are owned."),
    _parameter(
        "fieldValidation",
        "string",
        "What becomes of unknown and doubled fields: Ignore drops them, Warn says so too, Strict refuses.",
    ),
)
_FORCE: Final = _parameter("force", "boolean", "For server-side apply: take fields from their other owners.")
_LIST: Final = (
    _parameter("labelSelector", "string", "Only objects with such labels."),
    _parameter("fieldSelector", "string", "Only objects with such fields."),
    _parameter("limit", "integer", "At most so many objects; the rest by `continue`."),
    _parameter("continue", "string", "Where to go on, from the answer before."),
    _parameter("resourceVersion", "string", "How fresh the answer must be."),
    _parameter("resourceVersionMatch", "string", "How to understand resourceVersion."),
    _parameter("sendInitialEvents", "boolean", "For a watch: begin with what there is."),
    _parameter("allowWatchBookmarks", "boolean", "For a watch: bookmarks are understood."),
    _parameter("timeoutSeconds", "integer", "For a watch: how long at most."),
    _parameter("watch", "boolean", "Go on with changes."),
)
_DELETE: Final = (
    _parameter("dryRun", "string", "With the value All, nothing is deleted."),
    _parameter("gracePeriodSeconds", "integer", "How long the object may take to end."),
    _parameter("propagationPolicy", "string", "What becomes of dependents: Background, Foreground or Orphan."),
)
_NAME: Final[Obj] = {
    "name": "name",
    "in": "path",
    "description": "Name of the object.",
    "required": True,
    "schema": {"type": "string", "uniqueItems": True},
}
_NAMESPACE: Final[Obj] = {**_NAME, "name": "namespace", "description": "Namespace of the object."}


def resource_paths(resource: Resource, reference: Reference) -> Obj:
    """Give the paths of a resource and its subresources."""
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    collection = f"{root}/namespaces/{{namespace}}" if resource.namespaced else root
    collection += f"/{resource.plural}"
    item = f"{collection}/{{name}}"
    shared = [_NAMESPACE] if resource.namespaced else []
    of_kind = _Verbs(resource, reference)
    paths: Obj = {
        collection: {
            "get": of_kind.verb("list", resource.list_kind, (*_LIST, _PRETTY)),
            "post": of_kind.verb("post", resource.kind, (*_WRITE, _PRETTY), takes=resource.kind),
            "delete": of_kind.verb("deletecollection", STATUS, (*_DELETE, *_LIST), takes=DELETE_OPTIONS),
            "parameters": shared,
        },
        item: {
            **of_kind.read_and_write(resource.kind),
            "delete": of_kind.verb("delete", STATUS, _DELETE, takes=DELETE_OPTIONS),
            "parameters": [_NAME, *shared],
        },
    }
    for name in sorted(resource.subresources):
        paths[f"{item}/{name}"] = {**of_kind.subresource(name), "parameters": [_NAME, *shared]}
    if resource.namespaced:
        everywhere = of_kind.verb("list", resource.list_kind, (*_LIST, _PRETTY))
        paths[f"{root}/{resource.plural}"] = {"get": everywhere}
    return paths


_CREATED_BY: Final = {"eviction": EVICTION, "token": TOKEN_REQUEST, "binding": ANY_TYPE}


class _Verbs:
    """Writes operations on one resource."""

    def __init__(self, resource: Resource, reference: Reference) -> None:
        self._resource = resource
        self._reference = reference
        self._kind: Obj = {"group": resource.group, "version": resource.version, "kind": resource.kind}

    def subresource(self, name: str) -> Obj:
        """Give the verbs of a subresource."""
        if name in _CREATED_BY:
            made = _CREATED_BY[name]
            return {"post": self.verb("post", made, (*_WRITE, _PRETTY), takes=made)}
        return self.read_and_write(SCALE if name == "scale" else self._resource.kind)

    def read_and_write(self, shown: str) -> Obj:
        """Give GET, PUT and PATCH."""
        return {
            "get": self.verb("get", shown, (_PRETTY,)),
            "put": self.verb("put", shown, (*_WRITE, _PRETTY), takes=shown),
            "patch": self.verb("patch", shown, (*_WRITE, _FORCE, _PRETTY), takes=ANY_TYPE),
        }

    def verb(self, action: str, gives: str, parameters: tuple[Obj, ...], takes: str = "") -> Obj:
        """Give one operation: `gives` and `takes` name what is sent back and forth."""
        content: Obj = {"schema": self._reference(gives)}
        operation: Obj = {
            "description": f"{action} {self._resource.kind}",
            "tags": [f"{self._resource.group or 'core'}_{self._resource.version}"],
            "parameters": list(parameters),
            "responses": {"200": {"description": "OK", "content": {"application/json": content}}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self._kind,
        }
        if takes:
            operation["requestBody"] = {"content": self._bodies(action, takes), "required": action != "delete"}
        return operation

    def _bodies(self, action: str, takes: str) -> Obj:
        schema: dict[str, Any] = {"schema": self._reference(takes)}
        if action != "patch":
            return {"application/json": schema}
        types = (*_PATCH_TYPES, _STRATEGIC) if self._resource.builtin else _PATCH_TYPES
        return dict.fromkeys(types, schema)
