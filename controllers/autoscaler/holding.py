"""Room for CapacityBuffers: on Nodes that are there or on their way, else on Nodes that groups get for it.

Chunks are placed after all pending pods and gangs, and asked for after them: they are of lower priority than any pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from controllers.autoscaler.buffers import Buffer
from controllers.autoscaler.projected import ProjectedCluster
from controllers.autoscaler.scale_up import Growth
from controllers.kernel.refs import Ref
from controllers.scheduling.classes import Group
from controllers.scheduling.columns import Ints
from controllers.scheduling.placement import place
from controllers.scheduling.shapes import CPU
from controllers.scheduling.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """``placed`` chunks have room, on ``nodes`` that are there and on Nodes on their way. ``added``: group → Nodes that
    it gets for the others; ``short`` chunks get none. ``why``: group → why it does not help those.
    """

    buffer: Buffer
    placed: int = 0
    nodes: tuple[str, ...] = ()
    added: Mapping[str, int] = field(default_factory=dict)
    short: int = 0
    why: Mapping[str, str] = field(default_factory=dict)


def hold(buffers: Iterable[Buffer], projected: ProjectedCluster, growth: Growth) -> tuple[Held, ...]:
    """Buffer by buffer. Their chunks and the new Nodes are in the snapshot afterwards."""
    return tuple(_hold(buffer, projected.snapshot, growth) for buffer in buffers)


def booked(held: Iterable[Held]) -> dict[str, Ref]:
    """Nodes that are there → a buffer that has chunks on them."""
    return {node: each.buffer.ref for each in held for node in each.nodes}


def added(held: Iterable[Held]) -> dict[str, int]:
    """Group → Nodes that it gets for all buffers together."""
    found: dict[str, int] = {}
    for each in held:
        for group, nodes in each.added.items():
            found[group] = found.get(group, 0) + nodes
    return found


def _hold(buffer: Buffer, snapshot: Snapshot, growth: Growth) -> Held:
    if buffer.chunk is None or not buffer.count:
        return Held(buffer=buffer)
    pod_class = snapshot.classes.of(buffer.chunk.kind)
    placed = place(snapshot, pod_class, buffer.count, _fullest_first(snapshot))
    names = {snapshot.nodes[share.row].name for share in placed.shares if not snapshot.nodes[share.row].hypothetical}
    left = buffer.count - placed.count
    grown = growth.run_apart(Group(pod_class, (buffer.chunk,) * left)) if left else None
    return Held(
        buffer=buffer,
        placed=placed.count,
        nodes=tuple(sorted(names)),
        added=grown.added if grown else {},
        short=grown.short if grown else 0,
        why=grown.why if grown else {},
    )


def _fullest_first(snapshot: Snapshot) -> Ints:
    """Nodes that are there before those to come, and of each those with the least room: so that chunks keep as few
    Nodes as possible from going.
    """
    rows = snapshot.rows
    coming = np.array([snapshot.nodes[row].hypothetical for row in rows.tolist()], bool)
    return rows[np.lexsort((rows, snapshot.free(CPU)[rows], coming))]
