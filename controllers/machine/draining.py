"""Drain the Machine's Node before its host goes or restarts, unless there is a reason not to."""

from __future__ import annotations

from datetime import datetime

from api import names
from api.conditions import MachineCondition, Reason
from controllers.drain.assess import Assessment, Drained, Draining, NotDrained, assess
from controllers.kernel.conditions import Condition
from controllers.kernel.refs import annotations_of
from controllers.machine import unreached
from controllers.machine.decision import Failure, condition
from controllers.machine.observe import Observed
from providers.base.contract import HostState

_NO_DRAIN = (names.NO_DRAIN_ANNOTATION, names.OWN_NO_DRAIN_ANNOTATION)


def drain(observed: Observed, started_at: datetime | None, why: str) -> Assessment:
    """How far the drain is. A Machine without a Node has nothing to drain."""
    given_up = unreached.gives_up_node(observed)
    if given_up:
        return Drained(given_up)
    node, host = observed.node, observed.host
    if node is None:
        return Drained()
    for annotation in _NO_DRAIN:
        if annotation in observed.annotations:
            return Drained(f"the annotation {annotation} says so")
    if names.NODE_SKIP_EVICTION_ANNOTATION in annotations_of(node):
        return Drained(f"the Node's annotation {names.NODE_SKIP_EVICTION_ANNOTATION} says so")
    if host is not None and host.state in {HostState.STOPPED, HostState.FAILED}:
        return Drained(f"host {host.name} does not run (state {host.state}): nobody there could stop pods")
    return assess(
        Draining(
            machine_uid=observed.uid,
            node=node,
            pods=observed.pods,
            budgets=observed.budgets,
            now=observed.now,
            started_at=started_at,
            timeout=observed.drain_timeout,
            why=why,
        )
    )


def blocked_warning(assessment: NotDrained) -> Failure | None:
    """Worth an Event: nothing moves before somebody else acts."""
    return Failure(Reason.DRAIN_BLOCKED, assessment.why) if assessment.blocked else None


def drained_condition(assessment: Assessment) -> Condition:
    match assessment:
        case NotDrained(why=why, blocked=blocked):
            reason = Reason.DRAIN_BLOCKED if blocked else Reason.DRAINING
            return condition(MachineCondition.DRAINED, False, reason, why)
        case Drained(skipped=skipped) if skipped:
            return condition(MachineCondition.DRAINED, True, Reason.DRAIN_SKIPPED, skipped)
        case Drained():
            return condition(MachineCondition.DRAINED, True, Reason.DRAINED)
