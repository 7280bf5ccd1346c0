"""Nodes for CapacityBuffers: chunks that fit nowhere make groups grow.

Chunks are placed after all pending pods and gangs: any pod has a higher priority. They fit on existing Nodes, on Nodes
on their way, or on new ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from controllers.autoscaler.buffers import Buffer
from controllers.autoscaler.projected import ProjectedCluster
from controllers.autoscaler.scale_up import MOST_EXPLAINED, Growth
from controllers.kernel.refs import Ref
from controllers.scheduling.classes import Group
from controllers.scheduling.columns import Ints
from controllers.scheduling.placement import place
from controllers.scheduling.shapes import CPU
from controllers.scheduling.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferOutcome:
    """``placed`` chunks fit, on the existing ``nodes`` and on Nodes on their way. ``added``: group → Nodes that it gets
    for the others; ``short`` chunks get none. ``why``: group → why it does not help those; empty if nobody asked.
    """

    buffer: Buffer
    placed: int = 0
    nodes: tuple[str, ...] = ()
    added: Mapping[str, int] = field(default_factory=dict)
    short: int = 0
    why: Mapping[str, str] = field(default_factory=dict)


def grow_for_buffers(
    buffers: Iterable[Buffer], projected: ProjectedCluster, growth: Growth
) -> tuple[BufferOutcome, ...]:
    """Buffer by buffer. The snapshot holds their chunks and the new Nodes afterwards.

    At most ``MOST_EXPLAINED`` buffers say why no group helps: each costs a look at all groups.
    """
    outcomes: list[BufferOutcome] = []
    explained = 0
    for buffer in buffers:
        outcome = _grow(buffer, projected.snapshot, growth, explained=explained < MOST_EXPLAINED)
        explained += bool(outcome.short)
        outcomes.append(outcome)
    return tuple(outcomes)


def booked(outcomes: Iterable[BufferOutcome]) -> dict[str, Ref]:
    """Existing Node → a buffer that has chunks on it."""
    return {node: each.buffer.ref for each in outcomes for node in each.nodes}


def added(outcomes: Iterable[BufferOutcome]) -> dict[str, int]:
    """Group → Nodes that it gets for all buffers together."""
    found: Counter[str] = Counter()
    for each in outcomes:
        found.update(each.added)
    return dict(found)


def _grow(buffer: Buffer, snapshot: Snapshot, growth: Growth, *, explained: bool) -> BufferOutcome:
    if buffer.chunk is None or not buffer.count:
        return BufferOutcome(buffer=buffer)
    pod_class = snapshot.classes.of(buffer.chunk.kind)
    placed = place(snapshot, pod_class, buffer.count, _fullest_first(snapshot))
    names = {snapshot.nodes[share.row].name for share in placed.shares if not snapshot.nodes[share.row].hypothetical}
    outcome = BufferOutcome(buffer=buffer, placed=placed.count, nodes=tuple(sorted(names)))
    left = buffer.count - placed.count
    if not left:
        return outcome
    grown = growth.run_apart(Group(pod_class, (buffer.chunk,) * left), explained=explained)
    return replace(outcome, added=grown.added, short=grown.short, why=grown.why)


def _fullest_first(snapshot: Snapshot) -> Ints:
    """Nodes that are there before those to come, and of each those with the least room: so that chunks keep as few
    Nodes as possible from going.
    """
    rows = snapshot.rows
    coming = np.array([snapshot.nodes[row].hypothetical for row in rows.tolist()], bool)
    return rows[np.lexsort((rows, snapshot.free(CPU)[rows], coming))]
