"""What is served here? The aggregated documents of KEP-3352, and the older ones for each group and version."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence

from nodewright.apiserver.app.reviews import REVIEWS
from nodewright.apiserver.store.registry import ResourceRegistry
from nodewright.apiserver.values import NoSuchPathError, Obj, Resource

_OBJECT_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_STATUS_VERBS = ("get", "patch", "update")
_SUBRESOURCE_KINDS: dict[str, tuple[str, str, str]] = {
    "scale": ("autoscaling", "v1", "Scale"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "binding": ("", "v1", "Binding"),
}
_SUBRESOURCE_VERBS = {
    "eviction": ("create",),
    "token": ("create",),
    "binding": ("create",),
    "finalize": ("update",),
}
_KUBE_VERSION = re.compile(r"^v(\d+)(?:(alpha|beta)(\d+))?$")
_STABILITY = {None: 2, "beta": 1, "alpha": 0}


def aggregated(registry: ResourceRegistry, version: str, *, core: bool) -> Obj:
    """Give the APIGroupDiscoveryList of /api (`core`) or /apis, in apidiscovery.k8s.io `version`."""
    items = []
    for group, versions in _groups(registry).items():
        if (group == "") != core:
            continue
        metadata: Obj = {"creationTimestamp": None}
        if group:
            metadata["name"] = group
        items.append({"metadata": metadata, "versions": [_aggregated_version(*entry) for entry in versions.items()]})
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def api_versions(address: str) -> Obj:
    """Give the APIVersions of /api. `address` is the host and port that the client used."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def group_list(registry: ResourceRegistry) -> Obj:
    """Give the APIGroupList of /apis."""
    groups = [_group(name, versions) for name, versions in _groups(registry).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(registry: ResourceRegistry, name: str) -> Obj:
    """Give the APIGroup of /apis/NAME. Raises ApiError 404."""
    versions = _groups(registry).get(name)
    if not name or versions is None:
        raise NoSuchPathError
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def resource_list(registry: ResourceRegistry, group_name: str, version: str) -> Obj:
    """Give the APIResourceList of /api/v1 or /apis/GROUP/VERSION. Raises ApiError 404."""
    resources = _groups(registry).get(group_name, {}).get(version)
    if resources is None:
        raise NoSuchPathError
    entries: list[Obj] = []
    for resource in resources:
        entries.append(_entry(resource))
        entries.extend(_subresource_entry(resource, name) for name in sorted(resource.subresources))
    group_version = f"{group_name}/{version}" if group_name else version
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": entries,
    }


def verbs_of(resource: Resource) -> tuple[str, ...]:
    """Give what can be asked of the objects of a resource. Namespaces are deleted one by one, as upstream."""
    if resource in REVIEWS:
        return ("create",)
    if resource.group_kind == "Namespace":
        return tuple(verb for verb in _OBJECT_VERBS if verb != "deletecollection")
    return _OBJECT_VERBS


def subresource_verbs(name: str) -> tuple[str, ...]:
    """Give what can be asked of a subresource."""
    return _SUBRESOURCE_VERBS.get(name, _STATUS_VERBS)


def _groups(registry: ResourceRegistry) -> dict[str, dict[str, list[Resource]]]:
    """Sort the resources by group and by version, the preferred one first."""
    found: dict[str, dict[str, list[Resource]]] = {}
    for resource in (*registry.all(), *REVIEWS):
        found.setdefault(resource.group, {}).setdefault(resource.version, []).append(resource)
    return {
        name: {v: versions[v] for v in sorted(versions, key=_priority, reverse=True)}
        for name, versions in found.items()
    }


def _priority(version: str) -> tuple[int, int, int, str]:
    """Order versions as kube-apiserver does: v10, v2, v1, v1beta2, v1beta1, v1alpha1, then everything else."""
    match = _KUBE_VERSION.match(version)
    if match is None:
        return (-1, 0, 0, version)
    return (_STABILITY[match[2]], int(match[1]), int(match[3] or 0), "")


def _group(name: str, versions: Sequence[str] | dict[str, list[Resource]]) -> Obj:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _aggregated_version(version: str, resources: list[Resource]) -> Obj:
    listed = [_aggregated_resource(resource) for resource in resources]
    return {"version": version, "resources": listed, "freshness": "Current"}


def _aggregated_resource(resource: Resource) -> Obj:
    entry: Obj = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(verbs_of(resource)),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [_aggregated_subresource(resource, name) for name in sorted(resource.subresources)]
    return entry


def _aggregated_subresource(resource: Resource, name: str) -> Obj:
    return {
        "subresource": name,
        "responseKind": _kind(*_subresource_kind(resource, name)),
        "verbs": list(subresource_verbs(name)),
    }


def _entry(resource: Resource) -> Obj:
    entry: Obj = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(verbs_of(resource)),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource not in REVIEWS:
        entry["storageVersionHash"] = _storage_version_hash(resource)
    return entry


def _storage_version_hash(resource: Resource) -> str:
    """As upstream's discovery.StorageVersionHash, so that clients see when objects are stored in another version."""
    stored = f"{resource.group}/{resource.version}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(stored.encode()).digest()[:8]).decode()


def _subresource_entry(resource: Resource, name: str) -> Obj:
    group_name, version, kind = _subresource_kind(resource, name)
    entry: Obj = {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": kind,
        "verbs": list(subresource_verbs(name)),
    }
    if (group_name, version) != (resource.group, resource.version):
        entry |= {"group": group_name, "version": version}
    return entry


def _subresource_kind(resource: Resource, name: str) -> tuple[str, str, str]:
    return _SUBRESOURCE_KINDS.get(name, (resource.group, resource.version, resource.kind))


def _kind(group_name: str, version: str, kind: str) -> Obj:
    return {"group": group_name, "version": version, "kind": kind}
