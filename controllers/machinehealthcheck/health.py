"""Is this Machine unhealthy? One of five answers; each Machine gets exactly one.

    its cluster is lost > by annotation > failed for good > no Node yet > its Node is gone > a condition of the Node
    > one of the Machine

A Machine that waits for its provider (quota, stock, an unreachable API) or for its turn is not unhealthy: another one
would wait alike (eks-anywhere#4709 deletes and makes it again every ten minutes).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from api import names
from api.conditions import MachineCondition, Reason
from api.durations import format_duration
from controllers.kernel.conditions import find, parse_time
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import Obj, annotations_of
from controllers.machinehealthcheck.spec import HealthCheckSpec, Signal
from providers.base.errors import ErrorClass

NODE_GRACE = timedelta(seconds=30)
"""A Node that was deleted may come back: the kubelet registers again when it is restarted."""
DAWN = datetime.min.replace(tzinfo=UTC)
_PROVIDERS_TURN = frozenset((*ErrorClass, Reason.HOSTS_IN_FLIGHT, Reason.CLASS_HOSTS_IN_FLIGHT))
_ANOTHER_SPEC = frozenset({names.ErrorReason.INVALID_CONFIGURATION, names.ErrorReason.UNSUPPORTED_CHANGE})


@dataclass(frozen=True, slots=True)
class Healthy:
    """It has a Node, and nothing looks bad."""


@dataclass(frozen=True, slots=True)
class Starting:
    """It has no Node yet and may take longer. ``look_at``: when that would be too long; None: never."""

    why: str
    look_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Suspect:
    """Something looks bad, not for long enough. It counts as bad, and nothing is done about it before ``look_at``."""

    why: str
    look_at: datetime


@dataclass(frozen=True, slots=True)
class Unhealthy:
    """``asked``: by a person, so no freeze holds it up. ``incurable``: another Machine of this spec would fail alike.

    ``alone``: it speaks of this Machine only, not of what it may share with others (its Node's network, an API).
    ``stubborn``: a replacement is not known to help, so the next one waits for longer.
    """

    reason: str
    message: str
    asked: bool = False
    incurable: bool = False
    alone: bool = False
    stubborn: bool = False


@dataclass(frozen=True, slots=True)
class Unseen:
    """Its cluster is lost, so nobody knows. ``bad``: it was unhealthy when it was last seen, which still counts."""

    why: str
    bad: bool


Verdict = Healthy | Starting | Suspect | Unhealthy | Unseen


@dataclass(frozen=True, slots=True)
class Trust:
    """Since when the Machines and the Nodes have been followed without an outage: no clock begins before.

    What a Machine says of its Node was not seen while the Nodes were not: ``machines`` is never before ``nodes``.
    """

    now: datetime
    machines: datetime
    nodes: datetime


def judge(machine: MachineFacts, node: Obj | None, desired: HealthCheckSpec, trust: Trust) -> Verdict:
    if names.REMEDIATE_ANNOTATION in annotations_of(machine.body):
        message = f"the annotation {names.REMEDIATE_ANNOTATION} asks for it"
        return Unhealthy(Reason.HAS_REMEDIATE_ANNOTATION, message, asked=True, alone=True)
    if machine.failed:
        return _failed(machine)
    if not machine.node_name:
        return _without_node(machine, desired, trust)
    if node is None:
        return _node_gone(machine, trust)
    conditions = _conditions(node)
    found = _signalled(desired.node_signals, conditions, "Node", trust.now, trust.nodes)
    found = found or _signalled(
        desired.machine_signals, _conditions(machine.body), "Machine", trust.now, trust.machines
    )
    return found or Healthy()


def is_bad(verdict: Verdict) -> bool:
    return isinstance(verdict, Suspect | Unhealthy) or (isinstance(verdict, Unseen) and verdict.bad)


def _failed(machine: MachineFacts) -> Verdict:
    status = machine.body.get("status") or {}
    reasons = {str(status.get(field)) for field in ("errorReason", "failureReason")}
    incurable = not reasons.isdisjoint(_ANOTHER_SPEC)
    reason = machine.reason or next(iter(sorted(reasons - {"None"})), "")
    message = f"failed for good: {reason}: {machine.message}".rstrip(": ")
    return Unhealthy(Reason.MACHINE_FAILED, message, incurable=incurable, alone=True, stubborn=True)


def _joined_too_late(machine: MachineFacts, desired: HealthCheckSpec, trust: Trust) -> Verdict | None:
    """For a Machine without a Node one condition counts: that its host has not joined in time."""
    joined = find((machine.body.get("status") or {}).get("conditions"), MachineCondition.NODE_JOINED)
    if joined is None or joined.get("reason") != Reason.JOIN_TIMED_OUT:
        return None
    asked = tuple(signal for signal in desired.machine_signals if signal.type == MachineCondition.NODE_JOINED)
    return _signalled(asked, _conditions(machine.body), "Machine", trust.now, trust.machines)


def _without_node(machine: MachineFacts, desired: HealthCheckSpec, trust: Trust) -> Verdict:
    late = _joined_too_late(machine, desired, trust)
    if late is not None:
        return late
    status = machine.body.get("status") or {}
    host = find(status.get("conditions"), MachineCondition.INFRASTRUCTURE_READY)
    if host is not None and host.get("status") != "True" and host.get("reason") in _PROVIDERS_TURN:
        return Starting(f"it waits for its provider: {host.get('reason')}")
    if desired.startup is None:
        return Starting("no Node has joined yet")
    deadline = max(machine.created, _clock(status, host), trust.machines) + desired.startup
    if trust.now < deadline:
        return Starting("no Node has joined yet", deadline)
    message = f"no Node joined within {_span(desired.startup)}"
    return Unhealthy(Reason.NODE_STARTUP_TIMEOUT, message, stubborn=True)


def _clock(status: Mapping[str, Any], host: Mapping[str, Any] | None) -> datetime:
    """When the last wait for something else than the Node was over: the host runs, or trouble in making it passed."""
    ready = host is not None and host.get("status") == "True"
    text = host.get("lastTransitionTime") if host is not None and ready else status.get("lastUpdated")
    return _time(text) or DAWN


def _node_gone(machine: MachineFacts, trust: Trust) -> Verdict:
    """Believed when the Machine's own controller says so too: a Node that is not seen may only not be seen yet."""
    condition = find((machine.body.get("status") or {}).get("conditions"), MachineCondition.NODE_READY)
    why = f"Node {machine.node_name} is gone"
    since = (
        _time(condition.get("lastTransitionTime"))
        if condition and condition.get("reason") == Reason.NODE_MISSING
        else None
    )
    deadline = (trust.now if since is None else max(since, trust.nodes)) + NODE_GRACE
    return Unhealthy(Reason.NODE_MISSING, why) if trust.now >= deadline else Suspect(why, deadline)


def _signalled(
    signals: Iterable[Signal], conditions: Iterable[Mapping[str, Any]], whose: str, now: datetime, trusted: datetime
) -> Verdict | None:
    """The first signal that has lasted long enough, else the one that will first."""
    listed, waiting = list(conditions), []
    for signal in signals:
        condition = find(listed, signal.type)
        if condition is None or condition.get("status") != signal.status:
            continue
        text = f"condition {signal.type} of the {whose} is {signal.status}"
        since = _time(condition.get("lastTransitionTime")) or now
        deadline = max(since, trusted) + signal.timeout
        if now >= deadline:
            reason = Reason.UNHEALTHY_NODE if whose == "Node" else Reason.UNHEALTHY_MACHINE
            return Unhealthy(reason, f"{text} for {_span(signal.timeout)} or longer")
        waiting.append(Suspect(text, deadline))
    return min(waiting, key=lambda suspect: suspect.look_at, default=None)


def _conditions(body: Obj) -> list[Mapping[str, Any]]:
    status = body.get("status")
    listed = status.get("conditions") if isinstance(status, Mapping) else None
    return [c for c in listed if isinstance(c, Mapping)] if isinstance(listed, list) else []


def _time(text: object) -> datetime | None:
    return parse_time(text) if isinstance(text, str) else None


def _span(duration: timedelta) -> str:
    return format_duration(duration)
