"""Which conditions of an object are worth a line, and what they make of the object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from api.conditions import ClusterCondition, MachineCondition, Reason, SetCondition
from api.names import MachinePhase
from controllers.kernel.conditions import parse_time
from controllers.kernel.deletions import HELD_UP
from nodewright.reports.tree.advice import advice_for
from nodewright.reports.tree.branch import Branch, Mood
from providers.base.errors import ErrorClass

_TRUE_IS_NOTEWORTHY: Final = frozenset(
    str(condition)
    for condition in (
        MachineCondition.UPDATING,
        MachineCondition.DELETING,
        MachineCondition.PAUSED,
        SetCondition.SCALING_UP,
        SetCondition.SCALING_DOWN,
        SetCondition.REMEDIATING,
        SetCondition.FROZEN,
        ClusterCondition.CERTIFICATES_EXPIRING,
        "RollingOut",
    )
)
"""Conditions whose quiet value is False; all others are quiet when True."""

BAD_REASONS: Final = frozenset(
    str(reason)
    for reason in (
        Reason.HOST_MISSING,
        Reason.NODE_MISSING,
        Reason.NODE_NOT_READY,
        Reason.NODE_CONFLICT,
        Reason.PROVIDER_UNREACHABLE,
        Reason.PROVIDER_UNKNOWN,
        Reason.INVALID_CONFIGURATION,
        Reason.UNKNOWN_FIELD,
        Reason.MACHINE_CLASS_NOT_FOUND,
        Reason.CEILING_REACHED,
        Reason.PROGRESS_DEADLINE_EXCEEDED,
        Reason.ROLLED_BACK,
        Reason.NEEDS_REPLACEMENT,
        Reason.MACHINES_PROTECTED,
        Reason.UNREACHABLE,
        Reason.INVALID_KUBECONFIG,
        Reason.KUBECONFIG_MISSING,
        Reason.CONNECTION_DOWN,
        Reason.UNHEALTHY_NODE,
        Reason.UNHEALTHY_MACHINE,
        Reason.REMEDIATION_DEFERRED,
        Reason.DRAIN_BLOCKED,
        Reason.NODE_STARTUP_TIMEOUT,
        Reason.TOO_MANY_UNHEALTHY,
        Reason.CORRELATED_FAILURES,
        Reason.HOST_FAILED,
        Reason.HOST_STOPPED,
        Reason.MACHINE_FAILED,
        Reason.TEMPLATE_FAILS,
        Reason.MALFORMED_SPEC,
        Reason.RECONCILE_FAILED,
        Reason.NOT_ALLOWED,
        Reason.REMEDIATION_KIND_NOT_ALLOWED,
        Reason.NO_ENDPOINT,
        Reason.INVALID_BOOTSTRAP_SPEC,
        Reason.INVALID_CERTIFICATE_AUTHORITY,
        Reason.VERSION_SKEW,
        Reason.FORMAT_NOT_SUPPORTED,
        Reason.SECRET_CONFLICT,
        Reason.TOKEN_REFUSED,
        Reason.WORKLOAD_UNREACHABLE,
        Reason.DATA_TOO_LARGE,
        Reason.JOIN_FAILED,
        Reason.JOIN_TIMED_OUT,
        Reason.PACKAGE_UNAVAILABLE,
        Reason.CHECKSUM_MISMATCH,
        Reason.MIRROR_UNREACHABLE,
        Reason.ETCD_QUORUM_LOST,
        Reason.SNAPSHOT_FAILED,
        Reason.CERTIFICATES_EXPIRING,
        Reason.CERTIFICATE_EXPIRED,
        Reason.VERSION_MISMATCH,
        Reason.PREFLIGHT_FAILED,
        *ErrorClass,
    )
)
"""Reasons that want somebody's eye; the others pass by themselves."""


def conditions_of(obj: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = (obj.get("status") or {}).get("conditions")
    return [c for c in listed if isinstance(c, Mapping)] if isinstance(listed, list) else []


def is_quiet(condition: Mapping[str, Any]) -> bool:
    """True if the condition has the value it has when all is well."""
    want = "False" if condition.get("type") in _TRUE_IS_NOTEWORTHY else "True"
    return condition.get("status") == want


def mood_of_condition(condition: Mapping[str, Any]) -> Mood:
    if condition.get("type") == "Paused" and condition.get("status") == "True":
        return Mood.PAUSED
    if is_quiet(condition):
        return Mood.GOOD
    if _holds_up(condition):
        return Mood.BAD
    return Mood.BAD if str(condition.get("reason", "")) in BAD_REASONS else Mood.BUSY


def _holds_up(condition: Mapping[str, Any]) -> bool:
    """Whether it names what a deletion waits for and what does not pass by itself."""
    reason = condition.get("reason")
    if condition.get("type") == SetCondition.SCALING_DOWN:
        return reason not in {Reason.SCALING_DOWN, Reason.DELETING}
    return condition.get("type") == MachineCondition.DELETING and reason in HELD_UP


def wants_an_eye(reason: str) -> bool:
    """Whether ``reason`` alone, of a Machine's own line, says that something is wrong."""
    return reason in BAD_REASONS or reason in HELD_UP


def _is_echo(condition: Mapping[str, Any]) -> bool:
    """Not Available since it is not Ready: the condition Ready says why."""
    return condition.get("type") == MachineCondition.AVAILABLE and condition.get("reason") == Reason.NOT_READY


def lines_of(conditions: Iterable[Mapping[str, Any]], all_of_them: bool) -> tuple[Branch, ...]:
    """One line per condition that is not quiet (or per condition)."""
    return tuple(
        Branch(
            name=str(c.get("type", "?")),
            mood=mood_of_condition(c),
            state=str(c.get("status", "Unknown")),
            reason=str(c.get("reason", "")),
            since=parse_time(c.get("lastTransitionTime")),
            message=str(c.get("message", "")),
            advice="" if mood_of_condition(c) is Mood.GOOD else advice_for(str(c.get("reason", ""))),
        )
        for c in conditions
        if all_of_them or not (is_quiet(c) or _is_echo(c))
    )


def mood_of(obj: Mapping[str, Any]) -> Mood:
    """The object as a whole: by its phase, its deletion and its conditions, the worst first."""
    status = obj.get("status") or {}
    if status.get("phase") == MachinePhase.FAILED or status.get("errorReason") or status.get("failureReason"):
        return Mood.BAD
    moods = {mood_of_condition(c) for c in conditions_of(obj)}
    for mood in (Mood.BAD, Mood.PAUSED):
        if mood in moods:
            return mood
    if obj["metadata"].get("deletionTimestamp") or Mood.BUSY in moods or not moods:
        return Mood.BUSY
    return Mood.GOOD
