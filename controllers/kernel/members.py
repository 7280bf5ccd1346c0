"""The Machines of a set: counted, and in one sentence why some are not ready.

Each is in exactly one bucket; the MachineSet and its MachineDeployment count alike.

Reasons of many Machines in one sentence: ``3× QuotaExceeded: cores; 1× WaitingForNode``.

Users ask why a set is not ready and find the answer on no peer's set (cluster-api#5635, MCM#70).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from controllers.kernel.deletions import UNPLACED, in_order, removable
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.names import Ordinals, ordinal_of

MAX_REASONS = 4
MAX_MESSAGE = 160


@dataclass(frozen=True, slots=True)
class Rollup:
    """``reason``: the most frequent one, terminal ones first; ``text`` "" if no Machine has anything to say."""

    reason: str
    text: str


def roll_up(machines: Iterable[MachineFacts]) -> Rollup:
    """Count the reasons of Machines that are not ready. The order, and so the text, depends only on what is counted."""
    counts: dict[tuple[bool, str], int] = {}
    messages: dict[tuple[bool, str], str] = {}
    for machine in machines:
        if machine.ready:
            continue
        key = (machine.failed, machine.reason)
        counts[key] = counts.get(key, 0) + 1
        if machine.message and (key not in messages or machine.message < messages[key]):
            messages[key] = machine.message
    ordered = sorted(counts, key=lambda key: (not key[0], -counts[key], key[1]))
    if not ordered:
        return Rollup("", "")
    parts = [_part(counts[key], key[1], messages.get(key, "")) for key in ordered[:MAX_REASONS]]
    if len(ordered) > MAX_REASONS:
        parts.append(f"{sum(counts[key] for key in ordered[MAX_REASONS:])}× other reasons")
    return Rollup(ordered[0][1], "; ".join(parts))


def _part(count: int, reason: str, message: str) -> str:
    short = message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
    return f"{count}× {reason}: {short}" if short else f"{count}× {reason}"


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
