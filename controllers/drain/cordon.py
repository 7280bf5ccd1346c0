"""Keep new pods off a Node, and remember that it was us, so that a person's own cordon is never undone.

``spec.unschedulable`` is what kubectl and autoscalers look at, and Kubernetes turns it into its own taint. But many
pods tolerate that one (DaemonSets by default), and none of them should begin on a Node that is about to go: hence a
taint of our own, which says as well for which Machine it is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api import names
from controllers.kernel.actions import Patch
from controllers.kernel.refs import NODE, Obj, annotations_of, ref_of, resource_version_of, spec_of

EFFECT = "NoSchedule"


def is_cordoned(node: Obj) -> bool:
    """Whether nothing new can land on it: neither what heeds a cordon nor what tolerates one."""
    return _is_unschedulable(node) and any(_is_draining(taint) for taint in _taints(node))


def is_cordoned_for(node: Obj, machine_uid: str) -> bool:
    """Whether we closed it for this Machine, be it with a person's cordon already in place."""
    if annotations_of(node).get(names.NODE_CORDONED_FOR_ANNOTATION) == machine_uid:
        return True
    return any(_is_draining(taint) and taint.get("value") == machine_uid for taint in _taints(node))


def cordon(node: Obj, machine_uid: str, why: str) -> Patch:
    taint = {"key": names.DRAINING_TAINT, "value": machine_uid, "effect": EFFECT}
    patch: dict[str, Any] = {"spec": {"taints": [*_others(node), taint]}}
    if not _is_unschedulable(node):
        patch["metadata"] = {"annotations": {names.NODE_CORDONED_FOR_ANNOTATION: machine_uid}}
        patch["spec"]["unschedulable"] = True
    return _guarded(node, patch, f"cordon Node {node['metadata']['name']}: {why}")


def uncordon(node: Obj, why: str) -> Patch:
    """Take our part back; a person's cordon, which was there before, stays."""
    patch: dict[str, Any] = {"spec": {"taints": _others(node) or None}}
    if names.NODE_CORDONED_FOR_ANNOTATION in annotations_of(node):
        patch["metadata"] = {"annotations": {names.NODE_CORDONED_FOR_ANNOTATION: None}}
        patch["spec"]["unschedulable"] = None
    return _guarded(node, patch, f"uncordon Node {node['metadata']['name']}: {why}")


def _guarded(node: Obj, patch: Mapping[str, Any], why: str) -> Patch:
    """The list of taints is replaced whole: somebody else's that came meanwhile must not get lost."""
    return Patch(ref_of(NODE, node), patch, why, resource_version=resource_version_of(node))


def _is_unschedulable(node: Obj) -> bool:
    return spec_of(node).get("unschedulable") is True


def _is_draining(taint: Mapping[str, Any]) -> bool:
    return taint.get("key") == names.DRAINING_TAINT


def _taints(node: Obj) -> tuple[Mapping[str, Any], ...]:
    return tuple(spec_of(node).get("taints") or ())


def _others(node: Obj) -> list[dict[str, Any]]:
    return [dict(taint) for taint in _taints(node) if not _is_draining(taint)]
