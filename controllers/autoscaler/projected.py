"""The cluster as it will be once all that is on its way has arrived: Nodes to come, and pending pods that fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from controllers.autoscaler.cluster_state import ClusterState, GroupState
from controllers.autoscaler.health import arriving, upcoming
from controllers.autoscaler.reservations import Reservation, reserve_all
from controllers.kernel.refs import Ref
from controllers.scheduling.classes import Classes, Group, PodClass
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

    def booked(self) -> dict[str, Ref]:
        """Nodes that are there → a request that holds room on them."""
        return {name: ref for ref, reservation in self.held.items() for name in reservation.nodes}

    def daemons_on(self, node: NodeInfo) -> tuple[PodClass, ...]:
        """Pods of DaemonSets that run on every such Node."""
        return tuple(each for each in self.daemons if static_refusal(each, node) is None)

    def offered(self, resource: str) -> int:
        """By all Nodes together, those on their way included."""
        return sum(node.amount(resource) * count for node, count in self.nodes)


def project(cluster: ClusterState, asked: Iterable[PodKind] = ()) -> ProjectedCluster:
    """Big pods are seated first, on small Nodes first, or those that were asked for would seem too few.

    ``asked``: further kinds of pods that will be asked for.
    """
    kinds = [pod.kind for pod in (*cluster.workload.pods, *cluster.workload.pending)]
    kinds += [shape.kind for request in cluster.requests if request.holds for shape, _ in request.left]
    kinds += asked
    classes = Classes((*kinds, *cluster.workload.daemons), cluster.workload.namespaces)
    snapshot = Snapshot(cluster.workload.nodes, cluster.workload.pods, classes)
    coming = {state.id: count for state in cluster.groups if (count := upcoming(state, cluster))}
    daemons = tuple(classes.of(kind) for kind in cluster.workload.daemons)
    nodes = [(node, 1) for node in cluster.workload.nodes]
    for state in sorted(cluster.groups, key=_offer):
        for node, count in arriving(state, cluster):
            nodes.append((node, count))
            row = snapshot.add_nodes(node, count)
            for daemon in daemons:
                if static_refusal(daemon, node) is None:
                    snapshot.place(daemon, row)
    held = reserve_all(snapshot, cluster.requests) if cluster.requests else {}
    headroom = snapshot.free(PODS).copy()
    pending = sorted(cluster.workload.pending, key=_size, reverse=True)
    unschedulable = filter_schedulable(snapshot, pending).unschedulable if pending else ()
    taken = np.flatnonzero(snapshot.free(PODS)[: len(cluster.workload.nodes)] < headroom[: len(cluster.workload.nodes)])
    awaiting = frozenset(cluster.workload.nodes[row].name for row in taken)
    return ProjectedCluster(
        snapshot=snapshot,
        unschedulable=unschedulable,
        upcoming=coming,
        daemons=daemons,
        nodes=tuple(nodes),
        awaiting=awaiting,
        held=held,
    )


def _offer(state: GroupState) -> tuple[int, int]:
    return (state.template.amount(CPU), state.template.amount(MEMORY)) if state.template else (0, 0)


def _size(pod: PodInfo) -> tuple[int, int]:
    asked = dict(pod.kind.demand.requests)
    return asked.get(CPU, 0), asked.get(MEMORY, 0)
