"""What is written so that exactly the chosen Machines go: marks, then sizes; and what is reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from controllers.autoscaler.scaledown.planner import ScaleDown
from controllers.kernel.actions import Event
from controllers.scaling.resize import ByName


def marked(found: ScaleDown) -> list[ByName]:
    """Machines that are to carry the autoscaler's delete mark."""
    return [ByName(victim.machine, victim.why) for victim in found.victims]


def unmarked(found: ScaleDown) -> list[ByName]:
    """Machines whose mark is taken back: an earlier reconcile chose them and did not come to their size."""
    return [ByName(machine, "it is needed after all") for machine in found.unmarked]


def fewer(found: ScaleDown) -> Counter[str]:
    """Group → by how many Machines it gets smaller."""
    return Counter(victim.group for victim in found.victims)


def events(found: ScaleDown) -> Iterator[Event]:
    """On Machines that were Nodes, named as in the Cluster Autoscaler."""
    for victim in found.victims:
        if victim.node:
            yield Event(victim.machine.ref, "Normal", "ScaleDown" if victim.moves else "ScaleDownEmpty", victim.why)
