"""First fit, asked again and again while room only shrinks: what was full for a class of pods is not looked at again.

The answer is that of ``placement.place``. Where pods of a class don't concern each other, a place is found in a few
small steps behind the last one; for all others ``place`` is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from controllers.scheduling.classes import PodClass
from controllers.scheduling.columns import Ints
from controllers.scheduling.placement import place
from controllers.scheduling.shapes import PODS, Demand
from controllers.scheduling.snapshot import Snapshot

_BLOCK = 128
"""Rows that are looked at together."""


@dataclass(slots=True)
class _Search:
    """``rows`` that admit the class, in order; those before ``begin`` are full for it."""

    rows: Ints
    begin: int = 0


class Seeker:
    """On a snapshot whose rows only get fuller or closed, but for what ``revert`` takes back."""

    def __init__(self, snapshot: Snapshot, order: Ints) -> None:
        self._snapshot = snapshot
        self._order = order
        self._searches: dict[PodClass, _Search | None] = {}
        self._moved: list[tuple[_Search, int]] = []

    def fork(self) -> None:
        self._snapshot.fork()
        self._moved.clear()

    def revert(self) -> None:
        self._snapshot.revert()
        for search, begin in reversed(self._moved):
            search.begin = begin
        self._moved.clear()

    def commit(self) -> None:
        self._snapshot.commit()
        self._moved.clear()

    def place(self, pod_class: PodClass, count: int) -> list[tuple[int, int]]:
        """Rows with the pods that came to them; fewer than ``count`` in all if there is no more room."""
        if pod_class not in self._searches:
            self._searches[pod_class] = self._search(pod_class)
        search = self._searches[pod_class]
        if search is not None:
            return self._fill(search, pod_class, count)
        placed = place(self._snapshot, pod_class, count, self._order)
        return [(share.row, share.per_node) for share in placed.shares]

    def _search(self, pod_class: PodClass) -> _Search | None:
        """None: its pods mean something to others or to each other."""
        if not _is_plain(pod_class.demand) or self._snapshot.aversions(pod_class):
            return None
        return _Search(self._order[self._snapshot.admits(pod_class, self._order)])

    def _fill(self, search: _Search, pod_class: PodClass, count: int) -> list[tuple[int, int]]:
        shares: list[tuple[int, int]] = []
        before = search.begin
        while count and search.begin < len(search.rows):
            rows = search.rows[search.begin : search.begin + _BLOCK]
            room = self._room(pod_class.demand, rows)
            position = int(np.argmax(room > 0))
            if not room[position]:
                search.begin += len(rows)
                continue
            search.begin += position
            row, taken = int(rows[position]), min(count, int(room[position]))
            self._snapshot.place(pod_class, row, taken)
            shares.append((row, taken))
            count -= taken
        if search.begin != before:
            self._moved.append((search, before))
        return shares

    def _room(self, demand: Demand, rows: Ints) -> Ints:
        snapshot = self._snapshot
        room = snapshot.free(PODS)[rows]
        for name, amount in demand.requests:
            np.minimum(room, snapshot.free(name)[rows] // amount, out=room)
        room[snapshot.closed[rows]] = 0
        return room


def _is_plain(demand: Demand) -> bool:
    """Whether it asks for nothing but room on Nodes that admit it."""
    asks = (demand.ports, demand.affinity, demand.anti_affinity, demand.spread, demand.volumes, demand.blocked)
    return not any(asks)
