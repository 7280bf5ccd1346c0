"""A Node whose Machine is gone: it registered so late that the deletion did not see it yet, and now nobody owns it.

It goes when three things say that its host is dead: no Machine has its UID, no provider lists a host for that UID, and
its kubelet is silent. So the Node of a host that somebody abandoned on purpose, and that still runs, is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from controllers.kernel.actions import Delete
from controllers.kernel.node_policy import owner_title, owner_uid
from controllers.kernel.plan import NOTHING, Plan, Wait, steps
from controllers.kernel.refs import (
    MACHINE,
    NODE,
    Key,
    Obj,
    is_deleting,
    ref_of,
    resource_version_of,
)
from controllers.kernel.view import HostAbsent, HostNeed, HostReads, HostUnknown, Unreachable, View
from controllers.machine.conditions import node_is_ready

FRESH = 5.0
REQUEUE_AFTER = 30.0


@dataclass(frozen=True, slots=True)
class OrphanedNode:
    node: Obj
    reads: HostReads


def find(key: Key, view: View) -> Obj | None:
    """The Node that a Machine called ``key``, which is gone, has left. Hosts bear their Machine's name."""
    if isinstance(view.workload, Unreachable):
        return None
    node = view.get(NODE, Key("", key.name))
    if node is None or is_deleting(node) or owner_title(node) != str(key):
        return None
    uid = owner_uid(node)
    return node if uid and view.by_uid(MACHINE, uid) is None else None


def needs(key: Key, node: Obj) -> HostNeed:
    """Look for the host everywhere where one of ``key`` may be: the config that made it went with its Machine."""
    return HostNeed(owner_uid(node), None, FRESH, namespace=key.namespace)


def plan(orphaned_node: OrphanedNode) -> Plan:
    """Delete the Node, once nothing speaks for it any more."""
    if node_is_ready(orphaned_node.node):
        return NOTHING
    match orphaned_node.reads.host:
        case HostUnknown(why):
            return Plan(outcome=Wait(REQUEUE_AFTER, why))
        case HostAbsent():
            why = f"Node {orphaned_node.node['metadata']['name']}: its Machine and its host are gone"
            version = resource_version_of(orphaned_node.node)  # a host of a later Machine of that name may take it over
            return Plan(steps([Delete(ref_of(NODE, orphaned_node.node), why, resource_version=version)]))
        case _:
            return NOTHING
