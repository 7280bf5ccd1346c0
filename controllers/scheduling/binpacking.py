"""How many new Nodes of one kind do pending pods need? First fit, biggest classes first.

As the Cluster Autoscaler's estimator: groups of equal pods in falling order of their share of a Node; each pod goes to
a new Node that is there already, else one more Node is added, unless the last one is still empty and did not take the
pod. The work is by classes × rows of Nodes that differ, not by pods × Nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from controllers.scheduling.classes import PodClass
from controllers.scheduling.columns import Ints
from controllers.scheduling.fitting import PLENTY, headroom_of
from controllers.scheduling.placement import place
from controllers.scheduling.rules import rules_of
from controllers.scheduling.shapes import CPU, HOSTNAME, MEMORY, NodeInfo
from controllers.scheduling.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Filled:
    """``copies`` new Nodes that got the same pods, counted per class."""

    copies: int
    pods: Mapping[PodClass, int]


@dataclass(frozen=True, slots=True)
class Estimate:
    """``nodes`` new Nodes take the pods of ``placed``; ``left`` find no room even so, or none within the limit.

    ``most_tried``: so many were tried at a time before those that nothing came to were taken away again. With any limit
    from that on it is the same estimate.
    """

    nodes: int
    placed: Mapping[PodClass, int]
    left: Mapping[PodClass, int]
    filled: tuple[Filled, ...] = ()
    hit_limit: bool = False
    most_tried: int = 0

    @property
    def pods(self) -> int:
        return sum(self.placed.values())

    @property
    def concerns(self) -> bool:
        """Whether it was asked about any pods."""
        return bool(self.placed or self.left)


def template(node: NodeInfo, name: str) -> NodeInfo:
    """``node`` as the picture of Nodes that don't exist yet: nobody can ask for it by name."""
    return replace(node, name=name, labels={**node.labels, HOSTNAME: name}, hypothetical=True)


def estimate(
    snapshot: Snapshot,
    node: NodeInfo,
    pods: Mapping[PodClass, int],
    limit: int,
    daemons: Iterable[PodClass] = (),
) -> Estimate:
    """Try it on a fork of ``snapshot``, which is the same afterwards. ``daemons`` run on every new Node."""
    snapshot.fork()
    try:
        return Packing(snapshot, node, limit, tuple(daemons)).pack(pods)
    finally:
        snapshot.revert()


def filled_up(found: Estimate, nodes: int) -> Estimate:
    """With so many Nodes, though the pods need fewer: the others stay empty."""
    empty = nodes - found.nodes
    return replace(found, nodes=nodes, filled=(*found.filled, Filled(empty, {}))) if empty > 0 else found


def commit(snapshot: Snapshot, node: NodeInfo, found: Estimate, daemons: Sequence[PodClass] = ()) -> list[int]:
    """Add the Nodes of an estimate with their pods, for the next one to see; returns their rows."""
    rows = []
    for filled in found.filled:
        row = snapshot.add_nodes(node, filled.copies)
        for pod_class in daemons:
            snapshot.place(pod_class, row)
        for pod_class, count in filled.pods.items():
            snapshot.place(pod_class, row, count)
        rows.append(row)
    return rows


def by_size(pods: Iterable[PodClass], node: NodeInfo) -> list[PodClass]:
    """Biggest first: by cpu and memory, each as a share of the Node; equals keep their order."""
    there = dict(node.allocatable)
    cpu, memory = there.get(CPU, 0), there.get(MEMORY, 0)

    def share(pod_class: PodClass) -> float:
        asked = dict(pod_class.requests)
        return (asked.get(CPU, 0) / cpu if cpu else 0.0) + (asked.get(MEMORY, 0) / memory if memory else 0.0)

    return sorted(pods, key=share, reverse=True)


@dataclass(slots=True)
class Packing:
    """``order``: rows of new Nodes, ``added``: how many Nodes they are, ``spare``: a row without Nodes, or -1."""

    snapshot: Snapshot
    node: NodeInfo
    limit: int
    daemons: tuple[PodClass, ...]
    order: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    added: int = 0
    spare: int = -1
    hit_limit: bool = False
    most_tried: int = 0

    def pack(self, pods: Mapping[PodClass, int]) -> Estimate:
        placed: dict[PodClass, int] = {}
        for pod_class in by_size(pods, self.node):
            count = self.pack_class(pod_class, pods[pod_class])
            if count:
                placed[pod_class] = count
        left = {each: count - placed.get(each, 0) for each, count in pods.items() if count > placed.get(each, 0)}
        filled = tuple(self._filled(row) for row in self.order.tolist() if self._is_used(row))
        return Estimate(sum(each.copies for each in filled), placed, left, filled, self.hit_limit, self.most_tried)

    def pack_class(self, pod_class: PodClass, count: int) -> int:
        placed = self._place(pod_class, count)
        while placed < count:
            more = self._add(pod_class, count - placed)
            if not more:
                break
            placed += more
        return placed

    def _place(self, pod_class: PodClass, count: int) -> int:
        result = place(self.snapshot, pod_class, count, self.order)
        self.order = result.order
        return result.count

    def _add(self, pod_class: PodClass, count: int) -> int:
        """Add as many Nodes as the pods need and put pods on them; 0 if an empty Node does not take any."""
        allowed = self.limit - self.added
        if allowed <= 0:
            self.hit_limit, self.most_tried = True, max(self.most_tried, self.added + 1)
            return 0
        row = self._spare()
        per_node = int(headroom_of(self.snapshot, pod_class, np.array([row]))[0])
        if not per_node:
            return 0
        per_node = min(per_node, self._most_per_node(pod_class))
        nodes = -(-count // per_node) if per_node else 1
        self.most_tried = max(self.most_tried, self.added + nodes)
        self.snapshot.resize(row, min(nodes, allowed))
        self.order = np.append(self.order, row)
        placed = self._place(pod_class, count)
        self._trim()
        return placed

    def new_row(self, copies: int) -> int:
        """A row of so many new Nodes with their daemons, not yet in ``order``."""
        row = self._spare()
        self.spare = -1
        self.snapshot.resize(row, copies)
        return row

    def _most_per_node(self, pod_class: PodClass) -> int:
        """How many pods of the class an empty Node takes by what they mean to each other; 0: add Nodes one by one,
        since an empty Node more changes where the other pods may go.
        """
        most = PLENTY
        for rule in rules_of(self.snapshot, pod_class):
            most = min(most, rule.most_per_new_node())
        return most

    def _spare(self) -> int:
        """A row without Nodes, for the next ones."""
        if self.spare < 0:
            self.spare = self.snapshot.add_nodes(self.node, 0)
            for pod_class in self.daemons:
                self.snapshot.place(pod_class, self.spare)
        return self.spare

    def _trim(self) -> None:
        """Nodes that nothing came to are not added after all."""
        self.spare = -1
        row = int(self.order[-1])
        if not self._is_used(row):
            self.order = self.order[:-1]
            self.snapshot.resize(row, 0)
            self.spare = row
        self.added = int(self.snapshot.copies[self.order].sum())

    def _is_used(self, row: int) -> bool:
        return sum(self.snapshot.pods[row].values()) > len(self.daemons)

    def _filled(self, row: int) -> Filled:
        """A pod may be of the same class as one of a DaemonSet."""
        own = Counter(self.snapshot.pods[row])
        own.subtract(self.daemons)
        return Filled(int(self.snapshot.copies[row]), {each: count for each, count in own.items() if count})
