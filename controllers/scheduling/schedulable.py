"""Which pending pods need no new Node, because they fit on those that are there or on their way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controllers.scheduling.classes import Group, PodClass
from controllers.scheduling.placement import place
from controllers.scheduling.predicates import Judge
from controllers.scheduling.refusals import summary
from controllers.scheduling.shapes import CPU, MEMORY, PodInfo
from controllers.scheduling.snapshot import Snapshot

_MOST_NODES = 3
"""Nodes whose free amounts are listed."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """Every pod is in exactly one of the two."""

    schedulable: tuple[Group, ...]
    unschedulable: tuple[Group, ...]


def filter_schedulable(snapshot: Snapshot, pods: Iterable[PodInfo]) -> Filtered:
    """Seat the pods that fit, highest priority first, first fit. They stay in ``snapshot``: fork it to only ask.

    Costs classes × Nodes. kube-scheduler may spread the pods otherwise, so that one more of them stays pending than
    was foreseen here; the next look at the cluster then finds it.
    """
    by_priority: dict[int, list[PodInfo]] = {}
    for pod in pods:
        by_priority.setdefault(pod.kind.priority, []).append(pod)
    fitting: list[Group] = []
    left: list[Group] = []
    for priority in sorted(by_priority, reverse=True):
        for group in snapshot.classes.group(by_priority[priority]):
            count = place(snapshot, group.pod_class, len(group)).count
            if count:
                fitting.append(Group(group.pod_class, group.pods[:count]))
            if count < len(group):
                left.append(Group(group.pod_class, group.pods[count:]))
    return Filtered(tuple(fitting), tuple(left))


def explain(snapshot: Snapshot, pod_class: PodClass) -> str:
    """Why no Node takes such a pod, in kube-scheduler's words; asks Node by Node."""
    nodes = snapshot.occupied()
    judge = Judge(pod_class, nodes)
    found = [judge.refusal(each) for each in nodes]
    if not all(found):
        return f"{sum(1 for each in found if each is None)}/{len(found)} nodes are available"
    return summary(each for each in found if each)


def shortages(snapshot: Snapshot, pod_class: PodClass) -> str:
    """Which Nodes lack what, wanted and free; "" if each has enough. At most three Nodes, the number of the others."""
    wanted = dict(pod_class.requests)
    found = []
    for row in snapshot.rows:
        free = {name: int(snapshot.free(name)[row]) for name in wanted}
        if any(free[name] < amount for name, amount in wanted.items()):
            found.append(f"Node {snapshot.nodes[row].name} has only {_amounts(free)} free")
    if not found:
        return ""
    more = f" and {len(found) - _MOST_NODES} more" if len(found) > _MOST_NODES else ""
    return f"{', '.join(found[:_MOST_NODES])}{more}; the pod needs {_amounts(wanted)}"


def _amounts(amounts: Mapping[str, int]) -> str:
    """cpu in milli-cores, memory in MiB, the others as they are counted."""
    return ", ".join(f"{_amount(name, amounts[name])} {name}" for name in sorted(amounts))


def _amount(name: str, amount: int) -> str:
    if name == CPU:
        return f"{amount}m"
    return f"{amount / 2**20:.0f}Mi" if name == MEMORY else str(amount)
