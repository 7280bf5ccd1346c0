"""The deletion board: which Machines are on their way out, what holds each, since when and until when."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from api.conditions import MachineCondition, Reason
from api.durations import parse_duration
from controllers.kernel.conditions import find, format_time, parse_time
from controllers.kernel.deletions import HELD_UP
from controllers.kernel.machine_facts import read
from controllers.kernel.refs import Obj, is_deleting, key_of
from nodewright.reports.fleet.cells import row_of
from nodewright.reports.json_parts import part, text
from nodewright.reports.tree.advice import advice_for
from nodewright.reports.tree.runbooks import runbook_for

MOST_MACHINES = 200
"""Machines that are named under one holder."""
MOST_HOLDERS = 200
_BUDGET: Final = re.compile(r"PodDisruptionBudgets? ([a-z0-9.-]+/[a-z0-9.-]+)")
_HOOK: Final = re.compile(r"annotation (\S{1,320}) is removed")
_DEADLINES: Final = (
    ("nodeDrainDeleteAfter", "nodeDrainStartTime", "its pods are deleted"),
    ("nodeDrainForceAfter", "nodeDrainStartTime", "its pods are deleted by force"),
    ("nodeDrainTimeout", "nodeDrainStartTime", "the drain ends"),
    ("nodeVolumeDetachTimeout", "waitForNodeVolumeDetachStartTime", "waiting for volumes ends"),
)
"""Timeouts of a Machine's spec, the clock in ``status.deletion`` that each is counted from, and what happens then."""
_DRAINING: Final = (Reason.DRAIN_BLOCKED, Reason.DRAINING)


def board(machines: Iterable[Obj], now: datetime) -> dict[str, Any]:
    """``holders``: what holds Machines, with those it holds, held up first. ``total``: Machines that are going."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    total = 0
    for machine in machines:
        if not is_deleting(machine):
            continue
        total += 1
        condition = find(part(machine, "status").get("conditions"), MachineCondition.DELETING) or {}
        reason, message = text(condition, "reason") or "Deleting", text(condition, "message")
        for holder in _holders(reason, message):
            found.setdefault((key_of(machine).namespace, reason, holder), []).append(_held(machine, message, now))
    holders = [_holder(key, held) for key, held in found.items()]
    holders.sort(key=lambda each: (not each["heldUp"], -each["count"], each["namespace"], each["holder"]))
    return {"total": total, "holders": holders[:MOST_HOLDERS], "leftOut": max(0, len(holders) - MOST_HOLDERS)}


def _holders(reason: str, message: str) -> list[str]:
    """What the message names: budgets, or a hook; else the reason alone."""
    if reason == Reason.DRAIN_BLOCKED and (budgets := dict.fromkeys(_BUDGET.findall(message))):
        return [f"PodDisruptionBudget {each}" for each in list(budgets)[:8]]
    if reason == Reason.WAITING_FOR_HOOK and (hook := _HOOK.search(message)):
        return [f"hook {hook[1]}"]
    return [_PLAIN.get(reason, reason)]


_PLAIN: Final = {
    str(Reason.DRAINING): "pods that are leaving",
    str(Reason.DRAIN_BLOCKED): "pods that can't leave",
    str(Reason.WAITING_FOR_VOLUME_DETACH): "volumes that are attached",
    str(Reason.DELETING_HOST): "the provider, which deletes the host",
    str(Reason.HOSTS_CONTROLLER): "the controller that runs on it",
    str(Reason.PROVIDER_UNREACHABLE): "a provider that does not answer",
    "Deleting": "nothing that is known",
}


def _holder(key: tuple[str, str, str], held: list[dict[str, Any]]) -> dict[str, Any]:
    namespace, reason, holder = key
    held.sort(key=lambda each: (each["since"], each["name"]))
    return {
        "namespace": namespace,
        "holder": holder,
        "reason": reason,
        "heldUp": reason in HELD_UP,
        "since": held[0]["since"],
        "message": held[0]["message"],
        "nextStep": advice_for(reason),
        "runbook": runbook_for(reason),
        "count": len(held),
        "machines": held[:MOST_MACHINES],
    }


def _held(machine: Obj, message: str, now: datetime) -> dict[str, Any]:
    facts, row = read(machine), row_of(machine)
    until, then = _until(machine, now)
    return {
        "name": facts.key.name,
        "owner": row.cell.owner,
        "node": facts.node_name,
        "since": format_time(facts.deleting_since) if facts.deleting_since is not None else "",
        "until": format_time(until) if until is not None else "",
        "then": then,
        "message": message,
    }


def _until(machine: Obj, now: datetime) -> tuple[datetime | None, str]:
    """The next deadline and what happens then; None: no timeout of its spec ends the waiting."""
    spec, clocks = part(machine, "spec"), part(machine, "status", "deletion")
    ends = []
    for field, clock, then in _DEADLINES:
        begun, after = parse_time(clocks.get(clock)), _duration(spec, field)
        if begun is not None and after and begun + after > now:
            ends.append((begun + after, then))
    return min(ends, default=(None, ""))


def _duration(spec: Mapping[str, Any], field: str) -> timedelta:
    try:
        return parse_duration(text(spec, field) or "0s")
    except ValueError:
        return timedelta(0)
