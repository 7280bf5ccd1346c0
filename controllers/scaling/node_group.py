"""A node group: a MachineDeployment or MachineSet with the sizes between which it may be scaled, and its Machines."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import Key, Obj, Ref
from controllers.scaling.delete_marks import Scaler, is_marked_by, is_marked_by_another

_ANY_SIZE = (1 << 63) - 1
"""More than ``spec.replicas`` can hold (an int32): the API server refuses such a size and says so."""


@dataclass(frozen=True, slots=True)
class Bounds:
    min_size: int
    max_size: int


UNBOUNDED = Bounds(0, _ANY_SIZE)


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """``replicas`` is what is asked for now; ``resource_version`` is that of the object which says so.

    ``name``: what a provider outside calls the group; "" for groups of our own API. ``consolidation``: id of the
    consolidation for which it has a Node more now, as its annotation says.
    """

    ref: Ref
    bounds: Bounds
    replicas: int
    resource_version: str = ""
    name: str = ""
    consolidation: str = ""

    @property
    def id(self) -> str:
        """As the Cluster Autoscaler names it."""
        return self.name or f"{self.ref.kind.name}/{self.ref.key}"

    @property
    def headroom(self) -> int:
        """Nodes that may be added."""
        return max(0, self.bounds.max_size - self.replicas)

    @property
    def spare(self) -> int:
        """Nodes that may go."""
        return max(0, self.replicas - self.bounds.min_size)

    def clamped(self, size: int) -> int:
        """``size``, or the nearest to it that the group may be given.

        A group that a person has scaled beyond its bounds is not moved further out, and not forced back in.
        With 3 replicas and bounds 2 to 5: 9 → 5, 0 → 2. With 8 replicas and the same bounds: 9 → 8, 7 → 7, 0 → 2.
        """
        low, high = min(self.bounds.min_size, self.replicas), max(self.bounds.max_size, self.replicas)
        return max(0, low, min(size, high))


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
