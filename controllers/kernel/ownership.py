"""Owner references: read, written, adopted and released.

At most one ownerReference of an object has ``controller: true`` (API conventions); the API server refuses a second.
"""

from __future__ import annotations

from typing import Any

from controllers.kernel.refs import Kind, Obj, objects, uid_of


def controller_of(obj: Obj) -> Obj | None:
    """The controlling ownerReference, None for an orphan."""
    for reference in objects(obj["metadata"].get("ownerReferences")):
        if reference.get("controller"):
            return reference
    return None


def controller_uid(obj: Obj) -> str:
    """UID of the controller, "" for an orphan."""
    reference = controller_of(obj)
    return str(reference.get("uid", "")) if reference else ""


def reference_to(kind: Kind, owner: Obj) -> dict[str, Any]:
    """The ownerReference that makes ``owner`` the controller; a foreground deletion of it waits for the object."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "name": owner["metadata"]["name"],
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def references_with(obj: Obj, reference: dict[str, Any]) -> list[dict[str, Any]]:
    """All ownerReferences of an orphan and the new one: the list to write when adopting."""
    others = [dict(r) for r in objects(obj["metadata"].get("ownerReferences")) if r.get("uid") != reference["uid"]]
    return [*others, reference]


def references_without(obj: Obj, uid: str) -> list[dict[str, Any]]:
    """The list to write when ``uid`` gives the object back."""
    return [dict(r) for r in objects(obj["metadata"].get("ownerReferences")) if r.get("uid") != uid]
