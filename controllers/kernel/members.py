"""The Machines of one MachineSet, each in exactly one bucket; the MachineSet and its MachineDeployment count alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.names import ordinal_of
from controllers.kernel.ordinals import Ordinals
from controllers.kernel.victims import UNPLACED, in_order, removable

MOST_PRESERVED = 3
"""Failed Machines of one MachineSet that may be preserved beside its replicas; further ones are counted as ever."""


@dataclass(frozen=True, slots=True)
class Members:
    """``pending``: reserved ordinals whose Machine is not visible: it may exist, so it counts.

    ``leaving``: alive in this view, but their deletion was decided (and perhaps asked for) already.
    ``preserved``: failed, and kept for a while because somebody looks into them: neither counted nor deleted. At most
    MOST_PRESERVED of them: an annotation that came with the template must not add up to hosts without end.
    """

    active: tuple[MachineFacts, ...] = ()
    leaving: tuple[MachineFacts, ...] = ()
    deleting: tuple[MachineFacts, ...] = ()
    pending: tuple[int, ...] = ()
    preserved: tuple[MachineFacts, ...] = ()

    @property
    def existing(self) -> int:
        """Machines that stay unless the set is scaled down."""
        return len(self.active) + len(self.pending)

    @property
    def alive(self) -> int:
        """Machines that may hold a host and are not seen deleting."""
        return self.existing + len(self.leaving)

    @property
    def protected(self) -> tuple[MachineFacts, ...]:
        """Those that stay, however many there are."""
        return tuple(machine for machine in self.active if machine.protected)

    @property
    def recallable(self) -> tuple[MachineFacts, ...]:
        """Leaving Machines that stay if the set gets more replicas: not those that leave because they are unhealthy."""
        return tuple(machine for machine in self.leaving if not machine.selected_for_deletion)


def partition(owned: Iterable[MachineFacts], ordinals: Ordinals, prefix: str, now: datetime) -> Members:
    """Sort the owned Machines into buckets; ``prefix`` is that of the names that the MachineSet makes."""
    active: list[MachineFacts] = []
    leaving: list[MachineFacts] = []
    deleting: list[MachineFacts] = []
    preserved: list[MachineFacts] = []
    visible: set[int | None] = set()
    for machine in owned:
        if ordinals.reserved:
            visible.add(ordinal_of(machine.key.name, prefix))
        if machine.deleting:
            deleting.append(machine)
        elif machine.key.name in ordinals.leaving and not machine.protected:
            # Deletes are guarded by version: of one that is protected since and not going none was carried out.
            leaving.append(machine)
        elif machine.is_preserved(now):
            preserved.append(machine)
        else:
            active.append(machine)
    preserved.sort(key=lambda machine: (machine.created, machine.key))
    active += preserved[MOST_PRESERVED:]
    pending = tuple(sorted(o for o in ordinals.reserved if o not in visible))
    return Members(tuple(active), tuple(leaving), tuple(deleting), pending, tuple(preserved[:MOST_PRESERVED]))


@dataclass(frozen=True, slots=True)
class Removal:
    """Whom a MachineSet removes to get down to its replicas: pending ones (cheapest) first, then the one order.

    Fewer than are too many where the others are protected.
    """

    pending: tuple[int, ...]
    victims: tuple[MachineFacts, ...]


def removal(
    members: Members,
    replicas: int,
    policy: str,
    domains: Collection[str] = (),
    places: Mapping[str, int] = UNPLACED,
) -> Removal:
    """What has to go when ``members`` should be ``replicas``. ``domains`` and ``places``: see ``in_order``."""
    excess = members.existing - replicas
    if excess <= 0:
        return Removal((), ())
    pending = members.pending[::-1][:excess]
    victims: Sequence[MachineFacts] = ()
    if excess > len(pending):
        victims = removable(in_order(members.active, policy, domains, places))[: excess - len(pending)]
    return Removal(pending, tuple(victims))
