"""Conditions of a Machine that answer one question each: Ready, Available, joined, config found, metadata allowed.

Is the Machine Ready? Its Node's word, if its host is well and all readiness gates hold.

Is the Machine Available? Ready for ``spec.minReadySeconds`` without a break (CAPI v1beta2).

Has the host joined as a Node? If not: at which step it is, or why it fails, in its own signed words.

A report says more than silence, and the time limit more than a report: a host that keeps trying must not keep a
MachineHealthCheck from acting.

Which labels and taints of the Machine were left off its Node, and why: the condition NodeMetadataAllowed.

Does the provider find in its cloud what the Machine's config names? Asked while the host is not as asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from api.conditions import MachineCondition, Reason
from controllers.bootstrap import failure as failures
from controllers.kernel.conditions import Condition, find, is_true, parse_time, some_of
from controllers.kernel.host_report import Report
from controllers.kernel.provider_config import found_condition
from controllers.kernel.refs import Obj
from controllers.kernel.view import ConfigChecked, LiveCheck, NotChecked
from controllers.machine import node_takeover, unreachable
from controllers.machine.decision import Cause, Decision, condition
from controllers.machine.machine_node import Conflict, Unlinked
from controllers.machine.observe import Observed
from controllers.machine.phases import Stage

LONGEST_WORDS = 1000
"""Characters of a Node's own words in a condition."""


def node_is_ready(node: Obj | None) -> bool:
    return node is not None and is_true((node.get("status") or {}).get("conditions"), "Ready")


def node_condition(observed: Observed) -> Condition:
    """NodeReady: what the Node itself says, or why there is none."""
    if observed.unreachable is not None:
        return unreachable.node_condition(observed)
    type_, link = MachineCondition.NODE_READY, observed.link
    if isinstance(link, Conflict):
        return condition(type_, False, Reason.NODE_CONFLICT, link.why)
    if observed.node_takeover is not None:
        return condition(type_, False, Reason.NODE_TAKEN_OVER, node_takeover.message(observed.node_takeover))
    if isinstance(link, Unlinked):
        reference = observed.status.get("nodeRef")
        if isinstance(reference, Mapping) and observed.provider_id and not observed.replaced_host:
            return condition(type_, False, Reason.NODE_MISSING, f"Node {reference.get('name')} is gone")
        return condition(type_, False, Reason.WAITING_FOR_NODE, link.why or "no Node has joined yet")
    ready = find((link.node.get("status") or {}).get("conditions"), "Ready")
    if ready is None:
        return condition(type_, None, Reason.NODE_NOT_READY, "the Node has not said yet whether it is ready")
    if ready.get("status") == "True":
        return condition(type_, True, Reason.READY)
    unknown = ready.get("status") == "Unknown"
    return condition(type_, None if unknown else False, Reason.NODE_NOT_READY, _words(observed, ready))


def _words(observed: Observed, ready: Mapping[str, Any]) -> str:
    """Why the Node is not ready. The words of the first time stay as long as the reason does.

    A kubelet's message counts seconds ("PLEG was last seen active 3m2s ago"), and each count would cost a write.
    """
    reason = str(ready.get("reason") or "NotReady")
    node_ready = find(observed.status.get("conditions"), MachineCondition.NODE_READY)
    before = str(node_ready.get("message") or "") if node_ready else ""
    if before.partition(":")[0] == reason:
        return before
    return f"{reason}: {ready.get('message') or ''}".rstrip(": ")[:LONGEST_WORDS]


def ready_condition(observed: Observed, decision: Decision, infrastructure: Condition | None) -> Condition:
    """Ready: the first thing that is in the way, else True.

    An unreachable provider is not in the way: the Node speaks for itself (a provider's outage must not make all
    Machines look bad at once).
    """
    type_ = MachineCondition.READY
    if observed.deleting:
        return _going(decision)
    if decision.failure is not None:
        reason = (
            infrastructure.reason if infrastructure and infrastructure.status == "False" else decision.failure.reason
        )
        return condition(type_, False, reason, decision.failure.message)
    if decision.stage is Stage.REPLACING:
        return condition(type_, False, Reason.REPLACING, "the host is replaced by a new one")
    runs = infrastructure is None or infrastructure.status != "False"
    failure = join_failure(observed)
    if failure is not None and (runs or (infrastructure is not None and infrastructure.reason == Reason.PROVISIONING)):
        # A host that speaks is newer news than a list in which it still boots.
        return condition(type_, False, failure.reason, failure.message)
    if infrastructure is not None and infrastructure.status == "False":
        return condition(type_, False, infrastructure.reason, infrastructure.message)
    if observed.unreachable is not None:
        return unreachable.may_be_ready(observed)
    node = node_condition(observed)
    if node.status != "True":
        return condition(type_, False, node.reason, node.message)
    gate = _failing_gate(observed)
    if gate:
        return condition(type_, False, Reason.READINESS_GATE_FAILED, gate)
    return condition(type_, True, Reason.READY)


def _going(decision: Decision) -> Condition:
    """What the condition Deleting says: tables and owners look at Ready alone, and have to name the cause."""
    deleting = next((one for one in decision.extra if one.type == MachineCondition.DELETING), None)
    if deleting is None:
        return condition(MachineCondition.READY, False, Reason.DELETING, "the Machine is being deleted")
    return condition(MachineCondition.READY, False, deleting.reason, deleting.message)


def _failing_gate(observed: Observed) -> str:
    gates = observed.spec.get("readinessGates")
    for gate in gates if isinstance(gates, list) else ():
        name = gate.get("conditionType") if isinstance(gate, Mapping) else None
        if not name:
            continue
        want = "False" if gate.get("polarity") == "Negative" else "True"
        found = find(observed.status.get("conditions"), name)
        if found is None or found.get("status") != want:
            return f"condition {name} is {found.get('status') if found else 'absent'}, readinessGates ask for {want}"
    return ""


def seconds_until_available(observed: Observed, ready: Condition) -> float:
    """Until time alone makes it Available; 0 if it is, or if something else than time is missing."""
    if ready.status != "True":
        return 0.0
    before = find(observed.status.get("conditions"), MachineCondition.READY)
    was_ready = before is not None and before.get("status") == "True"
    since = (parse_time(before.get("lastTransitionTime")) if before and was_ready else None) or observed.now
    return max((since + _min_ready(observed) - observed.now).total_seconds(), 0.0)


def available_condition(observed: Observed, ready: Condition) -> Condition:
    """Changes together with Ready, so that it costs no write of its own where ``minReadySeconds`` is 0."""
    type_ = MachineCondition.AVAILABLE
    if ready.status != "True":
        return condition(type_, None if ready.status == "Unknown" else False, Reason.NOT_READY)
    if seconds_until_available(observed, ready) > 0:
        text = f"not yet ready for {_min_ready(observed).total_seconds():.0f} s"
        return condition(type_, False, Reason.WAITING_FOR_MIN_READY_SECONDS, text)
    return condition(type_, True, Reason.AVAILABLE)


def _min_ready(observed: Observed) -> timedelta:
    """What is no number of seconds is 0, as it is where the field is absent: the CRD lets none such in."""
    asked = observed.spec.get("minReadySeconds")
    return timedelta(
        seconds=asked if isinstance(asked, int) and not isinstance(asked, bool) and 0 < asked < 2**31 else 0
    )


_UNDER_WAY = frozenset({Reason.WAITING_FOR_NODE, Reason.BOOTSTRAPPING, Reason.JOINED})


def joined_condition(observed: Observed, node_name: str) -> Condition | None:
    """NodeJoined; None of a Machine whose host joins by other means. ``node_name`` "": it has no Node."""
    found = observed.bootstrapping
    if found is None or not found.asked:
        return None
    type_ = MachineCondition.NODE_JOINED
    if node_name:
        return condition(type_, True, Reason.JOINED, f"as Node {node_name}")
    failed = join_failure(observed)
    if failed is not None:
        return condition(type_, False, failed.reason, failed.message)
    report = _report(observed)
    if report is not None:
        return condition(type_, False, Reason.BOOTSTRAPPING, report.progress)
    return condition(type_, False, Reason.WAITING_FOR_NODE, "no Node has joined yet")


def join_failure(observed: Observed) -> Cause | None:
    """Why there is no Node, if the host or the clock says so."""
    found = observed.bootstrapping
    if found is None or not found.asked or observed.node is not None or observed.deleting:
        return None
    report = _report(observed)
    words = failures.in_words(report) if report is not None and report.failed else ""
    if _is_late(observed):
        return Cause(
            Reason.JOIN_TIMED_OUT, _too_late(observed, words or (report.progress if report is not None else ""))
        )
    return Cause(failures.classify(report).reason, words) if report is not None and words else None


def join_is_news(observed: Observed) -> bool:
    """Whether the host or the clock says what the status does not say yet: that is worth a write at once."""
    before = find(observed.status.get("conditions"), MachineCondition.NODE_JOINED)
    if observed.node is not None:
        return before is not None and before.get("reason") not in _UNDER_WAY  # what failed has succeeded since
    report = joined_condition(observed, "")
    if report is None or report.reason == Reason.WAITING_FOR_NODE:
        return False
    return before is None or (before.get("reason"), before.get("message")) != (report.reason, report.message)


def _report(observed: Observed) -> Report | None:
    """The report of this host: that of a replaced host counts no more."""
    found = observed.bootstrapping
    return (
        found.reads.report if found is not None and observed.host is not None and not _has_old_host(observed) else None
    )


def _has_old_host(observed: Observed) -> bool:
    return (
        bool(observed.replaced_host)
        and observed.host is not None
        and (observed.host.provider_id == observed.replaced_host)
    )


def _is_late(observed: Observed) -> bool:
    found, host = observed.bootstrapping, observed.host
    if found is None or host is None or host.created_at is None or _has_old_host(observed):
        return False
    return observed.now >= host.created_at + found.join_timeout


def _too_late(observed: Observed, last: str) -> str:
    found, host = observed.bootstrapping, observed.host
    minutes = found.join_timeout.total_seconds() / 60 if found is not None else 0.0
    text = f"host {host.name if host is not None else ''} has not joined within {minutes:g} minutes of its creation"
    if last:
        return f"{text}; last: {last}"
    shown = observed.reads.console
    if shown:
        return f"{text} and said nothing; last on its console: {shown}"
    return f"{text} and said nothing; look at its console, or delete the Machine"


_MOST = 5


def node_metadata_condition(observed: Observed) -> Condition | None:
    """None: all that the Machine asks for may reach its Node."""
    left_off = observed.left_off
    if not left_off:
        return None
    text = (
        f"{some_of(left_off, _MOST)} may not reach its Node: the administrator allows such labels by "
        "--allow-node-labels, and taints by --allow-node-taints"
    )
    return condition(MachineCondition.NODE_METADATA_ALLOWED, False, Reason.NOT_ALLOWED, text)


CONFIG_TYPE = MachineCondition.CONFIGURATION_VALID


def config_found_condition(observed: Observed) -> Condition | None:
    """None: there is nothing to say. Only what is wrong is said, and later on that it is so no more.

    Said of each Machine that is well, it would cost a write whenever the answer comes late.
    """
    before = find(observed.status.get("conditions"), CONFIG_TYPE)
    if observed.problems:
        return None  # its schema's word goes first
    live = _found(observed)
    if isinstance(live, NotChecked):
        return None if before is None else _as_reported(before)
    condition = found_condition(CONFIG_TYPE, live, "spec.")
    return None if before is None and condition is not None and condition.status == "True" else condition


def config_is_news(observed: Observed) -> bool:
    """Whether something is wrong that the status does not say yet."""
    reported, before = config_found_condition(observed), find(observed.status.get("conditions"), CONFIG_TYPE)
    return (
        reported is not None
        and reported.status == "False"
        and (before is None or before.get("message") != reported.message)
    )


def _found(observed: Observed) -> LiveCheck:
    """A host that was made of this very config proves that all it names was there."""
    host = observed.host
    if host is not None and host.spec_hash == observed.desired.spec_hash:
        return ConfigChecked()
    return observed.reads.live


def _as_reported(before: object) -> Condition:
    assert isinstance(before, dict)
    reason = before.get("reason") or Reason.INVALID_CONFIGURATION
    return Condition(CONFIG_TYPE, before.get("status", "Unknown"), str(reason), before.get("message", ""))
