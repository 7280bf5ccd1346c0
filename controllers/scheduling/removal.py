"""Which Nodes can go together, with a place for every pod that has to leave them.

One snapshot and one purse of budgets for the whole plan: a Node that goes is no place for the pods of the next one,
room that the pods of one took is taken, and so are disruptions. Costs Nodes × classes per candidate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

import numpy as np

from controllers.scheduling.classes import Classes, Group, PodClass
from controllers.scheduling.columns import Ints
from controllers.scheduling.drainability import Blocking, Blocks, Budget, DrainRules, Moves, PDBBudgets, Verdicts
from controllers.scheduling.incremental_fit import Seeker
from controllers.scheduling.schedulable import explain, shortages
from controllers.scheduling.shapes import CPU, MEMORY, NodeInfo, PodInfo
from controllers.scheduling.snapshot import Snapshot
from controllers.scheduling.tables import PodsByNode

_MOST_EXPLAINED = 3
"""Classes of pods whose refusals are reported Node by Node; computing them is slow."""


class Staying(StrEnum):
    """Why a Node can't go. Named as in the Cluster Autoscaler."""

    BLOCKED_BY_POD = "BlockedByPod"
    NO_PLACE = "NoPlaceToMovePods"
    GROUP_MIN_SIZE = "NodeGroupMinSizeReached"
    ENOUGH = "NotUnneededOtherReason"
    RECEIVES_PODS = "ReceivesPods"
    """It is needed for the pods of Nodes that go."""
    TOGETHER = "AtomicScaleDownFailed"
    """It goes with others or not at all, and one of them stays."""
    NOT_FOUND = "NoNodeInfo"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A Node that may go. ``group``: which of ``RemovalQuestion.most_of`` it counts against.

    ``first``: it goes before all that are not, because nobody would miss it. ``atomic_group``: all candidates of that
    name go together or none does; "": it goes alone.
    """

    name: str
    group: str = ""
    first: bool = False
    atomic_group: str = ""


@dataclass(frozen=True, slots=True)
class RemovalQuestion:
    """``pods`` of all Nodes, not only of the candidates. ``most_of`` caps removals per group, ``most`` all of them, but
    for a bundle that is larger, and then goes alone.
    """

    nodes: Sequence[NodeInfo]
    pods: Sequence[PodInfo]
    candidates: Sequence[Candidate]
    rules: DrainRules
    budgets: Sequence[Budget] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    most: int | None = None
    most_of: Mapping[str, int] = field(default_factory=dict)
    upcoming: Sequence[int] = ()
    """Rows of the snapshot that are no Nodes yet and take pods as well, after ``nodes`` that stay."""


class Move(NamedTuple):
    """Where a pod finds room; kube-scheduler is free to choose otherwise."""

    pod: PodInfo
    to: str


@dataclass(frozen=True, slots=True)
class Removed:
    """``to``: for each of ``pods`` the Node on which it finds room."""

    node: str
    pods: tuple[PodInfo, ...] = ()
    to: tuple[str, ...] = ()

    @property
    def moves(self) -> tuple[Move, ...]:
        """Computed one by one: few of them are ever reported."""
        return tuple(map(Move, self.pods, self.to))


@dataclass(frozen=True, slots=True)
class Kept:
    node: str
    reason: Staying
    why: str
    pod: PodInfo | None = None
    blocking: Blocking | None = None


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """Every candidate is in exactly one of the two. ``removed`` is in the order in which the Nodes should go."""

    removed: tuple[Removed, ...]
    kept: tuple[Kept, ...]


def plan_removal(
    question: RemovalQuestion, snapshot: Snapshot | None = None, pods_by_node: PodsByNode | None = None
) -> RemovalPlan:
    """Least disturbing first: empty Nodes, then those of least utilisation.

    ``snapshot``: one of the same Nodes and pods that is there already, with room taken by pods that are on their way;
    it is the same afterwards. ``pods_by_node``: of the same pods, where that is there already.
    """
    if snapshot is None:
        classes = Classes((pod.kind for pod in question.pods), question.namespaces)
        snapshot = Snapshot(question.nodes, question.pods, classes)
    snapshot.fork()
    try:
        return _plan(_Planner(question, snapshot, pods_by_node or PodsByNode(question.pods)))
    finally:
        snapshot.revert()


def hindered(question: RemovalQuestion, pods_by_node: PodsByNode) -> dict[str, str]:
    """Candidates that could not be drained even alone and with room for all of their pods elsewhere, with why."""
    budgets = PDBBudgets(question.budgets)
    verdicts = Verdicts(question.rules, budgets)
    found: dict[str, str] = {}
    for candidate in question.candidates:
        moving = _moving(candidate.name, pods_by_node, verdicts=verdicts)
        over = None if isinstance(moving, Kept) else budgets.lacks(moving)
        if isinstance(moving, Kept):
            found[candidate.name] = moving.why
        elif over is not None:
            found[candidate.name] = f"pod {over.pod}: {over.why}"
    return found


def _moving(name: str, pods_by_node: PodsByNode, *, verdicts: Verdicts) -> list[PodInfo] | Kept:
    """The pods that need another place."""
    moving: list[PodInfo] = []
    for pod in pods_by_node.on(name):
        found = verdicts.of(pod)
        if isinstance(found, Blocks):
            return Kept(name, Staying.BLOCKED_BY_POD, f"pod {pod}: {found.why}", pod, found.reason)
        if isinstance(found, Moves):
            moving.append(pod)
    return moving


def _plan(planner: _Planner) -> RemovalPlan:
    removed: list[Removed] = []
    kept: list[Kept] = []
    for atomic_group in planner.in_atomic_groups():
        answer = planner.consider(atomic_group, len(removed))
        if isinstance(answer, Kept):
            kept += _all_kept(atomic_group, answer)
        else:
            removed += answer
    return RemovalPlan(tuple(removed), tuple(kept))


def _all_kept(atomic_group: Sequence[Candidate], because: Kept) -> list[Kept]:
    why = f"{len(atomic_group)} Nodes go together or not at all, and {because.node} stays: {because.why}"
    return [
        because if candidate.name == because.node else Kept(candidate.name, Staying.TOGETHER, why)
        for candidate in atomic_group
    ]


class _Planner:
    def __init__(self, question: RemovalQuestion, snapshot: Snapshot, pods_by_node: PodsByNode) -> None:
        self._question = question
        self._budgets = PDBBudgets(question.budgets)
        self._verdicts = Verdicts(question.rules, self._budgets)
        self._pods_by_node = pods_by_node
        self._snapshot = snapshot
        self._load = {node.name: pods_by_node.load(node) for node in question.nodes}
        self._receiving: dict[str, str] = {}
        self._gone: Counter[str] = Counter()
        self._explained: dict[PodClass, str] = {}
        self._sizes: dict[PodClass, tuple[int, int]] = {}
        known = {candidate.name: candidate for candidate in question.candidates}
        self._in_order = sorted(known.values(), key=self._disturbance)
        self._seeker = Seeker(snapshot, self._destination_order())

    def in_atomic_groups(self) -> list[Sequence[Candidate]]:
        """Each where the first of it stands."""
        bundles: dict[tuple[str, str], list[Candidate]] = {}
        for candidate in self._in_order:
            bundles.setdefault((candidate.atomic_group, "" if candidate.atomic_group else candidate.name), []).append(
                candidate
            )
        return list(bundles.values())

    def consider(self, atomic_group: Sequence[Candidate], removed: int) -> list[Removed] | Kept:
        """What becomes of all of them, or the one that stays."""
        group, size = atomic_group[0].group, len(atomic_group)
        moving: dict[str, list[PodInfo]] = {}
        for candidate in atomic_group:
            found: list[PodInfo] | Kept | None = self._hindrance(candidate, removed, size)
            found = found or _moving(candidate.name, self._pods_by_node, verdicts=self._verdicts)
            if isinstance(found, Kept):
                return found
            moving[candidate.name] = found
        everything = list(chain.from_iterable(moving.values()))
        over = self._budgets.lacks(everything)
        if over is not None:
            return Kept(over.pod.node, Staying.BLOCKED_BY_POD, f"pod {over.pod}: {over.why}", over.pod, Blocking.BUDGET)
        answer = self._move(moving)
        if not isinstance(answer, Kept):
            self._budgets.take(everything)
            self._gone[group] += size
        return answer

    def _hindrance(self, candidate: Candidate, removed: int, size: int) -> Kept | None:
        name = candidate.name
        if name not in self._load:
            return Kept(name, Staying.NOT_FOUND, "there is no such Node")
        if name in self._receiving:
            return Kept(name, Staying.RECEIVES_PODS, f"it takes pods of Node {self._receiving[name]}")
        most = self._question.most
        if most is not None and removed + size > most and (removed or not most or size == 1):
            return Kept(name, Staying.ENOUGH, f"{removed} Nodes go at a time")
        of_group = self._question.most_of.get(candidate.group)
        if of_group is not None and self._gone[candidate.group] + size > of_group:
            return Kept(name, Staying.GROUP_MIN_SIZE, f"its group {candidate.group} may lose {of_group} Nodes")
        return None

    def _move(self, moving: Mapping[str, Sequence[PodInfo]]) -> list[Removed] | Kept:
        self._seeker.fork()
        for name in moving:
            self._snapshot.close(self._snapshot.row(name))
        removed: list[Removed] = []
        for name, pods in moving.items():
            moved: list[PodInfo] = []
            to: list[str] = []
            for group in self._biggest_first(pods):
                shares = self._seeker.place(group.pod_class, len(group))
                if sum(count for _, count in shares) < len(group):
                    kept = self._no_place(name, group)
                    self._seeker.revert()
                    return kept
                moved += group.pods
                for row, count in shares:
                    to += [self._snapshot.nodes[row].name] * count
            removed.append(Removed(name, tuple(moved), tuple(to)))
        self._seeker.commit()
        for each in removed:
            for receiver in set(each.to):
                self._receiving.setdefault(receiver, each.node)
        return removed

    def _no_place(self, name: str, group: Group) -> Kept:
        why = self._explained.get(group.pod_class, "no Node takes it")
        if group.pod_class not in self._explained and len(self._explained) < _MOST_EXPLAINED:
            lacking = shortages(self._snapshot, group.pod_class)
            why = explain(self._snapshot, group.pod_class) + (f" ({lacking})" if lacking else "")
            self._explained[group.pod_class] = why
        return Kept(name, Staying.NO_PLACE, f"pod {group.pods[0]} would stay pending: {why}", group.pods[0])

    def _biggest_first(self, pods: Sequence[PodInfo]) -> list[Group]:
        return sorted(self._snapshot.classes.group(pods), key=self._size)

    def _size(self, group: Group) -> tuple[int, int]:
        size = self._sizes.get(group.pod_class)
        if size is None:
            asked = dict(group.pod_class.requests)
            size = self._sizes[group.pod_class] = (-asked.get(CPU, 0), -asked.get(MEMORY, 0))
        return size

    def _disturbance(self, candidate: Candidate) -> tuple[bool, bool, float, str]:
        occupied = any(not pod.kind.keeping.daemon_set for pod in self._pods_by_node.on(candidate.name))
        return not candidate.first, occupied, self._load.get(candidate.name, 0.0), candidate.name

    def _destination_order(self) -> Ints:
        """Nodes that stay anyway, fullest first; those to come; then candidates, the last to be asked first."""
        rank = {candidate.name: position for position, candidate in enumerate(self._in_order)}
        staying = sorted((name for name in self._load if name not in rank), key=lambda name: -self._load[name])
        going = sorted((name for name in self._load if name in rank), key=lambda name: -rank[name])
        rows = [*map(self._snapshot.row, staying), *self._question.upcoming, *map(self._snapshot.row, going)]
        return np.asarray(rows, np.int64)
