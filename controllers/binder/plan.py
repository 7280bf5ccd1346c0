"""First fit, highest priority first: bind what fits, and say of the rest why no Node takes it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from controllers.binder.decisions import Bind, Refuse, Reported
from controllers.binder.observe import Observed
from controllers.kernel.refs import POD, Key, Ref
from controllers.scheduling.classes import Classes, Group
from controllers.scheduling.placement import place
from controllers.scheduling.schedulable import explain
from controllers.scheduling.shapes import PodInfo
from controllers.scheduling.snapshot import Snapshot

UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"
_NO_NODES = "no nodes available to schedule pods"


def plan(observed: Observed) -> tuple[Bind | Refuse, ...]:
    """Every pod that waits is bound, or refused if that has not been said yet."""
    refused = [Refuse(ref, Reported(SCHEDULER_ERROR, why)) for ref, why in observed.unreadable]
    decided = [*_assigned(observed), *refused]
    return tuple(each for each in decided if isinstance(each, Bind) or observed.reported.get(each.pod.uid) != each.says)


def _assigned(observed: Observed) -> Iterator[Bind | Refuse]:
    if not observed.pending:
        return
    kinds = (pod.kind for pod in (*observed.pods, *observed.pending))
    snapshot = Snapshot(observed.nodes, observed.pods, Classes(kinds, observed.namespaces))
    left: list[Group] = []
    for _, pods in groupby(observed.pending, key=lambda pod: pod.kind.priority):
        for group in snapshot.classes.group(pods):
            placed = place(snapshot, group.pod_class, len(group))
            reservation = (share.row for share in placed.shares for _ in range(share.per_node))
            for pod, row in zip(group.pods, reservation, strict=False):
                yield Bind(_ref(pod), snapshot.nodes[row].name)
            if placed.count < len(group):
                left.append(Group(group.pod_class, group.pods[placed.count :]))
    for group in left:
        says = Reported(UNSCHEDULABLE, explain(snapshot, group.pod_class) if observed.nodes else _NO_NODES)
        for pod in group.pods:
            yield Refuse(_ref(pod), says)


def _ref(pod: PodInfo) -> Ref:
    return Ref(POD, Key(pod.namespace, pod.name), pod.uid)
