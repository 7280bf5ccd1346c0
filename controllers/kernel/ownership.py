"""Whose an object is, and whether it is to be left alone.

Owner references: read, written, adopted and released.

A reference reaches into no other namespace (Kubernetes: cross-namespace owners count as absent): who knows a UID could
else have objects of theirs counted, changed and deleted as those of another namespace's owner.

At most one ownerReference of an object has ``controller: true`` (API conventions); the API server refuses a second.

Is an object to be left alone, and at whose request?
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from api import names
from api.secrets import without_secrets
from controllers.kernel.refs import (
    CLUSTER,
    MACHINE,
    Key,
    Kind,
    Obj,
    annotations_of,
    key_of,
    labels_of,
    mapping,
    objects,
    spec_of,
    uid_of,
)
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


SPEC_PAUSED_STAMP = "spec.paused"
"""Value under which a MachineDeployment's own ``spec.paused`` is shown to the Cluster Autoscaler (which reads only the
annotation). It says nothing new to us: read back as a pause, it would outlive ``spec.paused``."""
_MERE_YES: Final = frozenset({"", "true", "yes", "1"})
_LONGEST_TEXT: Final = 200
"""Characters of what a person wrote into the annotation."""


def cluster_name_of(obj: Obj) -> str:
    """The Cluster that a Machine or a set belongs to: by ``clusterName``, else by label; "" for the implicit one."""
    spec = spec_of(obj)
    template = mapping(spec.get("template"))
    labels = mapping(mapping(template.get("metadata")).get("labels"))
    named = (
        spec.get("clusterName"),
        labels_of(obj).get(names.CLUSTER_NAME_LABEL),
        spec_of(template).get("clusterName"),
        labels.get(names.CLUSTER_NAME_LABEL),
    )
    return next((name for name in named if name and isinstance(name, str)), "")


def cluster_of(obj: Obj, view: View) -> Obj | None:
    """The Cluster object of ``cluster_name_of``; None if there is none (yet)."""
    name = cluster_name_of(obj)
    return view.get(CLUSTER, Key(obj["metadata"].get("namespace", ""), name)) if name else None


def paused_by(objects: Iterable[Obj | None]) -> str:
    """Why controllers must leave the first of ``objects`` alone, "" if they need not.

    Give the object itself, then its owners up to the Cluster. A Cluster also pauses by ``spec.paused``
    (a MachineDeployment's ``spec.paused`` pauses only its rollout). Initializers hold a Machine back like a pause.
    """
    for obj in objects:
        why = _pause_of(obj) if obj is not None else ""
        if obj is not None and why:
            return f"{obj.get('kind') or 'object'} {key_of(obj)} {why}"
    return ""


def _text_of(value: str) -> str:
    """What a person wrote there, such as why; "" for a mere yes."""
    text = without_secrets(" ".join(value.split()))
    if text.lower() in _MERE_YES:
        return ""
    return f": {text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + '…'}"


def _pause_of(obj: Obj) -> str:
    """What of ``obj`` itself says so. Asked of each Machine whenever its sets and checks are looked at."""
    value = annotations_of(obj)
    if value:
        waits_for = value.get(names.INITIALIZERS_ANNOTATION)
        if waits_for and obj.get("kind") == MACHINE.name:
            return f"waits for initializers: {waits_for}"
        for annotation in names.PAUSED_ANNOTATIONS:
            if value.get(annotation, SPEC_PAUSED_STAMP) != SPEC_PAUSED_STAMP:
                return f"has the annotation {annotation}{_text_of(value[annotation])}"
    if obj.get("kind") == CLUSTER.name and spec_of(obj).get("paused") is True:
        return "has spec.paused"
    return ""
