"""First fit, asked again and again while room only shrinks: what was full for a class of pods is not looked at again.

The answer is that of ``placement.place``. Where pods of a class only keep apart from others on a Node, or are spread
over a few zones, a place is found in small steps behind the last one; for all others ``place`` is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from controllers.scheduling.classes import PodClass
from controllers.scheduling.columns import ABSENT, Ints
from controllers.scheduling.fitting import PLENTY, has_label, is_per_node
from controllers.scheduling.matchers import Averse, MeantByAll, SpreadOver
from controllers.scheduling.placement import place
from controllers.scheduling.rules import Evenly
from controllers.scheduling.shapes import PODS, Amounts
from controllers.scheduling.snapshot import Matcher, Snapshot
from controllers.scheduling.zone_first_fit import Skew

_BLOCK = 64
"""Rows that are looked at together, twice as many the next time."""


@dataclass(slots=True)
class _Lane:
    """Positions in the order, and rows, of Nodes that admit the class; those before ``begin`` are full for it. Classes
    that ask for the same have one together.
    """

    positions: Ints
    rows: Ints
    begin: int = 0


@dataclass(frozen=True, slots=True)
class _Zones:
    """The zones of one spread constraint: rows that count, their zones, and how many pods one Node of each has (live).

    ``zones`` of all places, in their order.
    """

    zones: Ints
    rows: Ints
    codes: Ints
    counts: Ints
    copies: Ints
    skew: Skew

    def totals(self) -> dict[int, int]:
        found = np.bincount(self.codes, self.counts[self.rows] * self.copies, int(self.zones[-1]) + 1)
        return dict(zip(self.zones.tolist(), found[self.zones].astype(np.int64).tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class _Search:
    """How to look for places of one class, with live columns of the snapshot. ``most``: pods to one Node.

    ``asks``: what is left of each resource, and how much of it a pod takes. ``apart``: pods that must not be on the
    Node. ``zone_first_fit`` by zone where ``spread`` says so, else one.
    """

    pod_class: PodClass
    zone_first_fit: dict[int, _Lane]
    asks: tuple[tuple[Ints, int], ...]
    apart: tuple[Ints, ...] = ()
    most: int = PLENTY
    spread: _Zones | None = None


class Seeker:
    """On a snapshot whose Nodes only get fuller or closed, but for what ``revert`` takes back. No Node is added."""

    def __init__(self, snapshot: Snapshot, order: Ints) -> None:
        self._snapshot = snapshot
        self._order = order
        self._searches: dict[PodClass, _Search | None] = {}
        self._moved: list[tuple[_Lane, int]] = []
        self._matrix: object = None
        self._admitted: dict[object, tuple[Ints, Ints]] = {}
        self._zone_lanes: dict[object, _Lane] = {}
        self._of_nodes: dict[str, bool] = {}

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
        return self._fill(search, count) if search.spread is None else self._deal(search, search.spread, count)

    def _fill(self, search: _Search, count: int) -> list[tuple[int, int]]:
        shares: list[tuple[int, int]] = []
        lane = search.zone_first_fit[0]
        while count and self._advance(search, lane):
            row = int(lane.rows[lane.begin])
            taken = 1 if count == 1 else min(count, search.most, *(int(left[row]) // ask for left, ask in search.asks))
            self._snapshot.place(search.pod_class, row, taken)
            shares.append((row, taken))
            count -= taken
        return shares

    def _deal(self, search: _Search, spread: _Zones, count: int) -> list[tuple[int, int]]:
        """One by one: each may open or close a zone for the next."""
        shares: list[tuple[int, int]] = []
        totals, skew = spread.totals(), spread.skew
        while len(shares) < count:
            least = min(totals.values()) if skew.sets_least else 0
            open_ = [zone for zone in search.zone_first_fit if totals[zone] < least + skew.most]
            found = [zone for zone in open_ if self._advance(search, search.zone_first_fit[zone])]
            if not found:
                break
            zone = min(found, key=lambda zone: search.zone_first_fit[zone].positions[search.zone_first_fit[zone].begin])
            totals[zone] += 1
            row = int(search.zone_first_fit[zone].rows[search.zone_first_fit[zone].begin])
            self._snapshot.place(search.pod_class, row)
            shares.append((row, 1))
        return shares

    def _advance(self, search: _Search, lane: _Lane) -> bool:
        """Go to the first Node with room; False if there is none."""
        before, end = lane.begin, len(lane.rows)
        if before == end or self._has_headroom(search, lane.rows[before]):
            return before < end
        begin, block, closed = before + 1, _BLOCK, self._snapshot.closed
        while begin < end:
            rows = lane.rows[begin : begin + block]
            headroom = ~closed[rows]
            for left, amount in search.asks:
                headroom &= left[rows] >= amount
            for others in search.apart:
                headroom &= others[rows] == 0
            first = int(headroom.argmax())
            if headroom[first]:
                begin += first
                break
            begin, block = begin + len(rows), 2 * block
        lane.begin = begin
        self._moved.append((lane, before))
        return begin < end

    def _has_headroom(self, search: _Search, row: np.int64) -> bool:
        for left, amount in search.asks:
            if left[row] < amount:
                return False
        for others in search.apart:
            if others[row]:
                return False
        return not self._snapshot.closed[row]

    def _search(self, pod_class: PodClass) -> _Search | None:
        """None: its pods mean more to others, or to each other, than is looked at here."""
        demand, snapshot = pod_class.demand, self._snapshot
        aversions = snapshot.aversions(pod_class)
        if demand.ports or demand.affinity or demand.volumes or demand.blocked or len(demand.spread) > 1:
            return None
        if not all(self._is_of_nodes(term.topology_key) for term in (*aversions, *demand.anti_affinity)):
            return None
        matchers: tuple[Matcher, ...] = (
            *map(Averse, aversions),
            *(MeantByAll((term,)) for term in demand.anti_affinity),
        )
        asks = self._columns(((PODS, 1), *demand.requests))
        apart = tuple(snapshot.counts(matcher) for matcher in matchers)
        most = 1 if any(pod_class.is_meant_by(term) for term in demand.anti_affinity) else PLENTY
        if not demand.spread:
            lane = self._lane(pod_class) if apart else self._shared_lane(pod_class)
            return _Search(pod_class, {0: lane}, asks, apart, most)
        spread = self._zones(pod_class)
        if spread is None:
            return None
        codes = np.full(len(snapshot), ABSENT, np.int64)
        codes[spread.rows] = spread.codes
        positions, rows = self._admitting(pod_class)
        here = codes[rows]
        zone_first_fit = {
            zone: _Lane(positions[here == zone], rows[here == zone]) for zone in np.unique(here[here >= 0]).tolist()
        }
        return _Search(pod_class, zone_first_fit, asks, apart, most, spread)

    def _lane(self, pod_class: PodClass) -> _Lane:
        return _Lane(*self._admitting(pod_class))

    def _shared_lane(self, pod_class: PodClass) -> _Lane:
        """Cursor of all classes for which the same Nodes are full."""
        key = (pod_class.requests, _admission(pod_class))
        lane = self._zone_lanes.get(key)
        if lane is None:
            lane = self._zone_lanes[key] = self._lane(pod_class)
        return lane

    def _admitting(self, pod_class: PodClass) -> tuple[Ints, Ints]:
        """Positions in the order, and rows, of Nodes that let the class in as far as they themselves are concerned."""
        key = _admission(pod_class)
        known = self._admitted.get(key)
        if known is None:
            positions = np.flatnonzero(self._snapshot.admits(pod_class, self._order))
            known = self._admitted[key] = (positions, self._order[positions])
        return known

    def _columns(self, amounts: Amounts) -> tuple[tuple[Ints, int], ...]:
        """A resource that is new to the snapshot moves its columns: then those that are held are not live any more."""
        for name, _ in amounts:
            self._snapshot.free(name)
        columns = tuple((self._snapshot.free(name), amount) for name, amount in amounts)
        if columns[0][0].base is not self._matrix:
            self._matrix = columns[0][0].base
            self._searches.clear()
        return columns

    def _zones(self, pod_class: PodClass) -> _Zones | None:
        """None: places are Nodes, or who closes a Node changes which ones count."""
        spread, snapshot = pod_class.demand.spread[0], self._snapshot
        shared = Evenly(snapshot, pod_class, spread, (spread.topology_key,)).shared_places()
        if spread.honors_taints or shared is None or not shared[1]:
            return None
        rows = np.flatnonzero((shared[0] != ABSENT) & (snapshot.copies > 0))
        counts = snapshot.counts(SpreadOver(pod_class.namespace, spread.selector))
        zones = np.array(sorted(shared[1]), np.int64)
        return _Zones(zones, rows, shared[0][rows], counts, snapshot.copies[rows], shared[2])

    def _is_of_nodes(self, topology_key: str) -> bool:
        """Whether each Node is a place of its own by this label."""
        known = self._of_nodes.get(topology_key)
        if known is None:
            everywhere = bool(has_label(self._snapshot, topology_key).all())
            known = self._of_nodes[topology_key] = everywhere and is_per_node(self._snapshot, topology_key)
        return known


def _admission(pod_class: PodClass) -> object:
    """What decides which Nodes let the class in as far as they themselves are concerned."""
    demand = pod_class.demand
    return demand.tolerations, demand.node_selector, demand.node_terms
