"""Decide about one Machine. Read it from the top: the first that applies decides."""

from __future__ import annotations

from dataclasses import replace

from controllers.kernel.actions import Action, Event, Patch
from controllers.kernel.plan import NOTHING, Blocked, Outcome, Plan, Settled, Wait, steps
from controllers.machine import config_problems, deletion, host, rebooting, status
from controllers.machine.decision import Decision
from controllers.machine.machine_node import Conflict, sync_metadata
from controllers.machine.observe import Observed
from controllers.machine.phases import Stage
from controllers.machine.update import delete_late_nodes

QUIET_REQUEUE = 0.5
"""Seconds until the next look at a Machine whose report is held back."""


def plan(observed: Observed) -> Plan:
    """What to do now about ``observed``; NOTHING if all is as it should be."""
    if observed.paused:
        return _paused(observed)
    if observed.deleting:
        return _deleting(observed)
    request = observed.desired.request
    if request is None or observed.problems:
        return _living(observed, config_problems.decide(observed))
    decision = host.decide(observed, request)
    return _living(observed, rebooting.with_reboot(observed, decision) if observed.status.get("reboot") else decision)


def _paused(observed: Observed) -> Plan:
    patch = status.write_paused(observed)
    return Plan(steps([patch] if patch else []), notes=(observed.paused,))


def _deleting(observed: Observed) -> Plan:
    decision = deletion.decide(observed)
    if decision is None:
        return NOTHING
    if deletion.is_final(decision):
        return Plan(decision.steps, decision.outcome)
    return _assembled(observed, decision, status.write(observed, decision), None)


def _living(observed: Observed, decision: Decision) -> Plan:
    written = _with_status(observed, decision)
    return replace(written, steps=(*written.steps, *delete_late_nodes(observed)))


def _with_status(observed: Observed, decision: Decision) -> Plan:
    metadata = _metadata(observed, decision)
    if _changes_spec(decision):
        # The status is guarded by the version that this write changes: it is the next reconcile's.
        return Plan(decision.steps, decision.outcome)
    if metadata is None and status.is_quiet(observed, decision):
        return Plan(
            decision.steps,
            _sooner(decision.outcome),
            ("its status waits: soon there is more to say",),
        )
    return _assembled(observed, decision, status.write(observed, decision), metadata)


def _assembled(observed: Observed, decision: Decision, report: Patch | None, metadata: Patch | None) -> Plan:
    """Status first: what it records (ownership, clocks, a replacement) has to be there before the deed."""
    before: list[Action] = [report] if report else []
    reported: list[Action] = []
    if report and decision.warning and status.reason_is_new(observed, decision):
        reported.append(Event(observed.ref, "Warning", str(decision.warning.reason), decision.warning.message))
    if report and decision.news:
        reported.append(Event(observed.ref, "Normal", str(decision.news.reason), decision.news.message))
    after: list[Action] = [metadata] if metadata else []
    outcome = _when_available(observed, decision)
    if isinstance(observed.link, Conflict) and not observed.deleting:
        outcome = Blocked(observed.link.why)
    return Plan((*steps(before, [*reported, *after]), *decision.steps), outcome)


def _metadata(observed: Observed, decision: Decision) -> Patch | None:
    request = observed.desired.request
    node = observed.own_node
    if node is None or request is None or decision.stage is Stage.REPLACING or observed.is_bound_elsewhere:
        return None
    return sync_metadata(node, observed.applied_node_metadata, request.node)


def _changes_spec(decision: Decision) -> bool:
    return any(
        isinstance(action, Patch) and action.target.kind.name == "Machine" and not action.subresource
        for step in decision.steps
        for action in step
    )


def _when_available(observed: Observed, decision: Decision) -> Outcome:
    """A Machine that only has to stay Ready for a while is looked at when the while is over."""
    seconds = status.seconds_to_available(observed, decision)
    match decision.outcome:
        case Settled() if seconds:
            return Wait(seconds, "it is Ready, but not yet for minReadySeconds")
        case Wait(after=after, why=why) if seconds:
            return Wait(min(after, seconds), why)
    return decision.outcome


def _sooner(outcome: Outcome) -> Outcome:
    """A held-back report must come even if nothing else happens."""
    if isinstance(outcome, Wait):
        return Wait(min(outcome.after, QUIET_REQUEUE), outcome.why)
    return Wait(QUIET_REQUEUE, "the provider's next list tells more of its host")
