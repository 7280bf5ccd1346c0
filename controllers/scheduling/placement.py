"""Put many pods of one class on Nodes, first fit: each pod goes to the first Node in order that takes it.

The result is that of asking pod by pod and Node by Node, found by arithmetic: where pods of the class don't change
anything for each other but the room that is left, one cumulative sum over the rows does it; else rules say how many may
come at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from controllers.scheduling.classes import PodClass
from controllers.scheduling.columns import Ints
from controllers.scheduling.fitting import room_of
from controllers.scheduling.rules import Apart, Rule, rules_of
from controllers.scheduling.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Share:
    """``per_node`` pods went to each of the Nodes that were the row at the time."""

    row: int
    per_node: int
    copies: int


@dataclass(slots=True)
class Placed:
    """What became of ``place``. ``order`` is the order of rows that it was given, with the rows that were cut in it."""

    order: list[int]
    count: int = 0
    shares: list[Share] = field(default_factory=list)


def place(snapshot: Snapshot, pod_class: PodClass, count: int, order: Sequence[int] | Ints | None = None) -> Placed:
    """Place up to ``count`` pods on the rows of ``order`` (None: all Nodes in theirs); what does not fit is left."""
    ordered = snapshot.rows if order is None else np.asarray(order, np.int64)
    rows = ordered.tolist()
    if not count or not rows:
        return Placed(rows)
    rules = rules_of(snapshot, pod_class)
    room = room_of(snapshot, pod_class, ordered)
    apart = [rule for rule in rules if isinstance(rule, Apart) and rule.per_node_only]
    if len(apart) == len(rules):
        for rule in apart:
            room = np.where(rule.open()[ordered], np.minimum(room, rule.most_per_node()[ordered]), 0)
        return _pour(snapshot, pod_class, count, rows, room)
    return _Stepwise(snapshot, pod_class, room, rules, Placed(rows)).place(count)


def _pour(snapshot: Snapshot, pod_class: PodClass, count: int, rows: list[int], room: Ints) -> Placed:
    """Fill the rows one after the other."""
    order = np.asarray(rows, np.int64)
    per_node = np.minimum(room, count)
    filled = np.cumsum(per_node * snapshot.copies[order])
    whole = int(np.searchsorted(filled, count, side="right"))
    done = int(filled[whole - 1]) if whole else 0
    placed = Placed(rows, done)
    for position in np.flatnonzero(per_node[:whole]):
        _give(snapshot, pod_class, rows[position], int(per_node[position]), placed)
    if whole < len(rows) and done < count:
        _share_out(snapshot, pod_class, whole, int(per_node[whole]), count - done, placed)
    return placed


def _share_out(
    snapshot: Snapshot, pod_class: PodClass, position: int, per_node: int, count: int, placed: Placed
) -> list[int]:
    """Give ``count`` pods to the row at ``position``, ``per_node`` each as far as they go; returns the rows that were
    cut off for it, each from the one that is before it in the order.
    """
    cut = []
    row = placed.order[position]
    full, rest = divmod(count, per_node)
    for nodes, amount in ((full, per_node), (1 if rest else 0, rest)):
        if not nodes:
            continue
        if nodes < int(snapshot.copies[row]):
            new = snapshot.split(row, nodes)
            cut.append(new)
            placed.order.insert(position + 1, new)
        _give(snapshot, pod_class, row, amount, placed)
        placed.count += amount * nodes
        position += 1
        row = placed.order[position] if position < len(placed.order) else row
    return cut


def _give(snapshot: Snapshot, pod_class: PodClass, row: int, per_node: int, placed: Placed) -> None:
    snapshot.place(pod_class, row, per_node)
    placed.shares.append(Share(row, per_node, int(snapshot.copies[row])))


class _Stepwise:
    """Placement under rules that tie Nodes together."""

    def __init__(self, snapshot: Snapshot, pod_class: PodClass, room: Ints, rules: list[Rule], placed: Placed) -> None:
        self._snapshot = snapshot
        self._pod_class = pod_class
        self._room = np.zeros(len(snapshot), np.int64)
        self._room[placed.order] = room
        self._rules = rules
        self._placed = placed

    def place(self, count: int) -> Placed:
        while self._placed.count < count and self._step(count - self._placed.count):
            pass
        return self._placed

    def _step(self, left: int) -> bool:
        order = np.asarray(self._placed.order, np.int64)
        has_room = (self._room > 0)[order]
        opened = np.logical_and.reduce([rule.open() for rule in self._rules])[order] & has_room
        position = int(np.argmax(opened))
        if not opened[position]:
            return False
        row = int(order[position])
        waiting = bool(has_room[:position].any())
        batches = [rule.batch(row, waiting=waiting) for rule in self._rules]
        copies = int(self._snapshot.copies[row])
        per_node = min(int(self._room[row]), *(batch.per_node for batch in batches))
        in_all = min(left, per_node * copies, *(batch.in_all for batch in batches))
        self._give(position, min(per_node, in_all), in_all)
        return True

    def _give(self, position: int, per_node: int, count: int) -> None:
        row = self._placed.order[position]
        before = len(self._placed.shares)
        previous = row
        for new in _share_out(self._snapshot, self._pod_class, position, per_node, count, self._placed):
            for rule in self._rules:
                rule.split(previous)
            self._room = np.append(self._room, self._room[previous])
            previous = new
        for share in self._placed.shares[before:]:
            self._room[share.row] -= share.per_node
