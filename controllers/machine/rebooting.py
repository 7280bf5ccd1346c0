"""A MachineHealthCheck asks that the host be booted anew: have the provider do it, and say what became of it.

Called only for Machines of which one was ever asked for. The provider reboots once for each attempt, however often it
is called; that it has taken place is seen on the host that it lists.
"""

from __future__ import annotations

from dataclasses import replace

from api.conditions import MachineCondition, Reason
from controllers.kernel.actions import RebootHost
from controllers.kernel.conditions import Condition, find
from controllers.kernel.plan import Wait, steps
from controllers.kernel.refs import mapping
from controllers.kernel.remediation import (
    RebootRequest,
    is_being_rebooted,
    is_selected_for_deletion,
    reboot_request_of,
)
from controllers.machine import status
from controllers.machine.decision import LONGEST_MESSAGE, Cause, Decision, call_is_due, failure_message, reboot_attempt
from controllers.machine.observe import Observed
from controllers.machine.update import identity_of
from providers.base.contract import Host, HostState
from providers.base.errors import ErrorClass

LOOK = 2.0
"""Seconds between two looks at a host that boots."""
_TYPE = MachineCondition.HOST_REBOOTED
_MAY_BE = frozenset({HostState.RUNNING, HostState.STOPPED})
"""One that comes up, is changed or goes is left to that."""


def with_reboot(observed: Observed, decision: Decision) -> Decision:
    """``decision``, and what is to be done and said of the reboot."""
    asked, host = reboot_request_of(observed.machine), observed.host
    if asked is None:
        return decision
    if host is not None and host.rebooted == asked.attempt:
        return _done(observed, decision, asked, host)
    wanted = is_being_rebooted(observed.machine, observed.now) and not is_selected_for_deletion(observed.status)
    if not wanted or host is None or observed.replaced_host:
        return replace(decision, extra=(*decision.extra, *status.as_reported(observed, _TYPE)))
    return _under_way(observed, decision, asked, host)


def _done(observed: Observed, decision: Decision, asked: RebootRequest, host: Host) -> Decision:
    text = f"host {host.name} was booted anew (reboot {asked.number})"
    before = find(observed.status.get("conditions"), _TYPE)
    is_news = before is None or (before.get("status"), before.get("message")) != ("True", text)
    return replace(
        decision,
        extra=(*decision.extra, Condition(_TYPE, "True", Reason.REBOOTED, text)),
        news=decision.news or (Cause(Reason.REBOOTED, text) if is_news else None),
    )


def _under_way(observed: Observed, decision: Decision, asked: RebootRequest, host: Host) -> Decision:
    attempt = reboot_attempt(observed)
    text = f"the provider was asked to boot host {host.name} anew (reboot {asked.number})"
    reason = Reason.REBOOTING
    if attempt is not None and attempt.error_class is ErrorClass.UNSUPPORTED_CHANGE:
        unsupported = Condition(_TYPE, "False", Reason.REBOOT_UNSUPPORTED, attempt.message[:LONGEST_MESSAGE])
        return replace(decision, extra=(*decision.extra, unsupported))
    if attempt is not None:
        reason, text = Reason.REBOOT_FAILED, failure_message(attempt)
    why = f"reboot {asked.number} of host {host.name}: {_why(observed)}"
    due = host.state in _MAY_BE and call_is_due(attempt, observed)
    after = min(LOOK, decision.outcome.after) if isinstance(decision.outcome, Wait) else LOOK
    return replace(
        decision,
        steps=(*decision.steps, *steps([_reboot(observed, asked, host, why)] if due else [])),
        outcome=Wait(after, why),
        extra=(*decision.extra, Condition(_TYPE, "False", reason, text)),
        warning=decision.warning or (Cause(reason, text) if reason is Reason.REBOOT_FAILED else None),
    )


def _reboot(observed: Observed, asked: RebootRequest, host: Host, why: str) -> RebootHost:
    config = observed.desired.request.config if observed.desired.request else {}
    return RebootHost(observed.ref, identity_of(observed), host, config, asked.attempt, why)


def _why(observed: Observed) -> str:
    found = find(observed.status.get("conditions"), MachineCondition.HEALTH_CHECK_SUCCEEDED)
    return str(mapping(found).get("message") or "its Machine is unhealthy")
