"""What pods of one class change for each other while they are placed one after the other.

Each rule says which rows are open for one more pod and how many may come in a row before it must be asked again. That
keeps the steps few: as many as there are changes of the picture, not as many as there are pods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from controllers.scheduling.classes import PodClass
from controllers.scheduling.columns import ABSENT, ALONE, Bools, Ints
from controllers.scheduling.fitting import PLENTY, has_label, in_use, inhabited, is_per_node
from controllers.scheduling.matchers import MeantByAll, SpreadOver
from controllers.scheduling.shapes import HOSTNAME, PodTerm, Spread
from controllers.scheduling.snapshot import Snapshot
from controllers.scheduling.zone_first_fit import Skew


@dataclass(frozen=True, slots=True)
class Batch:
    """How many pods may come to one Node, and how many to the Nodes of the row in all, until the rule changes."""

    per_node: int = PLENTY
    in_all: int = PLENTY


class Rule(Protocol):
    def open(self) -> Bools:
        """Rows that one more pod may come to."""

    def batch(self, row: int, *, waiting: bool) -> Batch:
        """For an open row; ``waiting``: rows that stand before it might open meanwhile."""

    per_node_only: bool
    """Every place that the rule knows is one Node, so that ``most_per_node`` and ``changes_at`` can be asked."""

    def most_per_node(self) -> Ints:
        """Per open row how many pods each Node takes as things stand."""

    def most_per_new_node(self) -> int:
        """How many pods a Node takes that is added empty; 0: that Node itself changes the picture."""

    def changes_at(self, order: Ints, headroom: Ints) -> int:
        """If each row gets as many pods as ``headroom`` says, one after the other: the position in ``order`` from which
        on the rule must be asked again.
        """

    def split(self, row: int) -> None:
        """``row`` was cut in two; its second half is the last row of the snapshot."""


def rules_of(snapshot: Snapshot, pod_class: PodClass) -> list[Rule]:
    demand = pod_class.demand
    rules: list[Rule] = [Apart(snapshot, term) for term in demand.anti_affinity if pod_class.is_meant_by(term)]
    if demand.affinity:
        rules.append(Together(snapshot, pod_class))
    keys = tuple(spread.topology_key for spread in demand.spread)
    rules.extend(Evenly(snapshot, pod_class, spread, keys) for spread in demand.spread)
    if any(volume.exclusive for volume in demand.volumes):
        rules.append(OnlyOne(snapshot, pod_class))
    return rules


class _Stateless:
    per_node_only = False

    def most_per_node(self) -> Ints:
        raise NotImplementedError("only for rules whose places are Nodes")

    def most_per_new_node(self) -> int:
        return PLENTY

    def changes_at(self, order: Ints, headroom: Ints) -> int:
        return len(order)

    def split(self, row: int) -> None:
        """Nothing is kept per row."""


class Apart(_Stateless):
    """Anti-affinity that means the class itself: one pod per place."""

    def __init__(self, snapshot: Snapshot, term: PodTerm) -> None:
        self._snapshot = snapshot
        self._term = term
        self._matcher = MeantByAll((term,))
        self.per_node_only = is_per_node(snapshot, term.topology_key)
        """Every place is one Node, so that pods on one Node change nothing for others."""

    def open(self) -> Bools:
        return ~inhabited(self._snapshot, self._term.topology_key, self._snapshot.counts(self._matcher))

    def batch(self, row: int, *, waiting: bool) -> Batch:
        code = self._snapshot.codes(self._term.topology_key)[row]
        if code == ABSENT:
            return Batch()
        return Batch(1, PLENTY if code == ALONE else 1)

    def most_per_new_node(self) -> int:
        return 1 if self._term.topology_key == HOSTNAME else PLENTY

    def most_per_node(self) -> Ints:
        return np.where(has_label(self._snapshot, self._term.topology_key), 1, PLENTY)


class Together(_Stateless):
    """Affinity: a pod that all terms mean must be in each place, unless there is none and this is the first."""

    def __init__(self, snapshot: Snapshot, pod_class: PodClass) -> None:
        self._snapshot = snapshot
        self._terms = pod_class.demand.affinity
        self._matcher = MeantByAll(self._terms)
        self._may_be_first = self._matcher.matches(pod_class)

    def open(self) -> Bools:
        counts = self._snapshot.counts(self._matcher)
        labelled = np.ones(len(self._snapshot), np.bool_)
        for term in self._terms:
            labelled &= has_label(self._snapshot, term.topology_key)
        if self._is_first(counts):
            return labelled
        for term in self._terms:
            labelled &= inhabited(self._snapshot, term.topology_key, counts)
        return labelled

    def batch(self, row: int, *, waiting: bool) -> Batch:
        return Batch(1, 1) if self._is_first(self._snapshot.counts(self._matcher)) else Batch()

    def _is_first(self, counts: Ints) -> bool:
        if not self._may_be_first:
            return False
        return not any((has_label(self._snapshot, term.topology_key) & (counts > 0)).any() for term in self._terms)


class Evenly:
    """Topology spread: no place gets more than ``max_skew`` ahead of the one that has least."""

    def __init__(self, snapshot: Snapshot, pod_class: PodClass, spread: Spread, keys: tuple[str, ...]) -> None:
        self._snapshot = snapshot
        self._spread = spread
        self._matcher = SpreadOver(pod_class.namespace, spread.selector)
        self._counted = self._matcher.matches(pod_class)
        self._adds = 1 if spread.selector.matches(pod_class.labels) else 0
        eligible = np.logical_and.reduce([has_label(snapshot, key) for key in keys])
        demand = pod_class.demand
        everywhere = np.arange(len(snapshot))
        if spread.honors_affinity:
            eligible &= snapshot.selected(demand, everywhere)
        if spread.honors_taints:
            eligible &= ~snapshot.closed & snapshot.untainted(demand, everywhere)
        self._eligible = eligible
        self.per_node_only = is_per_node(snapshot, spread.topology_key)

    def most_per_node(self) -> Ints:
        if not self._counted:
            return np.full(len(self._snapshot), PLENTY)
        codes, here, alone, shared = self._projected()
        least = self._least(here, alone, shared)
        return self._spread.max_skew + least - self._totals(codes, here, shared)

    def shared_places(self) -> tuple[Ints, dict[int, int], Skew] | None:
        """Places of the rows, their totals and the skew allowed; None if not all places are shared, or if the pods
        are not counted themselves.
        """
        codes, _, alone, shared = self._projected()
        if not self._counted or self.per_node_only or (codes == ALONE).any():
            return None
        rows: Ints = np.where(self._eligible, codes, ABSENT)
        return rows, self.totals(), Skew(self._spread.max_skew, self._sets_least(alone, shared))

    def totals(self) -> dict[int, int]:
        """Code of a place that several Nodes may share → its pods that count; 0 for an eligible one without any."""
        _, _, _, shared = self._projected()
        places = np.flatnonzero(shared >= 0).tolist()
        return dict(zip(places, shared[places].tolist(), strict=True))

    def most_per_new_node(self) -> int:
        if self._spread.topology_key != HOSTNAME or not self._counted:
            return PLENTY
        _, here, alone, shared = self._projected()
        has_empty_place = self._sets_least(alone, shared) and self._least(here, alone, shared) == 0
        return self._spread.max_skew if has_empty_place and (alone.any() or (shared >= 0).any()) else 0

    def changes_at(self, order: Ints, headroom: Ints) -> int:
        """The least rises with the first pod on the last Node that has least, if all of them get some."""
        if not self._counted:
            return len(order)
        codes, here, alone, shared = self._projected()
        totals = self._totals(codes, here, shared)
        known = self._eligible & (codes != ABSENT) & (self._snapshot.copies > 0)
        lowest = known & (totals == self._least(here, alone, shared))
        served = np.zeros(len(known), np.bool_)
        served[order[headroom > 0]] = True
        if not lowest.any() or (lowest & ~served).any():
            return len(order)
        return int(np.flatnonzero(lowest[order])[-1])

    def split(self, row: int) -> None:
        self._eligible = np.append(self._eligible, self._eligible[row])

    def open(self) -> Bools:
        codes, here, alone, shared = self._projected()
        least = self._least(here, alone, shared)
        totals = self._totals(codes, here, shared)
        opened: Bools = (codes != ABSENT) & (totals + self._adds - least <= self._spread.max_skew)
        return opened

    def batch(self, row: int, *, waiting: bool) -> Batch:
        if not self._counted:
            return Batch()
        codes, here, alone, shared = self._projected()
        least = self._least(here, alone, shared)
        is_alone = codes[row] == ALONE
        mine = int(here[row]) if is_alone else int(shared[codes[row]])
        ahead = least + self._spread.max_skew - mine
        others = self._others(row, here, alone, shared)
        if mine > least or others <= least or not self._sets_least(alone, shared):
            return Batch(ahead) if is_alone else Batch(PLENTY, ahead)
        copies = int(self._snapshot.copies[row])
        if is_alone and copies > 1:
            return Batch(ahead, (copies - 1) * ahead)
        if waiting:
            return Batch(1, 1)
        alone_at_last = PLENTY if others == PLENTY else others + self._spread.max_skew - mine
        return Batch(PLENTY, alone_at_last)

    def _projected(self) -> tuple[Ints, Ints, Bools, Ints]:
        """Codes, counts of eligible rows, which of them are places of their own, and totals of shared places."""
        codes = self._snapshot.codes(self._spread.topology_key)
        eligible = self._eligible & (self._snapshot.copies > 0)
        here = np.where(eligible, self._snapshot.counts(self._matcher), 0)
        known = eligible & (codes >= 0)
        shared = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
        shared[codes[known]] = 0
        shared += np.bincount(codes[known], (here * self._snapshot.copies)[known], len(shared)).astype(np.int64)
        return codes, here, eligible & (codes == ALONE), shared

    def _totals(self, codes: Ints, here: Ints, shared: Ints) -> Ints:
        """Per row the pods of its place."""
        return np.where(codes >= 0, np.maximum(shared, 0)[np.maximum(codes, 0)], here) if len(shared) else here

    def _sets_least(self, alone: Bools, shared: Ints) -> bool:
        places = int((shared >= 0).sum()) + int(self._snapshot.copies[alone].sum())
        return places >= self._spread.min_domains

    def _least(self, here: Ints, alone: Bools, shared: Ints) -> int:
        places = [int(each.min()) for each in (shared[shared >= 0], here[alone]) if len(each)]
        return min(places) if places and self._sets_least(alone, shared) else 0

    def _others(self, row: int, here: Ints, alone: Bools, shared: Ints) -> int:
        """The least of all places but those of ``row``."""
        codes = self._snapshot.codes(self._spread.topology_key)
        counted = shared >= 0
        rest = alone.copy()
        if codes[row] >= 0:
            counted = counted.copy()
            counted[codes[row]] = False
        rest[row] = False
        places = [int(each.min()) for each in (shared[counted], here[rest]) if len(each)]
        return min(places, default=PLENTY)


class OnlyOne(_Stateless):
    """A volume that one pod only may use."""

    def __init__(self, snapshot: Snapshot, pod_class: PodClass) -> None:
        self._snapshot = snapshot
        self._pod_class = pod_class

    def open(self) -> Bools:
        return np.full(len(self._snapshot), not in_use(self._snapshot, self._pod_class), np.bool_)

    def batch(self, row: int, *, waiting: bool) -> Batch:
        return Batch(1, 1)
