"""How many of certain new Nodes, which come in this order and no other, do pending pods need?

For Nodes that differ in their place, so that ``binpacking`` can't take them all for copies of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from controllers.scheduling.binpacking import Estimate, Filled, by_size
from controllers.scheduling.classes import PodClass
from controllers.scheduling.likeness import requirements_of
from controllers.scheduling.placement import place
from controllers.scheduling.shapes import NodeInfo
from controllers.scheduling.snapshot import Snapshot

Coming = tuple[NodeInfo, Sequence[PodClass]]
"""A Node with the pods of DaemonSets that run on it."""


def asks_where(snapshot: Snapshot, pod_class: PodClass, label: str) -> bool:
    """Whether the label of a Node decides if such a pod may go there, by its constraints or by those of pods
    around.
    """
    demand = pod_class.demand
    terms = (*demand.affinity, *demand.anti_affinity, *snapshot.aversions(pod_class))
    keys = {term.topology_key for term in terms} | {spread.topology_key for spread in demand.spread}
    return label in keys or any(requirement.key == label for requirement in requirements_of(pod_class))


def estimate_in_order(
    snapshot: Snapshot, coming: Sequence[Coming], pods: Mapping[PodClass, int], places: int
) -> Estimate:
    """The first of ``coming`` that are needed; some may stay empty, because only one behind them is in the right place.

    A class of pods that none of ``places`` Nodes in a row takes is left. On a fork, as ``binpacking.estimate``.
    """
    snapshot.fork()
    try:
        return _fill(snapshot, coming, pods, places)
    finally:
        snapshot.revert()


def _fill(snapshot: Snapshot, coming: Sequence[Coming], pods: Mapping[PodClass, int], places: int) -> Estimate:
    left = dict(pods)
    idle: Counter[PodClass] = Counter()
    rows: list[int] = []
    filled: list[Counter[PodClass]] = []
    for node, daemons in coming:
        hopeful = [pod_class for pod_class in left if idle[pod_class] < places]
        if not hopeful:
            break
        rows.append(snapshot.add_nodes(node))
        filled.append(Counter())
        for daemon in daemons:
            snapshot.place(daemon, rows[-1])
        for pod_class in by_size(hopeful, node):
            placed = place(snapshot, pod_class, left[pod_class], np.array(rows, np.int64))
            idle[pod_class] = 0 if placed.count else idle[pod_class] + 1
            left[pod_class] -= placed.count
            for share in placed.shares:
                filled[rows.index(share.row)][pod_class] += share.per_node
            if not left[pod_class]:
                del left[pod_class]
    while filled and not filled[-1]:
        filled.pop()
    found = {pod_class: count - left.get(pod_class, 0) for pod_class, count in pods.items()}
    placed_ = {pod_class: count for pod_class, count in found.items() if count}
    return Estimate(len(filled), placed_, left, tuple(Filled(1, dict(each)) for each in filled))
