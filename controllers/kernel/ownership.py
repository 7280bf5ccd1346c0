"""Owner references: read, written, adopted and released.

A reference reaches into no other namespace (Kubernetes: cross-namespace owners count as absent): who knows a UID could
else have objects of theirs counted, changed and deleted as those of another namespace's owner.

At most one ownerReference of an object has ``controller: true`` (API conventions); the API server refuses a second.
"""

from __future__ import annotations

from typing import Any

from controllers.kernel.refs import Kind, Obj, key_of, objects, uid_of
from controllers.kernel.view import OWNER, View


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


def is_controlled_by(owner: Obj, obj: Obj) -> bool:
    """Whether ``owner`` is the controller of ``obj``."""
    return controller_uid(obj) == uid_of(owner) and key_of(obj).namespace == key_of(owner).namespace


def controlled(owner: Obj, kind: Kind, view: View) -> list[Obj]:
    """The objects of ``kind`` whose controller is ``owner``."""
    return [obj for obj in view.indexed(kind, OWNER, uid_of(owner)) if is_controlled_by(owner, obj)]


def find_controller(obj: Obj, kind: Kind, view: View) -> Obj | None:
    """The controller of ``obj``, if it is there and of ``kind``."""
    uid = controller_uid(obj)
    owner = view.by_uid(kind, uid) if uid else None
    return owner if owner is not None and is_controlled_by(owner, obj) else None


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
