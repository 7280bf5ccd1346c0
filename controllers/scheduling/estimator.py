"""How many new Nodes do pending pods need, for very many kinds of Nodes? The answers are those of ``binpacking``.

What classes of pods mean to each other is worked out once for all kinds (``relations``). Then most of them are packed
by arithmetic on whole numbers, a class and a row of equal Nodes at a time:

    100 pods of 1 core, Nodes of 4 cores with room for 110 pods: 4 on a Node, 25 Nodes, one row with 25 copies
    then 30 pods of 3 cores: nothing has room; 1 on a Node, 30 Nodes more in a row with 30 copies and 1 core left each

Tangled classes are placed by ``binpacking``, for which the rows are kept in the snapshot, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from controllers.scheduling.binpacking import Estimate, Filled, Packing, by_size
from controllers.scheduling.classes import PodClass
from controllers.scheduling.relations import PlaceLimits, Relations
from controllers.scheduling.shapes import CPU, MEMORY, PODS, NodeInfo
from controllers.scheduling.snapshot import Snapshot

_NOBODY: frozenset[PodClass] = frozenset()
Wants = tuple[tuple[int, int], ...]
"""Columns of resources, and how much of each a pod takes."""


class Estimator:
    """For ``waiting`` classes, which must be all that are ever asked for, and those of ``daemons``.

    To be made anew, or told by ``look``, whenever the snapshot has changed.
    """

    def __init__(self, snapshot: Snapshot, waiting: Iterable[PodClass], daemons: Sequence[PodClass] = ()) -> None:
        classes = list(dict.fromkeys((*waiting, *daemons)))
        self.snapshot = snapshot
        self.relations = Relations(waiting, daemons)
        self.columns = {name: number for number, name in enumerate(_resources(classes))}
        self.wants: dict[PodClass, Wants] = {
            each: tuple((self.columns[name], amount) for name, amount in each.requests) for each in classes
        }
        self.place_limits = PlaceLimits(snapshot)

    def look(self) -> None:
        """The snapshot has changed."""
        self.place_limits = PlaceLimits(self.snapshot)

    def is_simple(self, pods: Iterable[PodClass]) -> bool:
        """No class of them is tangled: an estimate that stays below its limit is that of any higher limit."""
        return self.relations.tangled.isdisjoint(pods)

    def estimate(
        self, node: NodeInfo, pods: Mapping[PodClass, int], limit: int, daemons: Sequence[PodClass] = ()
    ) -> Estimate:
        """As ``binpacking.estimate``, for a hypothetical Node with a hostname. ``daemons`` run on every new Node."""
        order = by_size(pods, node)
        self.snapshot.fork()
        try:
            return _Packing(self, node, limit, tuple(daemons), order).pack(pods)
        finally:
            self.snapshot.revert()


def _resources(classes: Iterable[PodClass]) -> list[str]:
    """Pods, cpu and memory first, in this order."""
    asked = (name for each in classes for name, _ in each.requests)
    return list(dict.fromkeys((PODS, CPU, MEMORY, *asked)))


_PODS, _CPU, _MEMORY = range(3)


@dataclass(slots=True, eq=False)
class _Row:
    """``copies`` Nodes with ``free`` on each, by column, and ``pods``. ``number``: of the snapshot's row, if it is kept
    there.
    """

    free: list[int]
    copies: int
    pods: dict[PodClass, int]
    number: int = -1
    is_full: bool = False
    """Too full for each class that is still to come."""


@dataclass(slots=True)
class _Packing:
    estimator: Estimator
    node: NodeInfo
    limit: int
    daemons: tuple[PodClass, ...]
    order: Sequence[PodClass]
    rows: list[_Row] = field(default_factory=list)
    open: list[_Row] = field(default_factory=list)
    """Of ``rows`` those that are not full."""
    empty: _Row = field(init=False)
    added: int = 0
    hit_limit: bool = False
    most_tried: int = 0
    by_rules: Packing | None = None
    """For tangled classes; None if there are none, and nothing is kept in the snapshot."""

    def __post_init__(self) -> None:
        there, columns = dict(self.node.allocatable), self.estimator.columns
        free = [there.get(name, 0) for name in columns]
        self.empty = _Row(free, 1, dict(Counter(self.daemons)))
        for daemon in self.daemons:
            _take(free, self.estimator.wants[daemon], 1)
        if not self.estimator.is_simple(self.order):
            self.by_rules = Packing(self.estimator.snapshot, self.node, self.limit, self.daemons)

    def pack(self, pods: Mapping[PodClass, int]) -> Estimate:
        limits, tangled = self.estimator.place_limits, self.estimator.relations.tangled
        most = {each: pods[each] if each in tangled else min(pods[each], limits.most(each, self.node)) for each in pods}
        least = self._least_to_come()
        placed: dict[PodClass, int] = {}
        for position, pod_class in enumerate(self.order):
            if pod_class in tangled:
                count = self._pack_by_rules(pod_class, most[pod_class])
            else:
                count = self._pack_class(pod_class, most[pod_class], least[position])
            if count:
                placed[pod_class] = count
        left = {each: count - placed.get(each, 0) for each, count in pods.items() if count > placed.get(each, 0)}
        filled = tuple(self._filled(row) for row in self.rows if sum(row.pods.values()) > len(self.daemons))
        return Estimate(sum(each.copies for each in filled), placed, left, filled, self.hit_limit, self.most_tried)

    def _least_to_come(self) -> list[tuple[int, int]]:
        """Per class the least cpu and memory that it, or any behind it, asks for."""
        found = []
        cpu = memory = None
        for pod_class in reversed(self.order):
            asked = dict(self.estimator.wants[pod_class])
            cpu = min(asked.get(_CPU, 0), cpu) if cpu is not None else asked.get(_CPU, 0)
            memory = min(asked.get(_MEMORY, 0), memory) if memory is not None else asked.get(_MEMORY, 0)
            found.append((cpu, memory))
        return found[::-1]

    def _pack_class(self, pod_class: PodClass, count: int, least: tuple[int, int]) -> int:
        left = self._pour(pod_class, count, least) if count else 0
        return count - (self._add(pod_class, left) if left else 0)

    def _pour(self, pod_class: PodClass, left: int, least: tuple[int, int]) -> int:
        """Onto Nodes that were added before, first fit; returns how many are left."""
        wants = self.estimator.wants[pod_class]
        apart = self.estimator.relations.apart.get(pod_class, _NOBODY)
        filled = False
        for row in self.open:
            most = _headroom(row.free, wants)
            if most <= 0:
                free = row.free
                row.is_full = free[_PODS] <= 0 or free[_CPU] < least[0] or free[_MEMORY] < least[1]
                filled |= row.is_full
                continue
            if apart:
                if not apart.isdisjoint(row.pods):
                    continue
                most = 1 if pod_class in apart else most
            left = self._share_out(row, pod_class, min(most, left), left)
            if not left:
                break
        if filled:
            self.open = [row for row in self.open if not row.is_full]
        return left

    def _share_out(self, row: _Row, pod_class: PodClass, per_node: int, left: int) -> int:
        """7 pods, 3 to each of 4 Nodes: two get 3, the third one gets 1, the last one none. Returns how many are left
        when all Nodes of the row have theirs.
        """
        full = min(row.copies, left // per_node)
        rest = left - full * per_node
        others = self._cut(row, full) if full < row.copies else None
        self._give(row, pod_class, per_node)
        if others is not None and rest:
            if others.copies > 1:
                self._cut(others, 1)
            self._give(others, pod_class, rest)
            rest = 0
        return rest

    def _add(self, pod_class: PodClass, left: int) -> int:
        """As many Nodes as these pods need and the limit allows; returns how many pods are left."""
        allowed = self.limit - self.added
        if allowed <= 0:
            self.hit_limit, self.most_tried = True, max(self.most_tried, self.added + 1)
            return left
        per_node = _headroom(self.empty.free, self.estimator.wants[pod_class])
        apart = self.estimator.relations.apart.get(pod_class, _NOBODY)
        if per_node <= 0 or not apart.isdisjoint(self.empty.pods):
            return left
        per_node = min(per_node, left) if pod_class not in apart else 1
        nodes = -(-left // per_node)
        self.most_tried = max(self.most_tried, self.added + nodes)
        row = self._new_row(min(nodes, allowed))
        left = self._share_out(row, pod_class, per_node, left)
        self.hit_limit |= left > 0
        return left

    def _new_row(self, copies: int) -> _Row:
        row = _Row(list(self.empty.free), copies, dict(self.empty.pods))
        if self.by_rules is not None:
            row.number = self.by_rules.new_row(copies)
        self.added += copies
        self.rows.append(row)
        self.open.append(row)
        return row

    def _cut(self, row: _Row, first: int) -> _Row:
        """``first`` Nodes stay; returns the row of the others, which stands behind it."""
        others = _Row(list(row.free), row.copies - first, dict(row.pods))
        row.copies = first
        if self.by_rules is not None:
            others.number = self.estimator.snapshot.split(row.number, first)
        for rows in (self.rows, self.open):
            rows.insert(rows.index(row) + 1, others)
        return others

    def _give(self, row: _Row, pod_class: PodClass, per_node: int) -> None:
        _take(row.free, self.estimator.wants[pod_class], per_node)
        row.pods[pod_class] = row.pods.get(pod_class, 0) + per_node
        if self.by_rules is not None:
            self.estimator.snapshot.place(pod_class, row.number, per_node)

    def _pack_by_rules(self, pod_class: PodClass, count: int) -> int:
        packing = self.by_rules
        assert packing is not None
        packing.order, packing.added = np.array([row.number for row in self.rows], np.int64), self.added
        placed = packing.pack_class(pod_class, count)
        self.hit_limit |= packing.hit_limit
        self.most_tried = max(self.most_tried, packing.most_tried)
        self.added = packing.added
        if placed:
            self.rows = [self._as_in_snapshot(number) for number in packing.order.tolist()]
            self.open = list(self.rows)
        return placed

    def _as_in_snapshot(self, number: int) -> _Row:
        snapshot = self.estimator.snapshot
        free = [int(snapshot.free(name)[number]) for name in self.estimator.columns]
        return _Row(free, int(snapshot.copies[number]), dict(snapshot.pods[number]), number)

    def _filled(self, row: _Row) -> Filled:
        """A pod may be of the same class as one of a DaemonSet."""
        own = Counter(row.pods)
        own.subtract(self.daemons)
        return Filled(row.copies, {each: count for each, count in own.items() if count})


def _headroom(free: Sequence[int], wants: Wants) -> int:
    """Free: 3 pods, 7 cores, 16 GiB; a pod takes 2 cores and 5 GiB: min(3, 7 // 2, 16 // 5) = 3."""
    most = free[_PODS]
    for column, amount in wants:
        fits = free[column] // amount
        if fits < most:  # noqa: PLR1730 - min() takes twice as long, and nothing is asked more often
            most = fits
    return most


def _take(free: list[int], wants: Wants, count: int) -> None:
    free[_PODS] -= count
    for column, amount in wants:
        free[column] -= amount * count
