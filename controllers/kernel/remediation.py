"""Machines that took the place of unhealthy ones: what is written on them, and what an owner is asked to do.

A place is a chain of Machines, each made for the one before. The health check reads it to wait ever longer between
replacements that don't help; the owner only hands it on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api import names
from api.conditions import MachineCondition
from controllers.kernel.conditions import find, format_time, parse_time
from controllers.kernel.refs import Obj, annotations_of, mapping

MOST_TIMES = 20
"""Times kept of a place; who replaces so often has found no cure."""
_LONGEST_ATTEMPT = 63


@dataclass(frozen=True, slots=True)
class RemediationData:
    """``machine``: whose place it is, "" if nobody's. ``times``: when its Machines were replaced, oldest first."""

    machine: str = ""
    times: tuple[datetime, ...] = ()

    def replaced(self, machine: str, now: datetime) -> RemediationData:
        """The place that ``machine``, whose own this was, leaves behind."""
        return RemediationData(machine, (*self.times, now)[-MOST_TIMES:])

    def to_status(self) -> dict[str, Any]:
        return {"machine": self.machine, "times": [format_time(moment) for moment in self.times]}

    def to_text(self) -> str:
        return json.dumps(self.to_status(), separators=(",", ":"))


NO_REMEDIATION_DATA = RemediationData()


def remediation_data_of(machine: Obj) -> RemediationData:
    """Whose place the Machine took; an unreadable annotation says nothing."""
    text = annotations_of(machine).get(names.REMEDIATION_FOR_ANNOTATION)
    try:
        return read_remediation_data(json.loads(text)) if text else NO_REMEDIATION_DATA
    except ValueError:
        return NO_REMEDIATION_DATA


def read_remediation_data(found: object) -> RemediationData:
    """From JSON: unreadable parts are left out."""
    if not isinstance(found, Mapping) or not isinstance(found.get("machine"), str):
        return NO_REMEDIATION_DATA
    listed = found.get("times")
    times = (parse_time(text) for text in (listed if isinstance(listed, list) else ()) if isinstance(text, str))
    return RemediationData(found["machine"], tuple(sorted(moment for moment in times if moment is not None)))


@dataclass(frozen=True, slots=True)
class RebootRequest:
    """``attempt``: its id. ``number``: how many were asked for in a row. Not helped by ``deadline``: in vain."""

    attempt: str
    number: int
    requested_at: datetime
    deadline: datetime

    def to_status(self) -> dict[str, Any]:
        return {
            "attempt": self.attempt,
            "number": self.number,
            "requestedAt": format_time(self.requested_at),
            "deadline": format_time(self.deadline),
        }


def reboot_request_of(machine: Obj) -> RebootRequest | None:
    """The last reboot that a health check asked for; None if none did, or if it can't be read."""
    found = mapping(mapping(machine.get("status")).get("reboot"))
    attempt, number = found.get("attempt"), found.get("number")
    if not isinstance(attempt, str) or not 0 < len(attempt) <= _LONGEST_ATTEMPT or not isinstance(number, int):
        return None
    times = [
        parse_time(found[name]) if isinstance(found.get(name), str) else None for name in ("requestedAt", "deadline")
    ]
    return RebootRequest(attempt, number, times[0], times[1]) if times[0] and times[1] else None


def is_being_rebooted(machine: Obj, now: datetime) -> bool:
    """It is unhealthy, and the time of a reboot is not over."""
    asked = reboot_request_of(machine)
    return asked is not None and now < asked.deadline and is_unhealthy(mapping(machine.get("status")))


def is_unhealthy(status: Mapping[str, Any]) -> bool:
    """A health check says so."""
    return _is_false(status, MachineCondition.HEALTH_CHECK_SUCCEEDED)


def is_selected_for_deletion(status: Mapping[str, Any]) -> bool:
    """The owner is asked to replace it."""
    return _is_false(status, MachineCondition.OWNER_REMEDIATED)


def unhealthy_since(machine: Obj) -> datetime | None:
    """When a health check first called it unhealthy; None if none does."""
    status = machine.get("status") or {}
    found = find(status.get("conditions"), MachineCondition.HEALTH_CHECK_SUCCEEDED)
    return parse_time(found.get("lastTransitionTime")) if found and found.get("status") == "False" else None


def _is_false(status: Mapping[str, Any], type_: str) -> bool:
    found = find(status.get("conditions"), type_)
    return found is not None and found.get("status") == "False"
