"""What the rest of the cluster means for a Machine that goes: is it the last of its kind, does it carry us?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from api import names
from controllers.kernel.conditions import some_of
from controllers.kernel.ownership import cluster_name_of
from controllers.kernel.refs import MACHINE, Obj, annotations_of, is_deleting, key_of, runs_control_plane, uid_of
from controllers.kernel.view import NAMESPACE, ManagementCluster, View

_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class DeletionGuards:
    """``last_control_plane``: it runs the control plane, and no other Machine that stays does.

    ``carries_us``: name of its Node if this program runs there, else ""; ``going_before``: Machines of the cluster that
    are to go before it then.
    """

    last_control_plane: bool = False
    carries_us: str = ""
    going_before: tuple[str, ...] = ()


NO_GUARDS = DeletionGuards()


def observe(machine: Obj, node: Obj, hosting_node: str, view: View) -> DeletionGuards:
    runs_one = runs_control_plane(machine)
    # A Node of that name in another cluster is not the one that we run on.
    in_management_cluster = isinstance(view.workload, ManagementCluster)
    carries_us = in_management_cluster and bool(hosting_node) and node["metadata"]["name"] == hosting_node
    peers = tuple(peers_of(machine, view)) if runs_one or carries_us else ()
    return DeletionGuards(
        last_control_plane=runs_one and not any(runs_control_plane(m) and not is_deleting(m) for m in peers),
        carries_us=hosting_node if carries_us else "",
        going_before=tuple(sorted(key_of(peer).name for peer in peers if is_deleting(peer))) if carries_us else (),
    )


def block_reason(machine: Obj, deletion_guards: DeletionGuards) -> str:
    """Why the host must not go yet, "" if it may (release-0.1 refused to delete the Machine that it ran on)."""
    if not deletion_guards.carries_us:
        return ""
    if names.ALLOW_SELF_DELETION_ANNOTATION not in annotations_of(machine):
        return (
            f"this controller runs on its Node {deletion_guards.carries_us}; move the controller to another Node, or "
            f"annotate the Machine with {names.ALLOW_SELF_DELETION_ANNOTATION}"
        )
    if deletion_guards.going_before:
        return f"this controller runs on its Node: first go {some_of(deletion_guards.going_before, _MOST_NAMES)}"
    return ""


def peers_of(machine: Obj, view: View) -> Iterable[Obj]:
    """Other Machines of the same cluster."""
    mine = cluster_name_of(machine)
    for other in view.indexed(MACHINE, NAMESPACE, key_of(machine).namespace):
        if uid_of(other) != uid_of(machine) and cluster_name_of(other) == mine:
            yield other
