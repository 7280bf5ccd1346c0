"""Whose Node is it, by the record that the Node itself carries?

The Machine controller writes the record (label and annotation) to a Node that the provider's host of that Machine has
proven to be its own, and hosts register with it. Users of a namespace can't write Nodes, and a kubelet writes only its
own (NodeRestriction), so the record outlives the host as a proof. ``spec.providerID`` and ``status`` of a Machine are
no proof: a person writes them.
"""

from __future__ import annotations

from collections.abc import Mapping

from api import names
from controllers.kernel.refs import Obj, annotations_of, key_of, labels_of, uid_of


def owner_uid(node: Obj) -> str:
    """UID of the Machine that the Node is recorded for; "" if it is recorded for none."""
    return str(labels_of(node).get(names.NODE_OWNED_BY_LABEL) or "")


def owner_title(node: Obj) -> str:
    """``namespace/name`` of that Machine; "" if the Node names none."""
    return str(annotations_of(node).get(names.NODE_MACHINE_ANNOTATION) or "")


def provider_id_of(obj: Obj) -> str:
    """``spec.providerID`` of a Node or Machine; "" while it has none, or one of a wrong type."""
    spec = obj.get("spec")
    found = spec.get("providerID") if isinstance(spec, Mapping) else None
    return found if isinstance(found, str) else ""


def claimed_by_another(node: Obj, machine: Obj) -> str:
    """Which other Machine the Node is recorded for; "" if it is for none or for ``machine``."""
    title = owner_title(node)
    if title and title != str(key_of(machine)):
        return f"Machine {title}"
    uid = owner_uid(node)
    return f"the Machine with uid {uid}" if uid and uid != uid_of(machine) else ""


def is_recorded_for(node: Obj, machine: Obj) -> bool:
    """Whether the Node is recorded for ``machine`` and for no other."""
    return owner_uid(node) == uid_of(machine) and not claimed_by_another(node, machine)
