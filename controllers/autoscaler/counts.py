"""How many Nodes there are, in the Cluster Autoscaler's words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from controllers.autoscaler.health import is_late, unprovisionable
from controllers.autoscaler.observe import GroupState, Observed


@dataclass(frozen=True, slots=True)
class Counts:
    """Machines with a Node: ``ready``, ``not_started`` (young), ``unready``, ``being_deleted``. Those without one:
    ``unregistered``, ``long_unregistered`` (nobody waits for them any more).
    """

    ready: int = 0
    not_started: int = 0
    unready: int = 0
    being_deleted: int = 0
    unregistered: int = 0
    long_unregistered: int = 0

    @property
    def registered(self) -> int:
        return self.ready + self.not_started + self.unready + self.being_deleted


def count(state: GroupState, observed: Observed) -> Counts:
    """Each Machine once."""
    lost = {machine.key for machine, _ in unprovisionable(state, observed)}
    found = dict.fromkeys(Counts.__slots__, 0)
    for machine in state.machines:
        if machine.node_name and state.is_going(machine):
            found["being_deleted"] += 1
        elif machine.node_name in state.joined and machine.node_name:
            found["ready"] += 1
        elif machine.node_name:
            found["unready" if is_late(machine, state, observed) else "not_started"] += 1
        elif machine.key in lost:
            found["long_unregistered"] += 1
        elif not state.is_going(machine):
            found["unregistered"] += 1
    return Counts(**found)


def together(observed: Observed, groups: Iterable[Counts]) -> Counts:
    """Of the cluster: all Nodes, be they of a group or not."""
    counted = list(groups)
    going = sum(each.being_deleted for each in counted)
    return Counts(
        observed.ready - going,
        observed.all_nodes - observed.ready - observed.unready,
        observed.unready,
        going,
        sum(each.unregistered for each in counted),
        sum(each.long_unregistered for each in counted),
    )
