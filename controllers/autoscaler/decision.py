"""What one reconcile comes to, before it is written: Nodes to add, Nodes to remove, and what to remember of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.autoscaler.buffer_growth import BufferOutcome
from controllers.autoscaler.consolidation import NONE, Consolidation
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.scale_up import ScaleUp
from controllers.autoscaler.scaledown.planner import ScaleDown
from controllers.kernel.plan import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """``steps`` in order; ``memory`` has to be kept before the first of them. ``frozen``: why nothing is decided.

    ``changes``: group → Nodes that it gets more, or (below zero) fewer. ``settling``: some pods without a Node have
    room on Nodes that are there.
    """

    memory: Memory
    scale_up: ScaleUp = field(default_factory=ScaleUp)
    scale_down: ScaleDown = field(default_factory=ScaleDown)
    changes: Mapping[str, int] = field(default_factory=dict)
    buffers: tuple[BufferOutcome, ...] = ()
    steps: tuple[Step, ...] = ()
    frozen: str = ""
    consolidation: Consolidation = NONE
    settling: bool = False
