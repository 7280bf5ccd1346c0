"""Which Nodes may go as far as they themselves are concerned, whatever becomes of their pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeVar

from controllers.autoscaler.cluster_state import ClusterState, GroupState
from controllers.autoscaler.projected import ProjectedCluster
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import Key, Ref
from controllers.scheduling import removal
from controllers.scheduling.shapes import CPU, MEMORY, NodeInfo, gpu_of
from controllers.scheduling.tables import PodsByNode

T = TypeVar("T")


class Needed(StrEnum):
    """Why a Node stays, beside ``removal.Staying``. Named as in the Cluster Autoscaler."""

    DISABLED = "ScaleDownDisabledAnnotation"
    MIN_SIZE = "NodeGroupMinSizeReached"
    NOT_UNDERUTILIZED = "NotUnderutilized"
    NOT_LONG_ENOUGH = "NotUnneededLongEnough"
    IN_PROGRESS = "CurrentlyBeingDeleted"
    MINIMAL_LIMIT = "MinimalResourceLimitExceeded"
    OTHER = "NotUnneededOtherReason"


@dataclass(frozen=True, slots=True)
class Staying:
    reason: str
    why: str


class Owner(NamedTuple):
    """Whose Node it is."""

    state: GroupState
    machine: MachineFacts

    @property
    def name(self) -> str:
        """Name of the Node."""
        return self.machine.node_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidating:
    """``any_use``: Nodes may go however much of them is asked for. ``going``: Nodes that go at once, as one in their
    place is there. ``new``: Nodes that take pods of others and stay meanwhile.
    """

    any_use: bool = False
    going: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()


AS_USUAL = Consolidating()
"""There is no consolidation."""


class GroupLimit(NamedTuple):
    """``spare``: Nodes that the group's minimum lets go. ``unsettled``: why which ones go is not ours to say now."""

    spare: int
    unsettled: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What every step looks at. ``given_up``: Machines that go in any case, with why. ``booked``: Node → the
    ProvisioningRequest that holds room on it. ``limits``: by id of the group.
    """

    cluster: ClusterState
    projected: ProjectedCluster
    nodes: Mapping[str, NodeInfo]
    owners: Mapping[str, Owner]
    pods_by_node: PodsByNode
    given_up: Mapping[Key, str]
    booked: Mapping[str, Ref]
    limits: Mapping[str, GroupLimit]
    consolidating: Consolidating

    def group_of(self, name: str) -> GroupState:
        return self.owners[name].state

    def atomic_group(self, name: str) -> str:
        """The Node's group, if its Nodes go together; else ""."""
        state = self.group_of(name)
        return state.id if state.is_whole else ""


def context_of(
    cluster: ClusterState,
    projected: ProjectedCluster,
    *,
    given_up: Mapping[Key, str],
    consolidating: Consolidating = AS_USUAL,
) -> Context:
    """A group of 5 with a minimum of 2, of which 1 Machine is given up, has 2 Nodes to spare."""
    nodes = {node.name: node for node in cluster.workload.nodes}
    owners = {m.node_name: Owner(state, m) for state in cluster.groups for m in state.machines if m.node_name in nodes}
    limits = {}
    for state in cluster.groups:
        lost = sum(1 for machine in state.machines if machine.key in given_up) if given_up else 0
        limits[state.id] = GroupLimit(state.group.spare - lost, state.unsettled)
    return Context(
        cluster=cluster,
        projected=projected,
        nodes=nodes,
        owners=owners,
        pods_by_node=PodsByNode(cluster.workload.pods),
        given_up=given_up,
        booked=projected.booked(),
        limits=limits,
        consolidating=consolidating,
    )


def eligible(context: Context) -> tuple[list[str], dict[str, Staying]]:
    """Names of the Nodes that may go, and of each other Node of a group why not."""
    staying: dict[str, Staying] = {}
    found = set()
    for name, owner in sorted(context.owners.items()):
        stays = next((stays for check in CHECKS if (stays := check(context, owner))), None)
        if stays is None:
            found.add(name)
        else:
            staying[name] = stays
    names, incomplete = in_whole_groups(context, found)
    return names, {**staying, **incomplete}


def in_whole_groups(context: Context, names: Collection[str]) -> tuple[list[str], dict[str, Staying]]:
    """Without the Nodes of groups that are scaled as a whole and of which some other Node is not among ``names``."""
    found = Counter(context.group_of(name).id for name in names)
    kept: list[str] = []
    staying: dict[str, Staying] = {}
    for name in sorted(names):
        state = context.group_of(name)
        if state.is_whole and found[state.id] < state.group.replicas:
            why = f"{state.id} is scaled as a whole, and not all of its {state.group.replicas} Machines may go"
            staying[name] = Staying(removal.Staying.TOGETHER, why)
        else:
            kept.append(name)
    return kept, staying


def first(own: T | None, whole: T) -> T:
    """What the group wants, else what holds for all."""
    return whole if own is None else own


def _is_going(_: Context, owner: Owner) -> Staying | None:
    if owner.state.is_going(owner.machine):
        return Staying(Needed.IN_PROGRESS, f"its Machine {owner.machine.key} is going")
    return None


def _is_starting(context: Context, owner: Owner) -> Staying | None:
    if owner.name not in context.cluster.workload.starting:
        return None
    return Staying(Needed.OTHER, f"it is still starting: {owner.state.starting[owner.name].why}")


def _is_given_up(context: Context, owner: Owner) -> Staying | None:
    why = context.given_up.get(owner.machine.key)
    return Staying(Needed.IN_PROGRESS, why) if why is not None else None


def _group_is_unsettled(context: Context, owner: Owner) -> Staying | None:
    why = context.limits[owner.state.id].unsettled
    return Staying(Needed.OTHER, why) if why else None


def _is_protected(context: Context, owner: Owner) -> Staying | None:
    if owner.machine.protected:
        why = f"the membership status of its Machine {owner.machine.key} protects it (evictable: false)"
        return Staying(Needed.DISABLED, why)
    protection = context.cluster.workload.protected.get(owner.name)
    return Staying(Needed.DISABLED, protection) if protection is not None else None


def _group_has_its_minimum(context: Context, owner: Owner) -> Staying | None:
    if context.limits[owner.state.id].spare > 0:
        return None
    least = owner.state.group.bounds.min_size
    return Staying(Needed.MIN_SIZE, f"{owner.state.id} has its minimum of {least} Nodes")


def _takes_the_place_of_others(context: Context, owner: Owner) -> Staying | None:
    if owner.name not in context.consolidating.new:
        return None
    return Staying(Needed.OTHER, "it was made to take the place of other Nodes, which have yet to go")


def _is_booked(context: Context, owner: Owner) -> Staying | None:
    request = context.booked.get(owner.name)
    return Staying(Needed.OTHER, f"{request} holds room on it") if request is not None else None


def _pods_are_about_to_come(context: Context, owner: Owner) -> Staying | None:
    if owner.name in context.projected.awaiting:
        return Staying(removal.Staying.RECEIVES_PODS, "pending pods are about to find room on it")
    return None


def _is_used(context: Context, owner: Owner) -> Staying | None:
    """Too much of it is asked for; of a Node with GPUs, of those."""
    own, whole = owner.state.options, context.cluster.options.shrink
    node, pods_by_node = context.nodes[owner.name], context.pods_by_node
    gpu, any_use = gpu_of(node), context.consolidating.any_use
    if any_use and (own.gpu_utilization_threshold if gpu else own.utilization_threshold) is None:
        return None
    if gpu:
        most = first(own.gpu_utilization_threshold, whole.gpu_utilization_threshold)
        used, what = pods_by_node.share(node, (gpu,)), f"its {gpu}"
    else:
        most = first(own.utilization_threshold, whole.utilization_threshold)
        ignoring = first(own.ignore_daemon_sets, whole.ignore_daemon_sets)
        used = pods_by_node.share(node, (CPU, MEMORY), True) if ignoring else pods_by_node.load(node)
        what = "it"
    if used <= most:
        return None
    return Staying(Needed.NOT_UNDERUTILIZED, f"{used:.0%} of {what} is asked for, more than {most:.0%}")


CHECKS: tuple[Callable[[Context, Owner], Staying | None], ...] = (
    # It is going already: nothing is decided about it any more.
    _is_going,
    # Its Machine goes for another reason in this very reconcile.
    _is_given_up,
    # It has yet to show what it is good for.
    _is_starting,
    # The group's set or rollout, or a person, is about to choose which of its Machines go.
    _group_is_unsettled,
    # An annotation keeps it, or it is of the control plane.
    _is_protected,
    # The group would have too few Nodes.
    _group_has_its_minimum,
    # It is the new Node of a consolidation, and empty only because the old ones are still there.
    _takes_the_place_of_others,
    # A ProvisioningRequest was promised its room.
    _is_booked,
    # kube-scheduler will put pending pods on it within moments.
    _pods_are_about_to_come,
    # Last, since it is the only check that looks at the Node's pods.
    _is_used,
)
"""Run in this order; the first check that refuses is reported."""
