"""Has the host joined as a Node? If not: at which step it is, or why it fails, in its own signed words.

A report says more than silence, and the time limit more than a report: a host that keeps trying must not keep a
MachineHealthCheck from acting.
"""

from __future__ import annotations

from api.conditions import MachineCondition, Reason
from controllers.bootstrap import failure as failures
from controllers.kernel.conditions import Condition, find
from controllers.kernel.host_report import Report
from controllers.machine.decision import Cause, condition
from controllers.machine.observe import Observed

_UNDER_WAY = frozenset({Reason.WAITING_FOR_NODE, Reason.BOOTSTRAPPING, Reason.JOINED})


def decide(observed: Observed, node_name: str) -> Condition | None:
    """NodeJoined; None of a Machine whose host joins by other means. ``node_name`` "": it has no Node."""
    found = observed.bootstrapping
    if found is None or not found.asked:
        return None
    type_ = MachineCondition.NODE_JOINED
    if node_name:
        return condition(type_, True, Reason.JOINED, f"as Node {node_name}")
    failed = failure(observed)
    if failed is not None:
        return condition(type_, False, failed.reason, failed.message)
    report = _report(observed)
    if report is not None:
        return condition(type_, False, Reason.BOOTSTRAPPING, report.progress)
    return condition(type_, False, Reason.WAITING_FOR_NODE, "no Node has joined yet")


def failure(observed: Observed) -> Cause | None:
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


def is_news(observed: Observed) -> bool:
    """Whether the host or the clock says what the status does not say yet: that is worth a write at once."""
    before = find(observed.status.get("conditions"), MachineCondition.NODE_JOINED)
    if observed.node is not None:
        return before is not None and before.get("reason") not in _UNDER_WAY  # what failed has succeeded since
    report = decide(observed, "")
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
