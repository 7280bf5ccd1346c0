"""What a request says besides its verb: the path of what is meant, and what the server has to check first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from controllers.kernel.refs import Key, Kind, Ref


def one_object(name: str) -> dict[str, str]:
    """One object of that name: RBAC's ``resourceNames`` allow lists and watches of this form."""
    return {"fieldSelector": f"metadata.name={name}"} if name else {}


def collection_path(kind: Kind, namespace: str) -> str:
    """Of all namespaces if ``namespace`` is ""."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    if kind.namespaced and namespace:
        return f"{root}/namespaces/{quote(namespace, safe='')}/{kind.plural}"
    return f"{root}/{kind.plural}"


def object_path(kind: Kind, key: Key, subresource: str = "") -> str:
    path = f"{collection_path(kind, key.namespace)}/{quote(key.name, safe='')}"
    return f"{path}/{subresource}" if subresource else path


def delete_options(target: Ref, grace_seconds: int | None, resource_version: str = "") -> dict[str, Any]:
    """Whom exactly, and within which time; what is not said is left to the server."""
    guards = _guards(target.uid, resource_version)
    options: dict[str, Any] = {"preconditions": guards} if guards else {}
    return options if grace_seconds is None else {**options, "gracePeriodSeconds": grace_seconds}


def guarded(patch: Mapping[str, Any], uid: str, resource_version: str) -> Mapping[str, Any]:
    """``patch``, refused by the server if the object has another uid or resourceVersion ("": any)."""
    guards = _guards(uid, resource_version)
    if not guards:
        return patch
    return {**patch, "metadata": {**(patch.get("metadata") or {}), **guards}}


def _guards(uid: str, resource_version: str) -> dict[str, str]:
    return {name: value for name, value in (("uid", uid), ("resourceVersion", resource_version)) if value}
