"""A cluster to try things on: Nodes in rows, pods counted by class, ``fork`` and ``revert`` at the price of the change.

A row is one Node, or several that are the same in everything but their name (``copies``): a thousand Nodes that don't
exist yet are one row until pods make them differ. All amounts are those of one Node of the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from controllers.scheduling.classes import Classes, Index, Mark, PodClass, marks_of
from controllers.scheduling.columns import Bools, Ints
from controllers.scheduling.predicates import Occupied
from controllers.scheduling.shapes import (
    HOSTNAME,
    PODS,
    UNSCHEDULABLE_TAINT,
    Amounts,
    Demand,
    NodeInfo,
    PodInfo,
    PodKind,
    PodTerm,
    Taint,
)
from controllers.scheduling.tables import Catalogue, PodCounts

_ROWS = 64
_DRAINED = Taint(UNSCHEDULABLE_TAINT, "", "NoSchedule")
_NO_NODE = "no Node of this name is in the snapshot"


class Matcher(Protocol):
    """A set of classes; hashable, so that a snapshot counts for each one only once."""

    @property
    def marks(self) -> tuple[Mark, ...] | None:
        """Of which a class has one if it matches; None: any class may."""

    def matches(self, pod_class: PodClass) -> bool: ...

    def __hash__(self) -> int: ...


class Snapshot:
    """``nodes`` with their ``pods``; pods of Nodes that are not among them are left out (``unmatched``)."""

    def __init__(self, nodes: Iterable[NodeInfo], pods: Iterable[PodInfo], classes: Classes) -> None:
        self.classes = classes
        self.nodes: list[NodeInfo] = []
        self.pods = PodCounts()
        self._row_of: dict[str, int] = {}
        self._catalogue = Catalogue()
        self._shape_of: Ints = np.zeros(_ROWS, np.int64)
        self._resources: dict[str, int] = {PODS: 0}
        self._free: Ints = np.zeros((_ROWS, 4), np.int64)
        self._copies: Ints = np.zeros(_ROWS, np.int64)
        self._closed: Bools = np.zeros(_ROWS, np.bool_)
        self._counts: dict[Matcher, Ints] = {}
        self._matchers: Index[Matcher] = Index()
        self._concerned: dict[PodClass, list[Ints]] = {}
        self._classes: Index[PodClass] = Index()
        self._aversions: Index[PodTerm] = Index()
        self._averse: set[PodTerm] = set()
        self._journal: list[tuple[str, int, PodClass | None, int]] = []
        self._cleared: list[tuple[dict[PodClass, int], Ints]] = []
        """Pods of the Nodes that were closed, and what they left; in order."""
        self._marks: list[int] = []
        self._lay_out(list(nodes))
        self.unmatched = self._assign(pods)

    def _lay_out(self, nodes: list[NodeInfo]) -> None:
        """A row for each, all at once."""
        self._grow(len(nodes))
        self._row_of = {node.name: row for row, node in enumerate(nodes)}
        self.nodes.extend(nodes)
        self._copies[: len(nodes)] = 1
        self._shape_of[: len(nodes)] = [self._catalogue.number(node) for node in nodes]
        self._register(dict.fromkeys(name for node in nodes for name, _ in node.allocatable))
        for row, node in enumerate(nodes):
            self.pods.new_row({})
            for name, amount in node.allocatable:
                self._free[row, self._resources[name]] = amount

    def _assign(self, pods: Iterable[PodInfo]) -> tuple[PodInfo, ...]:
        """Put all pods where they are, as numbers; returns those of Nodes that are not here."""
        seated = list(pods)
        numbers: dict[PodKind, int] = {}
        rows = np.fromiter((self._row_of.get(pod.node, -1) for pod in seated), np.int64, len(seated))
        kinds = np.fromiter((numbers.setdefault(pod.kind, len(numbers)) for pod in seated), np.int64, len(seated))
        finished = np.fromiter((kind.keeping.finished for kind in numbers), np.bool_, len(numbers))
        met = np.zeros(len(numbers), np.bool_)
        met[kinds[rows >= 0]] = True
        codes = np.zeros(len(numbers), np.int64)
        classes: dict[PodClass, int] = {}
        for number, kind in enumerate(numbers):
            if met[number] and not finished[number]:
                codes[number] = classes.setdefault(self.classes.of(kind), len(classes))
        there = (rows >= 0) & ~finished[kinds]
        self._take(list(classes), *self.pods.assign(list(classes), codes[kinds[there]], rows[there]))
        return tuple(seated[position] for position in np.flatnonzero(rows < 0))

    def _take(self, classes: Sequence[PodClass], codes: Ints, rows: Ints, counts: Ints) -> None:
        """The room of pods that are seated."""
        asks: dict[str, Ints] = {PODS: np.ones(len(classes), np.int64)}
        for code, pod_class in enumerate(classes):
            self._meet(pod_class)
            for name, amount in pod_class.demand.requests:
                asks.setdefault(name, np.zeros(len(classes), np.int64))[code] += amount
        self._register(asks)
        for name, amounts in asks.items():
            np.subtract.at(self._free[:, self._resources[name]], rows, amounts[codes] * counts)

    def __len__(self) -> int:
        """Rows, closed ones included."""
        return len(self.nodes)

    @property
    def copies(self) -> Ints:
        return self._copies[: len(self.nodes)]

    @property
    def rows(self) -> Ints:
        """Rows that are not closed."""
        return np.flatnonzero(~self._closed[: len(self.nodes)])

    @property
    def closed(self) -> Bools:
        return self._closed[: len(self.nodes)]

    def row(self, name: str) -> int:
        """Raises KeyError for a Node that is not in the snapshot."""
        if name not in self._row_of:
            raise KeyError(f"{name}: {_NO_NODE}")
        return self._row_of[name]

    # -- trying things ---------------------------------------------------------------------------------------------

    def fork(self) -> None:
        """What follows can be undone by ``revert`` or kept by ``commit``. Forks nest."""
        self._marks.append(len(self._journal))

    def revert(self) -> None:
        """Undo everything since the last fork; costs as much as was changed."""
        mark = self._marks.pop()
        while len(self._journal) > mark:
            what, row, pod_class, number = self._journal.pop()
            if pod_class is not None:
                self._move(pod_class, row, -number)
            elif what == "add":
                self.nodes.pop()
                self.pods.drop_row()
            elif what == "split":
                self._copies[row] += number
            else:
                self._reopen(row)

    def commit(self) -> None:
        """Keep what was done since the last fork."""
        self._marks.pop()
        if not self._marks:
            self._journal.clear()
            self._cleared.clear()

    def place(self, pod_class: PodClass, row: int, count: int = 1) -> None:
        """``count`` more pods on each Node of ``row``; a negative count takes them away. Nothing is checked."""
        if count:
            self._move(pod_class, row, count)
            self._note("place", row, pod_class, count)

    def add_nodes(self, node: NodeInfo, copies: int = 1) -> int:
        """A row of empty Nodes; returns its number."""
        self._register(name for name, _ in node.allocatable)
        row = self._new_row(node, copies)
        self._free[row] = 0
        for name, amount in node.allocatable:
            self._free[row, self._resources[name]] = amount
        for counts in self._counts.values():
            counts[row] = 0
        return row

    def split(self, row: int, first: int) -> int:
        """Cut a row in two; ``first`` Nodes stay, the others make the new row that is returned."""
        others = int(self._copies[row]) - first
        self._copies[row] = first
        self._note("split", row, None, others)
        new = self._new_row(self.nodes[row], others, self.pods[row])
        self._free[new] = self._free[row]
        for counts in self._counts.values():
            counts[new] = counts[row]
        return new

    def resize(self, row: int, copies: int) -> None:
        """A row may have no Nodes at all: then nothing counts it."""
        self._note("split", row, None, int(self._copies[row]) - copies)
        self._copies[row] = copies

    def close(self, row: int) -> None:
        """The Node is being drained: its pods are gone and no new ones come, but it still counts as a place over
        which pods are spread, as it does for kube-scheduler until the Node is deleted.
        """
        pods, left = self.pods.replace(row, {}), self._free[row].copy()
        self._free[row] = 0
        for name, amount in self.nodes[row].allocatable:
            self._free[row, self._resources[name]] = amount
        self._count_all(row, pods, -1)
        self._closed[row] = True
        if self._marks:
            self._cleared.append((pods, left))
            self._note("close", row, None, 0)

    # -- asking ----------------------------------------------------------------------------------------------------

    def free(self, resource: str) -> Ints:
        """Per row what is left."""
        self._register((resource,))
        return self._free[: len(self.nodes), self._resources[resource]]

    def headroom(self, requests: Amounts, rows: Ints) -> Ints:
        """How many pods with these requests still fit one Node of each of ``rows``, by resources alone."""
        headroom = self.free(PODS)[rows]
        for name, amount in requests:
            np.minimum(headroom, self.free(name)[rows] // amount, out=headroom)
        return np.maximum(headroom, 0, out=headroom)

    def counts(self, matcher: Matcher) -> Ints:
        """Per row how many pods of the matcher's classes one of its Nodes has. Live: it follows the snapshot."""
        known = self._counts.get(matcher)
        if known is None:
            known = self._counts[matcher] = np.zeros(len(self._copies), np.int64)
            self._matchers.add(matcher, matcher.marks)
            marks = matcher.marks
            for pod_class in self.pods.classes if marks is None else dict.fromkeys(self._classes.concerning(marks)):
                if matcher.matches(pod_class):
                    self._concerned.pop(pod_class, None)
                    self.pods.count(pod_class, known)
        return known[: len(self.nodes)]

    def aversions(self, pod_class: PodClass) -> list[PodTerm]:
        """Anti-affinity terms of pods that are or were here, as far as they mean this class."""
        found = dict.fromkeys(self._aversions.concerning(pod_class.marks))
        return [term for term in found if pod_class.is_meant_by(term)]

    def codes(self, key: str) -> Ints:
        """Per row a number for its value of the label, or ABSENT, or ALONE."""
        found: Ints = self._catalogue.label(key).codes[self._shape_of[: len(self.nodes)]]
        return found

    def code(self, key: str, value: str) -> int:
        """The number of that value of the label, ABSENT if no Node has it."""
        return self._catalogue.label(key).code(value)

    def admits(self, pod_class: PodClass, rows: Ints) -> Bools:
        """Whether cordon, taints, node selector and node affinity of the Nodes of ``rows`` let the class in."""
        return self.selected(pod_class.demand, rows) & self.tolerated(pod_class.demand, rows)

    def selected(self, demand: Demand, rows: Ints) -> Bools:
        """Node selector and node affinity alone."""
        found: Bools = self._catalogue.selected(demand)[self._shape_of[rows]]
        return found

    def tolerated(self, demand: Demand, rows: Ints) -> Bools:
        """Cordon and taints alone."""
        found: Bools = self._catalogue.tolerated(demand)[self._shape_of[rows]]
        return found

    def untainted(self, demand: Demand, rows: Ints) -> Bools:
        """Taints alone."""
        found: Bools = self._catalogue.untainted(demand)[self._shape_of[rows]]
        return found

    def occupied(self, rows: Sequence[int] | Ints | None = None) -> list[Occupied]:
        """Node by Node for the scalar predicates; copies get names and hostnames of their own, closed Nodes a taint."""
        found: list[Occupied] = []
        for row in range(len(self.nodes)) if rows is None else rows:
            node, pods = self.nodes[row], self.pods[row]
            if self._closed[row]:
                node = replace(node, unschedulable=True, taints=(*node.taints, _DRAINED))
            names = [f"{node.name}-{row}-{copy}" for copy in range(int(self._copies[row]))]
            found.extend(Occupied(_named(node, name) if node.hypothetical else node, pods) for name in names)
        return found

    # -- inside ----------------------------------------------------------------------------------------------------

    def _move(self, pod_class: PodClass, row: int, count: int) -> None:
        if not self.pods.knows(pod_class):
            self.pods.meet(pod_class)
            self._meet(pod_class)
        self.pods.add(row, pod_class, count)
        free = self._free[row]
        free[0] -= count
        for name, amount in pod_class.demand.requests:
            column = self._resources.get(name)
            if column is None:
                self._register((name,))
                column, free = self._resources[name], self._free[row]
            free[column] -= amount * count
        for counts in self._counted(pod_class) if self._counts else ():
            counts[row] += count

    def _reopen(self, row: int) -> None:
        pods, left = self._cleared.pop()
        self.pods.replace(row, pods)
        self._free[row, : len(left)] = left
        self._count_all(row, pods, 1)
        self._closed[row] = False

    def _count_all(self, row: int, pods: dict[PodClass, int], sign: int) -> None:
        """All pods of the row at once: -1 when they go, 1 when they are back."""
        for pod_class, count in pods.items() if self._counts else ():
            for counts in self._counted(pod_class):
                counts[row] += sign * count

    def _meet(self, pod_class: PodClass) -> None:
        """A class that was not here before."""
        for mark in pod_class.marks:
            self._classes.add(pod_class, (mark,))
        for term in pod_class.demand.anti_affinity:
            if term not in self._averse:
                self._averse.add(term)
                self._aversions.add(term, marks_of(term.selector))

    def _counted(self, pod_class: PodClass) -> list[Ints]:
        """The counts of all matchers that mean the class."""
        known = self._concerned.get(pod_class)
        if known is None:
            found = dict.fromkeys(self._matchers.concerning(pod_class.marks))
            known = self._concerned[pod_class] = [self._counts[each] for each in found if each.matches(pod_class)]
        return known

    def _note(self, what: str, row: int, pod_class: PodClass | None, number: int) -> None:
        if self._marks:
            self._journal.append((what, row, pod_class, number))

    def _new_row(self, node: NodeInfo, copies: int, pods: dict[PodClass, int] | None = None) -> int:
        row = len(self.nodes)
        if row == len(self._copies):
            self._grow(row)
        self.nodes.append(node)
        self.pods.new_row(pods or {})
        self._shape_of[row] = self._catalogue.number(node)
        self._copies[row] = copies
        self._closed[row] = False
        self._note("add", row, None, 0)
        return row

    def _grow(self, more: int) -> None:
        self._shape_of = np.concatenate([self._shape_of, np.zeros(more, np.int64)])
        self._free = np.concatenate([self._free, np.zeros((more, self._free.shape[1]), np.int64)])
        self._copies = np.concatenate([self._copies, np.zeros(more, np.int64)])
        self._closed = np.concatenate([self._closed, np.zeros(more, np.bool_)])
        self._concerned.clear()
        for matcher, counts in self._counts.items():
            self._counts[matcher] = np.concatenate([counts, np.zeros(more, np.int64)])

    def _register(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._resources:
                if len(self._resources) == self._free.shape[1]:
                    self._free = np.concatenate([self._free, np.zeros_like(self._free)], axis=1)
                self._resources[name] = len(self._resources)


def _named(node: NodeInfo, name: str) -> NodeInfo:
    labels = {**node.labels, HOSTNAME: name} if HOSTNAME in node.labels else node.labels
    return replace(node, name=name, labels=labels)
