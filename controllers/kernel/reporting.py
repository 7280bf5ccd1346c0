"""What the plans of sets have in common when they report: guarded status writes, terminal errors, invalid specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.conditions import Reason, SetCondition
from controllers.kernel.actions import Action, Event, Patch
from controllers.kernel.conditions import find
from controllers.kernel.plan import Failed, Plan, Step, steps
from controllers.kernel.refs import Obj, Ref, resource_version_of


def error_fields(reason: str, message: str) -> dict[str, str | None]:
    """The terminal error in the words of both families (the Cluster Autoscaler reads the second)."""
    return {
        "errorReason": str(reason) or None,
        "errorMessage": message or None,
        "failureReason": str(reason) or None,
        "failureMessage": message or None,
    }


def guarded(ref: Ref, body: Obj, status: Mapping[str, Any], why: str) -> Patch:
    """Refused when the object changed since it was observed, even if there is nothing to write."""
    return Patch(ref, {"status": status} if status else {}, why, "status", resource_version_of(body))


def status_step(ref: Ref, body: Obj, status: Mapping[str, Any]) -> tuple[Step, ...]:
    """The write that brings the status up to date; no step if it is."""
    return steps([guarded(ref, body, status, "status is out of date")]) if status else ()


def new_failure(ref: Ref, before: Mapping[str, Any], patch: Mapping[str, Any]) -> list[Action]:
    """One event when ``patch`` is the first status to say that Machines failed for good; the message counts reasons."""
    reported, old = (find(status.get("conditions"), SetCondition.MACHINES_READY) for status in (patch, before))
    if reported is None or reported["reason"] != Reason.MACHINES_FAILED:
        return []
    if old is not None and old.get("reason") == Reason.MACHINES_FAILED:
        return []
    return [Event(ref, "Warning", Reason.MACHINES_FAILED, reported["message"])]


def invalid(ref: Ref, body: Obj, status: Mapping[str, Any], problem: str) -> Plan:
    """A spec that can't be used: said once in ``status`` and as an event, nothing else is done."""
    events: list[Action] = []
    if "errorMessage" in status:
        events.append(Event(ref, "Warning", Reason.INVALID_CONFIGURATION, problem))
    return Plan((*status_step(ref, body, status), *steps(events)), Failed(Reason.INVALID_CONFIGURATION, problem))
