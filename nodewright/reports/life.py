"""A Machine's life as bars: from when to when each stage lasted, as far as its object still tells."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from api.conditions import MachineCondition
from controllers.kernel.conditions import find, format_time, parse_time
from controllers.kernel.refs import Obj
from nodewright.reports.json_parts import part, text

_STAGES = (
    ("Node is drained", "nodeDrainStartTime"),
    ("Volumes are detached", "waitForNodeVolumeDetachStartTime"),
    ("Pre-terminate hooks", "waitForPreTerminateHookStartTime"),
    ("Host is deleted", "hostDeletionStartTime"),
    ("Node is deleted", "nodeDeletionStartTime"),
)
"""Stages of a deletion and the clock in ``status.deletion`` with which each begins."""


def life(machine: Obj) -> list[dict[str, Any]]:
    """Bars in order: ``name``, ``from``, ``to`` ("" while it lasts), ``mood`` (ok, busy, wrong), ``why``.

    A Machine made at 10:00 whose host ran at 10:02 and whose Node was Ready at 10:03 has three bars: host 10:00 to
    10:02, joining 10:02 to 10:03, serving from 10:03 on. Conditions keep their last change only, so that of a Machine
    that was unready in between, serving begins anew.
    """
    created = parse_time(part(machine, "metadata").get("creationTimestamp"))
    if created is None:
        return []
    return [_value(bar) for bar in (*_coming(machine, created), *_going(machine))]


_Bar = tuple[str, datetime, datetime | None, str, str]


def _coming(machine: Obj, created: datetime) -> Iterator[_Bar]:
    asked = parse_time(part(machine, "metadata").get("deletionTimestamp"))
    host, _, host_why = _since(machine, MachineCondition.INFRASTRUCTURE_READY)
    ready, bad_since, ready_why = _since(machine, MachineCondition.READY)
    joined, _, _ = _since(machine, MachineCondition.NODE_JOINED)
    node, _, _ = _since(machine, MachineCondition.NODE_READY)
    moments = [moment for moment in (host, joined or node, ready) if moment is not None]
    if host is None and not moments:
        yield "Host is made", created, asked, "busy" if asked is None else "", host_why
        return
    made = max(created, min(moments))
    yield "Host is made", created, made, "ok", ""
    if ready is None:
        was_ready = bool(text(machine, "status", "nodeRef", "name")) and bad_since is not None and bad_since > made
        if was_ready and bad_since is not None:
            yield "Not Ready", bad_since, asked, "wrong", ready_why
        elif asked is None or asked > made:
            yield "Joins as a Node", made, asked, "busy", ready_why
        return
    ready = max(ready, made)
    yield "Joins as a Node", made, ready, "ok", ""
    yield "Ready", ready, max(asked, ready) if asked is not None else None, "ok", ""


def _going(machine: Obj) -> Iterator[_Bar]:
    asked = parse_time(part(machine, "metadata").get("deletionTimestamp"))
    if asked is None:
        return
    clocks = part(machine, "status", "deletion")
    begun = [(name, at) for name, clock in _STAGES if (at := parse_time(clocks.get(clock))) is not None]
    begun.sort(key=lambda stage: stage[1])
    stages = [("Deletion is asked for", asked), *((name, max(at, asked)) for name, at in begun)]
    condition = find(part(machine, "status").get("conditions"), MachineCondition.DELETING) or {}
    why = ": ".join(filter(None, (text(condition, "reason"), text(condition, "message"))))
    for index, (name, at) in enumerate(stages):
        last = index + 1 == len(stages)
        yield name, at, None if last else stages[index + 1][1], "busy" if last else "ok", why if last else ""


def _since(machine: Obj, type_: str) -> tuple[datetime | None, datetime | None, str]:
    """Since when a condition is True, since when it is not, and why not."""
    condition = find(part(machine, "status").get("conditions"), type_) or {}
    at = parse_time(condition.get("lastTransitionTime"))
    if condition.get("status") == "True":
        return at, None, ""
    return None, at, ": ".join(filter(None, (text(condition, "reason"), text(condition, "message"))))


def _value(bar: _Bar) -> dict[str, Any]:
    name, begun, ended, mood, why = bar
    return {
        "name": name,
        "from": format_time(begun),
        "to": format_time(ended) if ended is not None else "",
        "mood": mood,
        "why": why,
    }
