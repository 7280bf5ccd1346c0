"""Spread over few shared places (zones, racks): the pods are dealt to places first, then each place's Nodes are filled.

Within one place pods fill the Nodes in their order whatever comes to other places meanwhile. So first fit under such a
constraint is decided place by place, in numbers, and the Nodes need not be looked at for every pod.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Lane:
    """The Nodes of one place that have room: where each stands in the order, and for how many pods it has room."""

    place: int
    positions: list[int]
    headroom: list[int]
    front: int = 0
    dealt: int = 0

    @property
    def is_full(self) -> bool:
        return self.front == len(self.headroom)

    def take(self, count: int) -> None:
        self.dealt += count
        self.headroom[self.front] -= count
        if not self.headroom[self.front]:
            self.front += 1


@dataclass(frozen=True, slots=True)
class Skew:
    """``sets_least``: there are enough places; where there are not, the least counts as 0."""

    most: int
    sets_least: bool


def deal(zone_first_fit: list[Lane], totals: dict[int, int], skew: Skew, count: int) -> None:
    """Give up to ``count`` pods to the lanes, first fit. ``totals``: pods of all places that count, lanes or not."""
    while count:
        least = min(totals.values()) if skew.sets_least else 0
        lane = _first_open(zone_first_fit, totals, least + skew.most)
        if lane is None:
            return
        mine = totals[lane.place]
        ahead = least + skew.most - mine if mine > least or not skew.sets_least else 1
        taken = min(ahead, lane.headroom[lane.front], count)
        lane.take(taken)
        totals[lane.place] += taken
        count -= taken


def _first_open(zone_first_fit: list[Lane], totals: dict[int, int], most: int) -> Lane | None:
    best = None
    for lane in zone_first_fit:
        if lane.is_full or totals[lane.place] >= most:
            continue
        if best is None or lane.positions[lane.front] < best.positions[best.front]:
            best = lane
    return best
