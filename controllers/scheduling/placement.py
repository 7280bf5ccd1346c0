"""Put many pods of one class on Nodes, first fit: each pod goes to the first Node in order that takes it.

The result is that of asking pod by pod and Node by Node, found by arithmetic: where pods of the class don't change
anything for each other but the room that is left, one cumulative sum over the rows does it; else rules say how many may
come at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from controllers.scheduling.classes import PodClass
from controllers.scheduling.columns import Ints
from controllers.scheduling.fitting import headroom_of
from controllers.scheduling.rules import Apart, Evenly, Rule, rules_of
from controllers.scheduling.snapshot import Snapshot
from controllers.scheduling.zone_first_fit import Lane, deal


@dataclass(frozen=True, slots=True)
class Share:
    """``per_node`` pods went to each of the Nodes that were the row at the time."""

    row: int
    per_node: int
    copies: int


@dataclass(slots=True)
class Placed:
    """What became of ``place``. ``order`` is the order of rows that it was given, with the rows that were cut in it."""

    order: Ints
    count: int = 0
    shares: list[Share] = field(default_factory=list)


def place(snapshot: Snapshot, pod_class: PodClass, count: int, order: Sequence[int] | Ints | None = None) -> Placed:
    """Place up to ``count`` pods on the rows of ``order`` (None: all Nodes in theirs); what does not fit is left."""
    rows: Ints = snapshot.rows if order is None else np.asarray(order, np.int64)
    placing = _Placing(snapshot, pod_class, Placed(rows))
    if count and len(rows):
        headroom = headroom_of(snapshot, pod_class, rows)
        rules = rules_of(snapshot, pod_class) if headroom.any() else []
        if not rules:
            placing.pour(count, headroom)
        else:
            _Stepwise(placing, headroom, rules).place(count)
    return placing.placed


def pour(snapshot: Snapshot, pod_class: PodClass, count: int, order: Ints, most: int) -> Placed:
    """As ``place``, with at most ``most`` pods on a Node, and however evenly the class is spread meanwhile: for pods
    that are planned to be, in the end. Pods that must not share a place with others still don't.
    """
    placing = _Placing(snapshot, pod_class, Placed(order))
    if count:
        placing.pour(count, np.minimum(headroom_of(snapshot, pod_class, order), min(most, count)))
    return placing.placed


@dataclass(slots=True)
class _Placing:
    snapshot: Snapshot
    pod_class: PodClass
    placed: Placed

    def pour(self, count: int, headroom: Ints) -> list[tuple[int, int]]:
        """Fill the rows one after the other, up to ``headroom`` per Node; returns the cuts that ``share_out`` made."""
        order = self.placed.order
        per_node = np.minimum(headroom, count)
        filled = np.cumsum(per_node * self.snapshot.copies[order])
        whole = int(np.searchsorted(filled, count, side="right"))
        done = int(filled[whole - 1]) if whole else 0
        for position in np.flatnonzero(per_node[:whole]).tolist():
            self._give(int(order[position]), int(per_node[position]))
        self.placed.count += done
        if whole < len(order) and done < count:
            return self.share_out(whole, int(per_node[whole]), count - done)
        return []

    def share_out(self, position: int, per_node: int, count: int) -> list[tuple[int, int]]:
        """Give ``count`` pods to the row at ``position``, ``per_node`` each as far as they go. Where the last Nodes of
        the row get less, they are cut off; returns each such cut as the row and the new one after it.
        """
        cuts = []
        row = int(self.placed.order[position])
        full, rest = divmod(count, per_node)
        for nodes, amount in ((full, per_node), (1 if rest else 0, rest)):
            if not nodes:
                continue
            after = row
            if nodes < int(self.snapshot.copies[row]):
                after = self.snapshot.split(row, nodes)
                cuts.append((row, after))
                self.placed.order = np.insert(self.placed.order, position + 1, after)
            self._give(row, amount)
            self.placed.count += amount * nodes
            position, row = position + 1, after
        return cuts

    def _give(self, row: int, per_node: int) -> None:
        self.snapshot.place(self.pod_class, row, per_node)
        self.placed.shares.append(Share(row, per_node, int(self.snapshot.copies[row])))


class _Stepwise:
    """Placement under rules by which pods of the class change something for each other."""

    def __init__(self, placing: _Placing, headroom: Ints, rules: list[Rule]) -> None:
        self._placing = placing
        self._snapshot = placing.snapshot
        self._placed = placing.placed
        self._headroom = np.zeros(len(placing.snapshot), np.int64)
        self._headroom[placing.placed.order] = headroom
        self._rules = rules
        self._per_node_only = all(rule.per_node_only for rule in rules)

    def place(self, count: int) -> Placed:
        if self._deal(count):
            return self._placed
        while self._placed.count < count:
            left = count - self._placed.count
            if not ((self._per_node_only and self._wave(left)) or self._step(left)):
                break
        return self._placed

    def _deal(self, count: int) -> bool:
        """All at once, where one rule spreads the pods over shared places and others are about single Nodes."""
        over = [rule for rule in self._rules if isinstance(rule, Evenly) and not rule.per_node_only]
        single = [rule for rule in self._rules if isinstance(rule, Apart) and rule.per_node_only]
        spread = over[0].shared_places() if len(over) == 1 and len(self._rules) == len(single) + 1 else None
        if spread is None:
            return False
        for rule in single:
            np.minimum(self._headroom, np.where(rule.open(), rule.most_per_node(), 0), out=self._headroom)
        places, totals, skew = spread
        zone_first_fit = self._zone_lanes(places)
        deal(zone_first_fit, totals, skew, count)
        for lane in zone_first_fit:
            if lane.dealt:
                headroom = np.where(places[self._placed.order] == lane.place, self._headroom[self._placed.order], 0)
                for row, _ in self._placing.pour(lane.dealt, headroom):
                    self._headroom = np.append(self._headroom, self._headroom[row])
                    places = np.append(places, places[row])
        return True

    def _zone_lanes(self, places: Ints) -> list[Lane]:
        order = self._placed.order
        headroom = (self._headroom * self._snapshot.copies)[order]
        here = places[order]
        zone_first_fit = []
        for place_ in np.unique(here[(headroom > 0) & (here >= 0)]).tolist():
            positions = np.flatnonzero((here == place_) & (headroom > 0))
            zone_first_fit.append(Lane(place_, positions.tolist(), headroom[positions].tolist()))
        return zone_first_fit

    def _wave(self, left: int) -> bool:
        """Many rows at once, where every place is one Node: as long as no rule's picture changes for other Nodes."""
        order = self._placed.order
        headroom = self._headroom[order]
        for rule in self._rules:
            np.minimum(headroom, np.where(rule.open(), rule.most_per_node(), 0)[order], out=headroom)
        for rule in self._rules:
            headroom[rule.changes_at(order, headroom) :] = 0
        if not headroom.any():
            return False
        self._after(lambda: self._placing.pour(left, headroom))
        return True

    def _step(self, left: int) -> bool:
        """One row."""
        order = self._placed.order
        has_headroom = (self._headroom > 0)[order]
        opened = np.logical_and.reduce([rule.open() for rule in self._rules])[order] & has_headroom
        position = int(np.argmax(opened))
        if not opened[position]:
            return False
        row = int(order[position])
        waiting = bool(has_headroom[:position].any())
        batches = [rule.batch(row, waiting=waiting) for rule in self._rules]
        copies = int(self._snapshot.copies[row])
        per_node = min(int(self._headroom[row]), *(batch.per_node for batch in batches))
        in_all = min(left, per_node * copies, *(batch.in_all for batch in batches))
        self._after(lambda: self._placing.share_out(position, min(per_node, in_all), in_all))
        return True

    def _after(self, act: Callable[[], list[tuple[int, int]]]) -> None:
        """Keep room and rules in step with what was placed."""
        before = len(self._placed.shares)
        for row, _ in act():
            for rule in self._rules:
                rule.split(row)
            self._headroom = np.append(self._headroom, self._headroom[row])
        for share in self._placed.shares[before:]:
            self._headroom[share.row] -= share.per_node
