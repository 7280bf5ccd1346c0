"""First fit, asked again and again while room only shrinks: what was full for a class of pods is not looked at again.

The answer is that of ``placement.place``. Where pods of a class only keep apart from others on a Node, or are spread
over a few zones, a place is found in small steps behind the last one; for all others ``place`` is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from controllers.scheduling.classes import PodClass
from controllers.scheduling.columns import Ints
from controllers.scheduling.fitting import has_label, is_per_node
from controllers.scheduling.matchers import Averse, MeantByAll
from controllers.scheduling.placement import place
from controllers.scheduling.rules import Evenly
from controllers.scheduling.shapes import PODS
from controllers.scheduling.snapshot import Matcher, Snapshot

_BLOCK = 128
"""Rows that are looked at together."""


@dataclass(slots=True)
class _Lane:
    """``positions`` in the order of Nodes that admit the class; those before ``begin`` are full for it."""

    positions: Ints
    begin: int = 0


@dataclass(frozen=True, slots=True)
class _Search:
    """How to look for places of one class. ``apart``: no pod of these on the Node. ``most``: pods to one Node.

    ``lanes`` by zone where ``evenly`` spreads over zones, else one.
    """

    pod_class: PodClass
    lanes: dict[int, _Lane]
    apart: tuple[Matcher, ...] = ()
    most: int = 1 << 40
    evenly: Evenly | None = field(default=None, compare=False)


class Seeker:
    """On a snapshot whose Nodes only get fuller or closed, but for what ``revert`` takes back."""

    def __init__(self, snapshot: Snapshot, order: Ints) -> None:
        self._snapshot = snapshot
        self._order = order
        self._searches: dict[PodClass, _Search | None] = {}
        self._moved: list[tuple[_Lane, int]] = []

    def fork(self) -> None:
        self._snapshot.fork()
        self._moved.clear()

    def revert(self) -> None:
        self._snapshot.revert()
        for lane, begin in reversed(self._moved):
            lane.begin = begin
        self._moved.clear()

    def commit(self) -> None:
        self._snapshot.commit()
        self._moved.clear()

    def place(self, pod_class: PodClass, count: int) -> list[tuple[int, int]]:
        """Rows with the pods that came to them; fewer than ``count`` in all if there is no more room."""
        if pod_class not in self._searches:
            self._searches[pod_class] = self._search(pod_class)
        search = self._searches[pod_class]
        if search is None:
            placed = place(self._snapshot, pod_class, count, self._order)
            return [(share.row, share.per_node) for share in placed.shares]
        return self._spread(search, search.evenly, count) if search.evenly else self._fill(search, count)

    def _fill(self, search: _Search, count: int) -> list[tuple[int, int]]:
        shares: list[tuple[int, int]] = []
        while count:
            found = self._first(search, search.lanes[0])
            if found is None:
                break
            row, taken = int(self._order[found[0]]), min(count, found[1], search.most)
            self._snapshot.place(search.pod_class, row, taken)
            shares.append((row, taken))
            count -= taken
        return shares

    def _spread(self, search: _Search, evenly: Evenly, count: int) -> list[tuple[int, int]]:
        """One by one: each may open or close a zone for the next."""
        shares: list[tuple[int, int]] = []
        spread = evenly.shared_places()
        assert spread is not None
        _, totals, skew = spread
        while len(shares) < count:
            least = min(totals.values()) if skew.sets_least else 0
            open_ = (zone for zone in search.lanes if totals[zone] < least + skew.most)
            found = [(each[0], zone) for zone in open_ if (each := self._first(search, search.lanes[zone]))]
            if not found:
                break
            position, zone = min(found)
            totals[zone] += 1
            row = int(self._order[position])
            self._snapshot.place(search.pod_class, row)
            shares.append((row, 1))
        return shares

    def _first(self, search: _Search, lane: _Lane) -> tuple[int, int] | None:
        """The first position with room, and for how many pods."""
        before = lane.begin
        found = None
        while found is None and lane.begin < len(lane.positions):
            positions = lane.positions[lane.begin : lane.begin + _BLOCK]
            room = self._room(search, self._order[positions])
            at = int(np.argmax(room > 0))
            if room[at] > 0:
                found = int(positions[at]), int(room[at])
            lane.begin += at if found else len(positions)
        if lane.begin != before:
            self._moved.append((lane, before))
        return found

    def _room(self, search: _Search, rows: Ints) -> Ints:
        snapshot = self._snapshot
        room = snapshot.free(PODS)[rows]
        for name, amount in search.pod_class.requests:
            np.minimum(room, snapshot.free(name)[rows] // amount, out=room)
        room[snapshot.closed[rows]] = 0
        for matcher in search.apart:
            room[snapshot.counts(matcher)[rows] > 0] = 0
        return room

    def _search(self, pod_class: PodClass) -> _Search | None:
        """None: its pods mean more to others, or to each other, than is looked at here."""
        demand, snapshot = pod_class.demand, self._snapshot
        aversions = snapshot.aversions(pod_class)
        if demand.ports or demand.affinity or demand.volumes or demand.blocked or len(demand.spread) > 1:
            return None
        if not all(self._is_of_nodes(term.topology_key) for term in (*aversions, *demand.anti_affinity)):
            return None
        apart = (*map(Averse, aversions), *(MeantByAll((term,)) for term in demand.anti_affinity))
        most = 1 if any(pod_class.is_meant_by(term) for term in demand.anti_affinity) else 1 << 40
        positions = np.flatnonzero(snapshot.admits(pod_class, self._order))
        if not demand.spread:
            return _Search(pod_class, {0: _Lane(positions)}, apart, most)
        spread = demand.spread[0]
        evenly = Evenly(snapshot, pod_class, spread, (spread.topology_key,))
        shared = None if spread.honors_taints else evenly.shared_places()
        if shared is None:  # who closes a Node changes what is counted, or places are Nodes
            return None
        zones = shared[0][self._order[positions]]
        lanes = {int(zone): _Lane(positions[zones == zone]) for zone in np.unique(zones[zones >= 0])}
        return _Search(pod_class, lanes, apart, most, evenly)

    def _is_of_nodes(self, topology_key: str) -> bool:
        """Whether each Node is a place of its own by this label."""
        everywhere = bool(has_label(self._snapshot, topology_key).all())
        return everywhere and is_per_node(self._snapshot, topology_key)
