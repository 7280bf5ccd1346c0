"""A store with a clock that only moves when told, and short words for what tests do with it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nodewright.apiserver.store import Journal, Store, StoreOptions, Watch
from nodewright.apiserver.values import (
    ApiError,
    DeleteOptions,
    ListOptions,
    Obj,
    PatchRequest,
    Resource,
    WatchOptions,
    WriteOptions,
)

START = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)

MACHINE_SCHEMA: Obj = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer", "format": "int32", "minimum": 0},
                "version": {"type": "string", "default": "v1.30.0"},
                "pool": {
                    "type": "string",
                    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "pool is immutable"}],
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "labelSelector": {"type": "string"},
                "phase": {"type": "string"},
            },
        },
    },
}


def crd(plural: str = "machines", kind: str = "Machine", scope: str = "Namespaced", **version: Any) -> Obj:
    """A CustomResourceDefinition in the group cluster.example.com with one version, v1."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.cluster.example.com"},
        "spec": {
            "group": "cluster.example.com",
            "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": MACHINE_SCHEMA},
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.labelSelector",
                        },
                    },
                    **version,
                }
            ],
        },
    }


class Cluster:
    """A store under test. Kinds are named by their plural; `ns` defaults to "default"."""

    def __init__(self, journal: Journal | None = None, options: StoreOptions | None = None) -> None:
        uids = itertools.count(1)
        self.time = START
        self.store = Store(
            clock=lambda: self.time,
            new_uid=lambda: f"00000000-0000-4000-8000-{next(uids):012}",
            journal=journal,
            options=options,
        )

    def with_machines(self) -> Cluster:
        """Add the custom kind Machine."""
        self.create("customresourcedefinitions", crd(), ns="")
        return self

    def passes(self, **delta: float) -> None:
        """Move the clock."""
        self.time += timedelta(**delta)

    def res(self, plural: str) -> Resource:
        """The resource of that name, whichever its group (the first, for Events)."""
        return next(resource for resource in self.store.resources.all() if resource.plural == plural)

    def create(self, plural: str, body: Obj, ns: str = "default", **options: Any) -> Obj:
        """Create an object; apiVersion and kind are filled in."""
        resource = self.res(plural)
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        where = ns if resource.namespaced else ""
        return self.store.create(resource, where, {**head, **body}, WriteOptions(**options)).obj

    def machine(self, name: str, ns: str = "default", **parts: Any) -> Obj:
        """Create a Machine; `meta` is its further metadata."""
        meta = {"name": name, **parts.pop("meta", {})}
        return self.create("machines", {"metadata": meta, "spec": {"replicas": 1}, **parts}, ns)

    def pod(self, name: str, ns: str = "default", *, ready: bool = True, **meta: Any) -> Obj:
        """Create a running Pod on node-1, and say whether it is ready."""
        spec = {"nodeName": "node-1", "containers": [{"name": "c", "image": "i"}]}
        created = self.create("pods", {"metadata": {"name": name, **meta}, "spec": spec}, ns)
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        status = {**created["status"], "phase": "Running", "conditions": [condition]}
        return self.update("pods", {**created, "status": status}, subresource="status")

    def namespace(self, name: str) -> Obj:
        """Create a namespace."""
        return self.create("namespaces", {"metadata": {"name": name}}, ns="")

    def get(self, plural: str, name: str, ns: str = "default") -> Obj:
        """Read an object."""
        resource = self.res(plural)
        return self.store.get(resource, ns if resource.namespaced else "", name)

    def has(self, plural: str, name: str, ns: str = "default") -> bool:
        """Say whether an object is there."""
        return name in self.names(plural, ns)

    def names(self, plural: str, ns: str = "default", **options: Any) -> list[str]:
        """Give the names of the listed objects."""
        resource = self.res(plural)
        found = self.store.list(resource, ns if resource.namespaced else "", ListOptions(**options))
        return [item["metadata"]["name"] for item in found.items]

    def update(self, plural: str, body: Obj, subresource: str = "", **options: Any) -> Obj:
        """Replace an object by one with the same name."""
        meta = body["metadata"]
        return self.store.update(
            self.res(plural),
            meta.get("namespace", ""),
            meta["name"],
            body,
            WriteOptions(**options),
            subresource=subresource,
        ).obj

    def merge(self, plural: str, name: str, patch: Obj, ns: str = "default", subresource: str = "") -> Obj:
        """Merge-patch an object."""
        resource = self.res(plural)
        where = ns if resource.namespaced else ""
        request = PatchRequest("merge", patch)
        return self.store.patch(resource, where, name, request, subresource=subresource).obj

    def delete(self, plural: str, name: str, ns: str = "default", **options: Any) -> Obj:
        """Delete an object."""
        resource = self.res(plural)
        where = ns if resource.namespaced else ""
        return self.store.delete(resource, where, name, DeleteOptions(**options))

    def settle(self) -> int:
        """Let the background work finish; gives the number of its steps."""
        steps = 0
        while done := self.store.run_gc():
            steps += done
            assert steps < 100_000, "the background work goes round in circles"
        return steps

    def watch(self, plural: str, ns: str = "default", **options: Any) -> Watch:
        """Watch from now on, or as the options say."""
        options.setdefault("resource_version", self.store.resource_version)
        return self.store.watch(self.res(plural), ns, WatchOptions(**options))


def owned_by(*owners: Obj, block: bool = False, controller: bool = False) -> list[Obj]:
    """The ownerReferences to these owners."""
    references = []
    for owner in owners:
        reference = {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
        }
        if block:
            reference["blockOwnerDeletion"] = True
        if controller:
            reference["controller"] = True
        references.append(reference)
    return references


def seen(watch: Watch) -> list[tuple[str, str]]:
    """Poll a watch: (type, name) of each event."""
    return [(event.type, event.object["metadata"].get("name", "")) for event in watch.poll()]


def refusal(act: Callable[[], Any]) -> ApiError:
    """The error that an action ends in."""
    with pytest.raises(ApiError) as caught:
        act()
    return caught.value
