"""Reasons of many Machines in one sentence: ``3× QuotaExceeded: cores; 1× WaitingForNode``.

Users ask why a set is not ready and find the answer on no peer's set (cluster-api#5635, MCM#70).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from controllers.kernel.machine_facts import MachineFacts

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
