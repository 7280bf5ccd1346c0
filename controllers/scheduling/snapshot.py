"""A cluster to try things on: Nodes in rows, pods counted by class, ``fork`` and ``revert`` at the price of the change.

A row is one Node, or several that are the same in everything but their name (``copies``): a thousand Nodes that don't
exist yet are one row until pods make them differ. All amounts are those of one Node of the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from controllers.scheduling.catalogue import Catalogue
from controllers.scheduling.classes import Classes, PodClass
from controllers.scheduling.columns import Bools, Ints
from controllers.scheduling.marks import Index, Mark, marks_of
from controllers.scheduling.predicates import Occupied
from controllers.scheduling.shapes import (
    HOSTNAME,
    PODS,
    UNSCHEDULABLE_TAINT,
    Amounts,
    Demand,
    NodeShape,
    PodKind,
    PodShape,
    PodTerm,
    Taint,
)

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
    """``nodes`` with their ``pods``; pods of Nodes that are not among them are left out (``strays``)."""

    def __init__(self, nodes: Iterable[NodeShape], pods: Iterable[PodShape], classes: Classes) -> None:
        self.classes = classes
        self.nodes: list[NodeShape] = []
        self.pods: list[dict[PodClass, int]] = []
        self._row_of: dict[str, int] = {}
        self._seats: dict[PodClass, dict[int, int]] = {}
        self._catalogue = Catalogue()
        self._shape_of: Ints = np.zeros(_ROWS, np.int64)
        self._resources: dict[str, int] = {PODS: 0}
        self._free: Ints = np.zeros((_ROWS, 4), np.int64)
        self._copies: Ints = np.zeros(_ROWS, np.int64)
        self._closed: Bools = np.zeros(_ROWS, np.bool_)
        self._counts: dict[Matcher, Ints] = {}
        self._matchers: Index[Matcher] = Index()
        self._concerned: dict[PodClass, list[Matcher]] = {}
        self._classes: Index[PodClass] = Index()
        self._aversions: Index[PodTerm] = Index()
        self._averse: set[PodTerm] = set()
        self._journal: list[tuple[str, int, PodClass | None, int]] = []
        self._marks: list[int] = []
        for node in nodes:
            self._row_of[node.name] = self.add_nodes(node)
        self.strays = self._seat(pods)

    def _seat(self, pods: Iterable[PodShape]) -> tuple[PodShape, ...]:
        """Put all pods where they are; by class, since that is many pods at a time."""
        seats_of: dict[PodKind, dict[int, int]] = {}
        strays = []
        for pod in pods:
            row = self._row_of.get(pod.node)
            if row is None:
                strays.append(pod)
                continue
            seats = seats_of.get(pod.kind)
            if seats is None:
                seats = seats_of[pod.kind] = {}
            seats[row] = seats.get(row, 0) + 1
        for kind, seats in seats_of.items():
            if not kind.keeping.finished:
                self._seat_all(self.classes.of(kind), seats)
        return tuple(strays)

    def _seat_all(self, pod_class: PodClass, seats: dict[int, int]) -> None:
        if pod_class in self._seats:
            for row, count in seats.items():
                self._move(pod_class, row, count)
            return
        self._meet(pod_class)
        self._seats[pod_class] = seats
        rows, counts = (np.fromiter(each, np.int64, len(seats)) for each in (seats.keys(), seats.values()))
        for name, amount in ((PODS, 1), *pod_class.demand.requests):
            self._register((name,))
            self._free[rows, self._resources[name]] -= amount * counts
        for row, count in seats.items():
            self.pods[row][pod_class] = count

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
                for each in self.pods.pop():
                    del self._seats[each][row]
            elif what == "split":
                self._copies[row] += number
            else:
                self._closed[row] = False

    def commit(self) -> None:
        """Keep what was done since the last fork."""
        self._marks.pop()
        if not self._marks:
            self._journal.clear()

    def place(self, pod_class: PodClass, row: int, count: int = 1) -> None:
        """``count`` more pods on each Node of ``row``; a negative count takes them away. Nothing is checked."""
        if count:
            self._move(pod_class, row, count)
            self._note("place", row, pod_class, count)

    def add_nodes(self, node: NodeShape, copies: int = 1) -> int:
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
        for pod_class, count in list(self.pods[row].items()):
            self.place(pod_class, row, -count)
        self._closed[row] = True
        self._note("close", row, None, 0)

    # -- asking ----------------------------------------------------------------------------------------------------

    def free(self, resource: str) -> Ints:
        """Per row what is left."""
        self._register((resource,))
        return self._free[: len(self.nodes), self._resources[resource]]

    def room(self, requests: Amounts, rows: Ints) -> Ints:
        """How many pods with these requests still fit one Node of each of ``rows``, by resources alone."""
        room = self.free(PODS)[rows]
        for name, amount in requests:
            np.minimum(room, self.free(name)[rows] // amount, out=room)
        return np.maximum(room, 0, out=room)

    def counts(self, matcher: Matcher) -> Ints:
        """Per row how many pods of the matcher's classes one of its Nodes has. Live: it follows the snapshot."""
        known = self._counts.get(matcher)
        if known is None:
            known = self._counts[matcher] = np.zeros(len(self._copies), np.int64)
            self._matchers.add(matcher, matcher.marks)
            marks = matcher.marks
            for pod_class in self._seats if marks is None else dict.fromkeys(self._classes.concerning(marks)):
                if not matcher.matches(pod_class):
                    continue
                self._concerned.pop(pod_class, None)
                for row, count in self._seats[pod_class].items():
                    known[row] += count
        return known[: len(self.nodes)]

    def aversions(self, pod_class: PodClass) -> list[PodTerm]:
        """Anti-affinity terms of pods that are or were here, as far as they mean this class."""
        found = dict.fromkeys(self._aversions.concerning(pod_class.marks))
        return [term for term in found if pod_class.is_meant_by(term)]

    def codes(self, key: str) -> Ints:
        """Per row a number for its value of the label, or ABSENT, or ALONE."""
        found: Ints = self._catalogue.label(key).codes[self._shape_of[: len(self.nodes)]]
        return found

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
        self._sit(pod_class, row, count)
        free = self._free[row]
        free[0] -= count
        for name, amount in pod_class.demand.requests:
            column = self._resources.get(name)
            if column is None:
                self._register((name,))
                column, free = self._resources[name], self._free[row]
            free[column] -= amount * count
        for matcher in self._matching(pod_class) if self._counts else ():
            self._counts[matcher][row] += count

    def _sit(self, pod_class: PodClass, row: int, count: int) -> None:
        if pod_class not in self._seats:
            self._meet(pod_class)
        pods, seats = self.pods[row], self._seats[pod_class]
        left = pods.get(pod_class, 0) + count
        if left:
            pods[pod_class] = seats[row] = left
        else:
            del pods[pod_class], seats[row]

    def _meet(self, pod_class: PodClass) -> None:
        """A class that was not here before."""
        self._seats[pod_class] = {}
        for mark in pod_class.marks:
            self._classes.add(pod_class, (mark,))
        for term in pod_class.demand.anti_affinity:
            if term not in self._averse:
                self._averse.add(term)
                self._aversions.add(term, marks_of(term.selector))

    def _matching(self, pod_class: PodClass) -> list[Matcher]:
        known = self._concerned.get(pod_class)
        if known is None:
            found = dict.fromkeys(self._matchers.concerning(pod_class.marks))
            known = self._concerned[pod_class] = [each for each in found if each.matches(pod_class)]
        return known

    def _note(self, what: str, row: int, pod_class: PodClass | None, number: int) -> None:
        if self._marks:
            self._journal.append((what, row, pod_class, number))

    def _new_row(self, node: NodeShape, copies: int, pods: dict[PodClass, int] | None = None) -> int:
        row = len(self.nodes)
        if row == len(self._copies):
            self._grow()
        self.nodes.append(node)
        self.pods.append(dict(pods or {}))
        for pod_class, count in self.pods[row].items():
            self._seats[pod_class][row] = count
        self._shape_of[row] = self._catalogue.number(node)
        self._copies[row] = copies
        self._closed[row] = False
        self._note("add", row, None, 0)
        return row

    def _grow(self) -> None:
        more = len(self._copies)
        self._shape_of = np.concatenate([self._shape_of, np.zeros(more, np.int64)])
        self._free = np.concatenate([self._free, np.zeros((more, self._free.shape[1]), np.int64)])
        self._copies = np.concatenate([self._copies, np.zeros(more, np.int64)])
        self._closed = np.concatenate([self._closed, np.zeros(more, np.bool_)])
        for matcher, counts in self._counts.items():
            self._counts[matcher] = np.concatenate([counts, np.zeros(more, np.int64)])

    def _register(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._resources:
                if len(self._resources) == self._free.shape[1]:
                    self._free = np.concatenate([self._free, np.zeros_like(self._free)], axis=1)
                self._resources[name] = len(self._resources)


def _named(node: NodeShape, name: str) -> NodeShape:
    labels = {**node.labels, HOSTNAME: name} if HOSTNAME in node.labels else node.labels
    return replace(node, name=name, labels=labels)
