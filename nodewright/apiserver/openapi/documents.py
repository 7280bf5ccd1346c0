"""The index of documents, and one document for each group and version (KEP-2896)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final, Protocol

import orjson

from nodewright.apiserver.openapi import builtins
from nodewright.apiserver.openapi.components import Components
from nodewright.apiserver.openapi.paths import resource_paths
from nodewright.apiserver.values import Obj, Resource

_INFO: Final[Obj] = {"title": "Kubernetes", "version": "v1.32.4"}


class Registry(Protocol):
    """What the documents need of the set of served resources."""

    def all(self) -> Sequence[Resource]:
        """Give every resource in every version."""
        ...


def index(registry: Registry) -> Obj:
    """Give the document at /openapi/v3: where each group and version has its own.

    The hash in an address changes with the content, and with nothing else: kubectl keeps documents on disk by address,
    across restarts of a server and for servers that take the same port one after the other.
    """
    groups: dict[str, list[Resource]] = {}
    for resource in registry.all():
        if resource.served:
            groups.setdefault(_path_of(resource.group, resource.version), []).append(resource)
    return {"paths": {path: {"serverRelativeURL": _address(path, groups[path])} for path in sorted(groups)}}


def document(registry: Registry, group: str, version: str) -> Obj:
    """Give the OpenAPI v3 document of a group and version: its paths, and all types that they use."""
    components = Components()
    paths: Obj = {}
    served = [r for r in registry.all() if (r.group, r.version) == (group, version) and r.served]
    for resource in sorted(served, key=lambda r: r.kind):
        components.add_kind(resource)
        paths.update(resource_paths(resource, components.reference))
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": components.finished()}}


def _path_of(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _address(path: str, resources: Sequence[Resource]) -> str:
    digest = hashlib.sha256()
    for resource in sorted(resources, key=lambda r: r.plural):
        digest.update(orjson.dumps(_identity(resource), option=orjson.OPT_SORT_KEYS))
    return f"/openapi/v3/{path}?hash={digest.hexdigest().upper()}"


def _identity(resource: Resource) -> list[Any]:
    schema = resource.schema if not resource.builtin else builtins.RELEASE
    names = [resource.plural, resource.kind, resource.list_kind, resource.namespaced]
    return [*names, sorted(resource.subresources), schema]
