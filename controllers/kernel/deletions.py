"""Machines on their way out, in one sentence: how many, what holds them up, since when, and for what they wait.

A deletion that stands still is invisible on most owners: the Machines are no longer counted, and the owner is as large
as asked for. Cluster API tells it in the condition ScalingDown (cluster-api#11135); so does this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from api.conditions import Reason
from controllers.kernel.conditions import format_time
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.wording import counted
from providers.base.errors import ErrorClass

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
