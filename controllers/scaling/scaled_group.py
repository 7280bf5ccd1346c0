"""A node group with its Machines: how far it is from its size, and what keeps a scaler from choosing who goes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import Key, Obj
from controllers.scaling.delete_marks import Scaler, is_marked_by, is_marked_by_another
from controllers.scaling.node_group import NodeGroup


class Obstacle(StrEnum):
    """Why a scaler can't say which Machines of a group go."""

    SURPLUS = "Surplus"
    """The set has yet to delete Machines for an earlier size: a mark more, and it might take that one instead."""
    ROLLOUT = "Rollout"
    """Machines of several revisions are there: the rollout chooses."""
    MARKED_BY_ANOTHER = "MarkedByAnother"
    """A Machine that is marked already would go before the chosen one, or in its place."""


def is_rolling(machine_sets: Iterable[Obj]) -> bool:
    """Whether several MachineSets of a group have, or are to have, Machines."""
    return sum(1 for machine_set in machine_sets if _has_machines(machine_set)) > 1


def _has_machines(machine_set: Obj) -> bool:
    counts = ((machine_set.get(part) or {}).get("replicas") for part in ("spec", "status"))
    return any(isinstance(count, int) and count > 0 for count in counts)


@dataclass(frozen=True, slots=True)
class ScaledGroup:
    """``machines``: all that count for its size. ``rolling``: Machines of several revisions are there."""

    group: NodeGroup
    machines: tuple[MachineFacts, ...] = ()
    rolling: bool = False

    @property
    def id(self) -> str:
        return self.group.id

    @property
    def live(self) -> tuple[MachineFacts, ...]:
        """Machines that are not being deleted."""
        return tuple(machine for machine in self.machines if not machine.deleting)

    @property
    def balance(self) -> int:
        """Machines more than asked for; below zero: as many are still to be made. 3 live, 5 replicas: -2."""
        return sum(1 for machine in self.machines if not machine.deleting) - self.group.replicas

    @property
    def surplus(self) -> int:
        """Machines that are more than is asked for: the set has yet to let them go."""
        return max(0, self.balance)

    @property
    def unmade(self) -> int:
        """Machines that are asked for and not made yet."""
        return max(0, -self.balance)

    def marked_by(self, *scalers: Scaler) -> tuple[MachineFacts, ...]:
        """Live Machines with a mark of theirs."""
        return tuple(machine for machine in self.live if is_marked_by(machine, *scalers))

    def marked_by_another(self, *scalers: Scaler, besides: Collection[Key] = ()) -> tuple[MachineFacts, ...]:
        """Live Machines that a person or another scaler has marked: they go before any that is chosen now.

        ``besides``: Machines that are chosen themselves.
        """
        found = (machine for machine in self.live if is_marked_by_another(machine, *scalers))
        return tuple(machine for machine in found if machine.key not in besides)

    def obstacles(self, *scalers: Scaler, besides: Collection[Key] = ()) -> dict[Obstacle, str]:
        """All that keeps ``scalers`` from choosing which Machines go, each with a sentence; empty: nothing does."""
        found: dict[Obstacle, str] = {}
        if self.surplus:
            found[Obstacle.SURPLUS] = f"{self.id} has yet to let {self.surplus} of its Machines go"
        if self.rolling:
            found[Obstacle.ROLLOUT] = f"a rollout of {self.id} is under way"
        if others := self.marked_by_another(*scalers, besides=besides):
            found[Obstacle.MARKED_BY_ANOTHER] = f"Machine {others[0].key.name} of {self.id} is marked to go first"
        return found
