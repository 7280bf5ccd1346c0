"""The cluster as it will be once all that is on its way has arrived: Nodes to come, and pending pods that fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from controllers.autoscaler.cluster_state import ClusterState, GroupState
from controllers.autoscaler.gang_placement import place_whole
from controllers.autoscaler.gangs import Gang, single
from controllers.autoscaler.health import arriving, upcoming
from controllers.autoscaler.memory import PlannedNodes, by_group, on_their_way, pod_keys
from controllers.autoscaler.reservations import Reservation, reserve_all
from controllers.autoscaler.templates import PREFIX
from controllers.kernel.refs import Ref
from controllers.scheduling.classes import Classes, Group, PodClass
from controllers.scheduling.placement import pour
from controllers.scheduling.predicates import static_refusal
from controllers.scheduling.schedulable import filter_schedulable
from controllers.scheduling.shapes import CPU, MEMORY, PODS, NodeInfo, PodInfo, PodKind
from controllers.scheduling.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ProjectedCluster:
    """``unschedulable``: pods that need new Nodes. ``upcoming``: group → Nodes on their way, never 0."""

    snapshot: Snapshot
    unschedulable: tuple[Group, ...]
    upcoming: Mapping[str, int]
    daemons: tuple[PodClass, ...]
    nodes: tuple[tuple[NodeInfo, int], ...]
    awaiting: frozenset[str] = frozenset()
    """Nodes that are there and on which pending pods are about to find room."""
    held: Mapping[Ref, Reservation] = field(default_factory=dict)
    """What ProvisioningRequests hold."""
    gangs: tuple[Gang, ...] = ()
    """Those that have no room as a whole, and hold none."""
    promised: Mapping[str, int] = field(default_factory=dict)
    """Group → Nodes on their way on which pending pods are about to find room; only where there are gangs."""

    buffered: Mapping[str, Ref] = field(default_factory=dict)
    """Nodes that are there → a CapacityBuffer that has chunks on them."""

    def booked(self) -> dict[str, Ref]:
        """Nodes that are there → a request or a CapacityBuffer that holds room on them."""
        return {**self.buffered, **self._booked()}

    def _booked(self) -> dict[str, Ref]:
        return {name: ref for ref, reservation in self.held.items() for name in reservation.nodes}

    def daemons_on(self, node: NodeInfo) -> tuple[PodClass, ...]:
        """Pods of DaemonSets that run on every such Node."""
        return tuple(each for each in self.daemons if static_refusal(each, node) is None)

    def offered(self, resource: str) -> int:
        """By all Nodes together, those on their way included."""
        return sum(node.amount(resource) * count for node, count in self.nodes)


def project(cluster: ClusterState, asked: Iterable[PodKind] = ()) -> ProjectedCluster:
    """Pods go on the Nodes that were added for them; of the others big ones first, on small Nodes first, or those that
    were asked for would seem too few.

    ``asked``: further kinds of pods that will be asked for.
    """
    kinds = [pod.kind for pod in (*cluster.workload.pods, *cluster.workload.pending)]
    kinds += [shape.kind for request in cluster.requests if request.holds for shape, _ in request.left]
    kinds += asked
    kinds += [buffer.chunk.kind for buffer in cluster.capacity.buffers if buffer.chunk is not None]
    classes = Classes((*kinds, *cluster.workload.daemons), cluster.workload.namespaces)
    snapshot = Snapshot(cluster.workload.nodes, cluster.workload.pods, classes)
    coming = {state.id: count for state in cluster.groups if (count := upcoming(state, cluster))}
    daemons = tuple(classes.of(kind) for kind in cluster.workload.daemons)
    nodes, expected = _with_arriving(cluster, snapshot, daemons)
    held = reserve_all(snapshot, cluster.requests) if cluster.requests else {}
    headroom = snapshot.free(PODS).copy()
    pending = _place_planned(snapshot, expected, sorted(cluster.workload.pending, key=_size, reverse=True))
    gangs = cluster.workload.gangs
    unschedulable, waiting = _placed(snapshot, pending, gangs) if pending else ((), ())
    taken = np.flatnonzero(snapshot.free(PODS)[: len(cluster.workload.nodes)] < headroom[: len(cluster.workload.nodes)])
    awaiting = frozenset(cluster.workload.nodes[row].name for row in taken)
    return ProjectedCluster(
        snapshot=snapshot,
        unschedulable=unschedulable,
        upcoming=coming,
        daemons=daemons,
        nodes=(*((node, 1) for node in cluster.workload.nodes), *nodes),
        awaiting=awaiting,
        held=held,
        gangs=waiting,
        promised=_promised(snapshot, len(daemons)) if gangs else {},
    )


def _with_arriving(
    cluster: ClusterState, snapshot: Snapshot, daemons: Sequence[PodClass]
) -> tuple[list[tuple[NodeInfo, int]], list[tuple[int, PlannedNodes]]]:
    """Add Nodes on their way; which they are, and what is planned for each of their rows. Where there are gangs, their
    order decides what goes where.
    """
    nodes: list[tuple[NodeInfo, int]] = []
    expected: list[tuple[int, PlannedNodes]] = []
    planned = by_group(() if cluster.workload.gangs else cluster.memory.planned)
    for state in sorted(cluster.groups, key=_offer):
        for node, count in arriving(state, cluster):
            nodes.append((node, count))
            for each in on_their_way(planned.get(state.id, ()), state.id, count):
                row = snapshot.add_nodes(node, each.count)
                for daemon in daemons:
                    if static_refusal(daemon, node) is None:
                        snapshot.place(daemon, row)
                expected.append((row, each))
    return nodes, expected


def _place_planned(
    snapshot: Snapshot, nodes: Iterable[tuple[int, PlannedNodes]], pending: Sequence[PodInfo]
) -> list[PodInfo]:
    """Put pods on the Nodes that were added for them, if they fit; returns the others. ``nodes``: row → what it is for.

    How evenly pods of a class are spread is not asked: they are once all are there, and not on the way.
    """
    nodes = [(row, each) for row, each in nodes if each.pods]
    if not nodes:
        return list(pending)
    key = pod_keys()
    waiting: dict[str, list[PodInfo]] = {}
    for pod in pending:
        waiting.setdefault(key(pod), []).append(pod)
    groups = {name: [_Waiting(each) for each in snapshot.classes.group(pods)] for name, pods in waiting.items()}
    for row, each in nodes:
        order, copies = np.array([row], np.int64), each.count
        for name, most in each.pods.items():
            missing = most * copies
            for group in groups.get(name, ()):
                done = pour(snapshot, group.pod_class, min(missing, group.left), order, most)
                order, missing, group.seated = done.order, missing - done.count, group.seated + done.count
    seated = {id(pod) for each in groups.values() for group in each for pod in group.group.pods[: group.seated]}
    return [pod for pod in pending if id(pod) not in seated]


@dataclass(slots=True)
class _Waiting:
    """``seated``: so many pods of the group have their Node."""

    group: Group
    seated: int = 0

    @property
    def pod_class(self) -> PodClass:
        return self.group.pod_class

    @property
    def left(self) -> int:
        return len(self.group) - self.seated


def _placed(
    snapshot: Snapshot, pending: Sequence[PodInfo], gangs: Sequence[Gang]
) -> tuple[tuple[Group, ...], tuple[Gang, ...]]:
    """Pods and gangs without room; the others are in the snapshot. Of equal priority gangs go first: a single pod more
    easily finds another place.
    """
    if not gangs:
        return filter_schedulable(snapshot, pending).unschedulable, ()
    left: list[Group] = []
    waiting: list[Gang] = []
    singles = single(pending, gangs)
    for priority in sorted({each.priority for each in gangs} | {pod.kind.priority for pod in singles}, reverse=True):
        waiting += [gang for gang in gangs if gang.priority == priority and not place_whole(snapshot, gang)]
        same = [pod for pod in singles if pod.kind.priority == priority]
        left += filter_schedulable(snapshot, same).unschedulable
    return tuple(left), tuple(waiting)


def _promised(snapshot: Snapshot, daemons: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in snapshot.rows.tolist():
        node = snapshot.nodes[row]
        if node.hypothetical and sum(snapshot.pods[row].values()) > daemons:
            name = node.name.removeprefix(PREFIX)
            found[name] = found.get(name, 0) + int(snapshot.copies[row])
    return found


def _offer(state: GroupState) -> tuple[int, int]:
    return (state.template.amount(CPU), state.template.amount(MEMORY)) if state.template else (0, 0)


def _size(pod: PodInfo) -> tuple[int, int]:
    asked = dict(pod.kind.demand.requests)
    return asked.get(CPU, 0), asked.get(MEMORY, 0)
