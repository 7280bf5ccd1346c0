"""Whose Node is it, by the record that the Node itself carries?

The Machine controller writes the record (the annotations ``cluster.k8s.io/machine`` and ``cluster.k8s.io/machine-uid``)
to a Node that the provider's host of that Machine has proven to be its own. Users of a namespace can't write Nodes, and
a kubelet writes only its own (NodeRestriction), so the record outlives the host as a proof. ``spec.providerID`` and
``status`` of a Machine are no proof: a person writes them.

A kubelet can register labels but no annotations, and kubermatic's machine-controller writes a label: the label
``machine-controller/owned-by`` is read as well. It does not stay on the Node (``node_metadata``), because a label that
differs on each Node makes no two node groups similar to an autoscaler.
"""

from __future__ import annotations

from api import names
from controllers.kernel.refs import Obj, annotations_of, key_of, labels_of, spec_of, uid_of


def owner_uid(node: Obj) -> str:
    """UID of the Machine that the Node is recorded for; "" if it is recorded for none."""
    recorded = annotations_of(node).get(names.NODE_MACHINE_UID_ANNOTATION)
    return str(recorded or labels_of(node).get(names.NODE_OWNED_BY_LABEL) or "")


def owner_title(node: Obj) -> str:
    """``namespace/name`` of that Machine; "" if the Node names none."""
    return str(annotations_of(node).get(names.NODE_MACHINE_ANNOTATION) or "")


def provider_id_of(obj: Obj) -> str:
    """``spec.providerID`` of a Node or Machine; "" while it has none, or one of a wrong type."""
    found = spec_of(obj).get("providerID")
    return found if isinstance(found, str) else ""


def claimed_by_another(node: Obj, machine: Obj) -> str:
    """Which other Machine the Node is recorded for; "" if it is for none or for ``machine``.

    An annotation and a label that contradict each other leave the Node to neither Machine.
    """
    title = owner_title(node)
    if title and title != str(key_of(machine)):
        return f"Machine {title}"
    label = str(labels_of(node).get(names.NODE_OWNED_BY_LABEL) or "")
    other = next((uid for uid in (owner_uid(node), label) if uid and uid != uid_of(machine)), "")
    return f"the Machine with uid {other}" if other else ""


def is_recorded_for(node: Obj, machine: Obj) -> bool:
    """Whether the Node is recorded for ``machine`` and for no other."""
    return owner_uid(node) == uid_of(machine) and not claimed_by_another(node, machine)
