"""Room for the pods of ProvisioningRequests in a picture of the cluster: who holds what, before anybody is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from controllers.autoscaler.requests import Pods, Request
from controllers.autoscaler.templates import PREFIX
from controllers.kernel.refs import Ref
from controllers.scheduling.classes import PodClass
from controllers.scheduling.columns import Ints
from controllers.scheduling.placement import place
from controllers.scheduling.shapes import CPU, MEMORY, PodInfo
from controllers.scheduling.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Reservation:
    """``nodes`` that are there and take pods; ``upcoming``: group → Nodes to come that do. ``short``: without room."""

    nodes: tuple[str, ...] = ()
    upcoming: Mapping[str, int] = field(default_factory=dict)
    short: Pods = ()

    @property
    def size(self) -> int:
        return len(self.nodes) + sum(self.upcoming.values())

    def with_more(self, other: Reservation) -> Reservation:
        """Seats of the pods that were short; ``other`` says which are short still."""
        groups = {*self.upcoming, *other.upcoming}
        both = {group: self.upcoming.get(group, 0) + other.upcoming.get(group, 0) for group in sorted(groups)}
        return Reservation(nodes=tuple(sorted({*self.nodes, *other.nodes})), upcoming=both, short=other.short)


def reserve(snapshot: Snapshot, pods: Pods, rows: Ints | Sequence[int]) -> Reservation:
    """Put the pods on Nodes of ``rows``, big ones first, first fit. They stay in ``snapshot``."""
    order = np.asarray(rows, np.int64)
    first_new = len(snapshot)
    before = {row: dict(snapshot.pods[row]) for row in order.tolist() if snapshot.nodes[row].hypothetical}
    nodes: set[str] = set()
    short = []
    for shape, count in sorted(pods, key=_size, reverse=True):
        placed = place(snapshot, snapshot.classes.of(shape.kind), count, order)
        order = placed.order
        nodes.update(snapshot.nodes[share.row].name for share in placed.shares if share.row not in before)
        if placed.count < count:
            short.append((shape, count - placed.count))
    taken = _upcoming(snapshot, order, before=before, first_new=first_new)
    return Reservation(
        nodes=tuple(sorted(name for name in nodes if not name.startswith(PREFIX))), upcoming=taken, short=tuple(short)
    )


def reserve_all(snapshot: Snapshot, requests: Iterable[Request]) -> dict[Ref, Reservation]:
    """Those that hold room, in their order: bookings on their Nodes, the others wherever room is or will be."""
    return {request.ref: _reserve_one(snapshot, request) for request in requests if request.holds}


def real_rows(snapshot: Snapshot) -> list[int]:
    return [row for row in snapshot.rows.tolist() if not snapshot.nodes[row].hypothetical]


def _reserve_one(snapshot: Snapshot, request: Request) -> Reservation:
    if request.growing:
        return reserve(snapshot, request.left, snapshot.rows)
    if not request.record.nodes:
        return reserve(snapshot, request.left, real_rows(snapshot))
    there = [row for name in request.record.nodes if (row := _row(snapshot, name)) is not None]
    return reserve(snapshot, request.left, there)


def _row(snapshot: Snapshot, name: str) -> int | None:
    try:
        return snapshot.row(name)
    except KeyError:
        return None


def _upcoming(
    snapshot: Snapshot, order: Ints, *, before: Mapping[int, Mapping[PodClass, int]], first_new: int
) -> dict[str, int]:
    """Nodes to come that got pods. A row that was cut off stands right behind the one that it was cut from."""
    found: dict[str, int] = {}
    origin = -1
    for row in order.tolist():
        origin = row if row < first_new else origin
        if origin in before and snapshot.pods[row] != before[origin]:
            group = snapshot.nodes[row].name.removeprefix(PREFIX)
            found[group] = found.get(group, 0) + int(snapshot.copies[row])
    return {group: nodes for group, nodes in found.items() if nodes}


def _size(pods: tuple[PodInfo, int]) -> tuple[int, int]:
    asked = dict(pods[0].kind.demand.requests)
    return asked.get(CPU, 0), asked.get(MEMORY, 0)
