"""Cordon a Node and remember that it was us, so that a person's own cordon is never undone."""

from __future__ import annotations

from api import names
from controllers.kernel.actions import Patch
from controllers.kernel.refs import NODE, Obj, annotations_of, ref_of


def is_cordoned(node: Obj) -> bool:
    return (node.get("spec") or {}).get("unschedulable") is True


def is_cordoned_for(node: Obj, machine_uid: str) -> bool:
    return annotations_of(node).get(names.NODE_CORDONED_FOR_ANNOTATION) == machine_uid


def cordon(node: Obj, machine_uid: str, why: str) -> Patch:
    patch = {
        "metadata": {"annotations": {names.NODE_CORDONED_FOR_ANNOTATION: machine_uid}},
        "spec": {"unschedulable": True},
    }
    return Patch(ref_of(NODE, node), patch, f"cordon Node {node['metadata']['name']}: {why}")


def uncordon(node: Obj, why: str) -> Patch:
    patch = {"metadata": {"annotations": {names.NODE_CORDONED_FOR_ANNOTATION: None}}, "spec": {"unschedulable": None}}
    return Patch(ref_of(NODE, node), patch, f"uncordon Node {node['metadata']['name']}: {why}")
