"""Short words for the requests that stories are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tests.differential.speech import PATCHES, Request
from tests.kubectl.manifests import GROUP

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
JSON = {"Content-Type": "application/json"}


def _query(query: dict[str, str]) -> str:
    """``continue_`` would be a keyword. References to earlier answers stay as they are."""
    pairs = [f"{key.rstrip('_')}={value if value.startswith('{') else quote(value)}" for key, value in query.items()]
    return f"?{'&'.join(pairs)}" if pairs else ""


@dataclass(frozen=True, slots=True)
class Collection:
    """Objects of one kind, in one namespace if the kind has them."""

    api_version: str
    kind: str
    plural: str
    namespace: str = ""

    @property
    def path(self) -> str:
        root = "/apis" if "/" in self.api_version else "/api"
        space = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{root}/{self.api_version}{space}/{self.plural}"

    def body(self, name: str, **parts: Any) -> dict[str, Any]:
        meta = {"name": name, **parts.pop("meta", {})}
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": meta, **parts}

    def create(self, label: str, body: Any, **query: str) -> Request:
        return Request(label, "create", "POST", self.path + _query(query), body, JSON)

    def get(self, label: str, name: str, sub: str = "", *, accept: str = "", until: int = 0, **query: str) -> Request:
        headers = {"Accept": accept} if accept else {}
        return Request(label, "get", "GET", self._object(name, sub) + _query(query), None, headers, until=until)

    def list(self, label: str, *, accept: str = "", **query: str) -> Request:
        headers = {"Accept": accept} if accept else {}
        return Request(label, "list", "GET", self.path + _query(query), None, headers)

    def watch(self, label: str, events: int, *, accept: str = "", **query: str) -> Request:
        headers = {"Accept": accept} if accept else {}
        path = self.path + _query({"watch": "true", "timeoutSeconds": "60", **query})
        return Request(label, "watch", "GET", path, None, headers, events=events)

    def update(self, label: str, name: str, change: Any, sub: str = "", **query: str) -> Request:
        """PUT what is there with a merge patch applied to it."""
        return Request(label, "update", "PUT", self._object(name, sub) + _query(query), change, JSON, on_current=True)

    def put(self, label: str, name: str, body: Any, sub: str = "", **query: str) -> Request:
        return Request(label, "update", "PUT", self._object(name, sub) + _query(query), body, JSON)

    def patch(self, label: str, name: str, body: Any, how: str = "merge", sub: str = "", **query: str) -> Request:
        headers = {"Content-Type": PATCHES[how]}
        return Request(label, f"patch ({how})", "PATCH", self._object(name, sub) + _query(query), body, headers)

    def apply(self, label: str, name: str, body: Any, by: str = "ann", sub: str = "", **query: str) -> Request:
        return self.patch(label, name, body, "apply", sub, fieldManager=by, **query)

    def delete(self, label: str, name: str, body: Any = None, **query: str) -> Request:
        return Request(label, "delete", "DELETE", self._object(name) + _query(query), body, JSON)

    def delete_all(self, label: str, body: Any = None, **query: str) -> Request:
        return Request(label, "deletecollection", "DELETE", self.path + _query(query), body, JSON)

    def post_to(self, label: str, name: str, sub: str, body: Any, **query: str) -> Request:
        return Request(label, "create", "POST", self._object(name, sub) + _query(query), body, JSON)

    def _object(self, name: str, sub: str = "") -> str:
        return "/".join(part for part in (self.path, name, sub) if part)


NAMESPACES = Collection("v1", "Namespace", "namespaces")
NODES = Collection("v1", "Node", "nodes")


def widgets(namespace: str) -> Collection:
    return Collection(f"{GROUP}/v1", "Widget", "widgets", namespace)


def config_maps(namespace: str) -> Collection:
    return Collection("v1", "ConfigMap", "configmaps", namespace)


def pods(namespace: str) -> Collection:
    return Collection("v1", "Pod", "pods", namespace)


def space(name: str) -> Request:
    """The namespace in which a story takes place."""
    return NAMESPACES.create("namespace", NAMESPACES.body(name))
