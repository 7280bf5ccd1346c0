"""Machines that go: in which order, and what holds those up that are on their way.

The order of deletion: one total order, shared by the MachineSet that deletes and the MachineDeployment that plans
for it.

    deleting > annotated > failed, unhealthy or no Node > not Ready > failed or unhealthy, but Ready > user's priority
     > fullest failure domain > policy > name

Protected Machines come last of all, and whoever chooses leaves them out (``removable``).

The policy is a lot, the exact age, or how much a Machine's going would disturb (which its MachineSet alone finds out).

One that is Ready serves, whatever else is said of it, and a minimum counts it: whoever does not serve goes first.
Sharing it is what lets "scale the old set down by one" mean a known Machine. Ages are compared exactly: peers squeeze
them through an exponential that is 1.0 after about a year, so that old Machines tie with annotated ones
(cluster-api#5424, #10755).

Machines on their way out, in one sentence: how many, what holds them up, since when, and for what they wait.

A deletion that stands still is invisible on most owners: the Machines are no longer counted, and the owner is as large
as asked for. Cluster API tells it in the condition ScalingDown (cluster-api#11135); so does this.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from hashlib import sha256
from itertools import groupby

from api.conditions import Reason
from api.names import DeletePolicy
from controllers.kernel.conditions import counted, format_time
from controllers.kernel.machine_facts import MachineFacts
from providers.base.errors import ErrorClass

UNPLACED: Mapping[str, int] = {}
_LAST = 1 << 40


class Rank(IntEnum):
    """The lower, the earlier it goes."""

    DELETING = 0
    ANNOTATED = 1
    FAILED = 2
    NOT_READY = 3
    AILING = 4
    READY = 5
    PROTECTED = 6


def rank(machine: MachineFacts) -> Rank:
    if machine.deleting:
        return Rank.DELETING
    if machine.protected:
        return Rank.PROTECTED
    if machine.annotated:
        return Rank.ANNOTATED
    ails = machine.failed or machine.unhealthy or not machine.node_name
    if machine.ready:
        return Rank.AILING if ails else Rank.READY
    return Rank.FAILED if ails else Rank.NOT_READY


def in_order(
    machines: Iterable[MachineFacts],
    policy: str = DeletePolicy.RANDOM,
    domains: Collection[str] = (),
    places: Mapping[str, int] = UNPLACED,
) -> list[MachineFacts]:
    """``machines`` with the first victim first. An unknown or empty policy means Random, as in the lineage.

    ``domains``: failure domains over which they are to be spread; of those that are equally good otherwise the next
    one comes from the domain that holds most by then, and before all from where none should be.
    ``places``: uid → place in the order of LeastDisruptive, as far as that is known; those without one come last and by
    lot.
    """
    ordered = sorted(machines, key=lambda machine: _sort_key(machine, policy, places.get(machine.uid, _LAST)))
    return _evened(ordered, domains) if domains else ordered


def _evened(ordered: list[MachineFacts], domains: Collection[str]) -> list[MachineFacts]:
    loads = Counter(machine.failure_domain for machine in ordered)
    found: list[MachineFacts] = []
    for _, equals in groupby(enumerate(ordered), key=lambda pair: _before_domains(pair[1])):
        queues: dict[str, deque[tuple[int, MachineFacts]]] = {}
        for position, machine in equals:
            queues.setdefault(machine.failure_domain, deque()).append((position, machine))
        while queues:
            fullest = min(queues, key=lambda domain: (domain in domains, -loads[domain], queues[domain][0][0]))
            found.append(queues[fullest].popleft()[1])
            loads[fullest] -= 1
            if not queues[fullest]:
                del queues[fullest]
    return found


def _before_domains(machine: MachineFacts) -> tuple[int, int]:
    return (rank(machine), -machine.priority)


def _sort_key(machine: MachineFacts, policy: str, place: int) -> tuple[int, int, float, str, str]:
    age, lot = 0.0, ""
    if policy == DeletePolicy.OLDEST:
        age = machine.created.timestamp()
    elif policy == DeletePolicy.NEWEST:
        age = -machine.created.timestamp()
    else:
        age = float(place)
        lot = sha256(machine.uid.encode()).hexdigest()
    return (*_before_domains(machine), age, lot, machine.key.name)


def removable(machines: Iterable[MachineFacts]) -> list[MachineFacts]:
    """Machines that may be chosen for deletion: neither protected nor being deleted already."""
    return [machine for machine in machines if not (machine.protected or machine.deleting)]


SLOW_AFTER = timedelta(minutes=10)
"""A deletion that takes longer than this is said to be held up, whatever it waits for."""
HELD_UP = frozenset(
    str(reason)
    for reason in (
        Reason.DRAIN_BLOCKED,
        Reason.WAITING_FOR_HOOK,
        Reason.WAITING_FOR_VOLUME_DETACH,
        Reason.HOSTS_CONTROLLER,
        Reason.PROVIDER_UNREACHABLE,
        Reason.INVALID_CONFIGURATION,
        Reason.CONNECTION_DOWN,
        *ErrorClass,
    )
)
"""Reasons of the condition Deleting that don't pass by themselves within seconds."""
MOST_CAUSES = 3
MOST_MESSAGE = 400


@dataclass(frozen=True, slots=True)
class Deletions:
    """``count``: Machines that are going. ``reason``: the most frequent cause that holds some of them up, "" if none
    does. ``text``: both for people, "" without Machines. ``next_slow``: when the next one will have taken too long.
    """

    count: int
    reason: str = ""
    text: str = ""
    next_slow: datetime | None = None


def roll_up_deletions(going: Iterable[MachineFacts], now: datetime) -> Deletions:
    """Count what holds Machines up; the text depends only on what is counted, not on how long it has lasted.

    30 Machines of which 28 wait for a budget: ``30 Machines are being deleted: 28× DrainBlocked, the first (workers-3)
    since 2026-01-01T00:00:00Z: …``.
    """
    machines = list(going)
    if not machines:
        return Deletions(0)
    causes: dict[str, list[MachineFacts]] = {}
    later: list[datetime] = []
    for machine in machines:
        slow_at = machine.deleting_since + SLOW_AFTER if machine.deleting_since else None
        if machine.reason in HELD_UP or (slow_at is not None and slow_at <= now):
            causes.setdefault(machine.reason or str(Reason.DELETING), []).append(machine)
        elif slow_at is not None:
            later.append(slow_at)
    ordered = sorted(causes, key=lambda reason: (-len(causes[reason]), reason))
    parts = [_cause(reason, causes[reason]) for reason in ordered[:MOST_CAUSES]]
    if len(ordered) > MOST_CAUSES:
        parts.append(f"{sum(len(causes[reason]) for reason in ordered[MOST_CAUSES:])}× other causes")
    text = counted(len(machines), "Machine is being deleted", "Machines are being deleted")
    return Deletions(
        len(machines),
        ordered[0] if ordered else "",
        f"{text}: {'; '.join(parts)}" if parts else text,
        min(later, default=None),
    )


def _cause(reason: str, machines: list[MachineFacts]) -> str:
    """The Machine that has been going for the longest time stands for all with the same cause."""
    first = min(machines, key=lambda machine: (machine.deleting_since or _last(machine), machine.key))
    since = f" since {format_time(first.deleting_since)}" if first.deleting_since else ""
    which = f"{first.key.name}{since}" if len(machines) == 1 else f"the first ({first.key.name}){since}"
    message = first.message if len(first.message) <= MOST_MESSAGE else first.message[: MOST_MESSAGE - 1] + "…"
    return f"{len(machines)}× {reason}, {which}" + (f": {message}" if message else "")


def _last(machine: MachineFacts) -> datetime:
    """A Machine whose deletion was decided and is not seen yet sorts behind those that are seen going."""
    return datetime.max.replace(tzinfo=machine.created.tzinfo)
