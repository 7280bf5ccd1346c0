"""Empty the Machine's Node before its host goes or restarts, unless there is a reason not to."""

from __future__ import annotations

from datetime import datetime

from api import names
from api.conditions import MachineCondition, Reason
from controllers.drain.assess import Assessment, Drained, Draining, NotDrained, assess, is_out_of_reach
from controllers.drain.volumes import Detaching, waits_for
from controllers.kernel.conditions import Condition, format_time
from controllers.kernel.refs import annotations_of
from controllers.machine import clocks, unreachable
from controllers.machine.decision import Cause, condition
from controllers.machine.observe import Observed
from providers.base.contract import HostState

_NO_DRAIN = (names.NO_DRAIN_ANNOTATION, names.OWN_NO_DRAIN_ANNOTATION)
_NO_VOLUME_WAIT = (names.NO_VOLUME_WAIT_ANNOTATION, names.OWN_NO_VOLUME_WAIT_ANNOTATION)


def drain(observed: Observed, started_at: datetime | None, why: str) -> Assessment:
    """How far the drain is. A Machine without a Node has nothing to drain."""
    given_up = unreachable.gives_up_node(observed)
    if given_up:
        return Drained(given_up, out_of_reach=True)
    node, host, deletion_guards = observed.node_with_pods, observed.host, observed.deletion_guards
    if node is None:
        return Drained()
    if deletion_guards.last_control_plane:
        return Drained("it is the last Machine of its control plane: nobody would be left to drain", out_of_reach=True)
    for annotation in _NO_DRAIN:
        if annotation in observed.annotations:
            return Drained(f"the annotation {annotation} says so")
    if names.NODE_SKIP_EVICTION_ANNOTATION in annotations_of(node):
        return Drained(f"the Node's annotation {names.NODE_SKIP_EVICTION_ANNOTATION} says so")
    if host is not None and host.state in {HostState.STOPPED, HostState.FAILED}:
        text = f"host {host.name} does not run (state {host.state}): nobody there could stop pods"
        return Drained(text, out_of_reach=True)
    return assess(
        Draining(
            machine_uid=observed.uid,
            node=node,
            now=observed.now,
            drain_context=observed.drain_context,
            started_at=started_at,
            deadlines=observed.drain_deadlines,
            why=why,
        )
    )


def attached_volumes(observed: Observed, drained: Drained, started_at: datetime | None) -> str:
    """Volumes to wait for before the host may go, by name; "" if there are none, or a reason not to wait."""
    node = observed.node_with_pods
    if node is None or drained.out_of_reach or is_out_of_reach(node, observed.now):
        return ""
    if any(annotation in observed.annotations for annotation in _NO_VOLUME_WAIT):
        return ""
    timeout = observed.timeout("nodeVolumeDetachTimeout")
    return waits_for(Detaching(node, observed.drain_context, observed.now, started_at, timeout))


def drain_end(observed: Observed) -> str:
    """What ends a drain that nothing can go on with, and when: ``; nodeDrainTimeout ends the drain at …``.

    Drain begun at 10:00 with nodeDrainDeleteAfter 5m and nodeDrainTimeout 1h: pods are deleted at 10:05.
    """
    since, deadlines = clocks.read(observed, clocks.DRAIN), observed.drain_deadlines
    ends = [
        (since + after, text)
        for after, text in (
            (deadlines.delete, "nodeDrainDeleteAfter deletes these pods at"),
            (deadlines.force, "nodeDrainForceAfter deletes these pods by force at"),
            (deadlines.give_up, "nodeDrainTimeout ends the drain at"),
        )
        if since is not None and after is not None
    ]
    coming = [(moment, text) for moment, text in ends if moment > observed.now]
    if coming:
        moment, text = min(coming)
        return f"; {text} {format_time(moment)}"
    return "" if since is None else "; no nodeDrainTimeout is set, so this waits until then"


def warning(assessment: NotDrained) -> Cause | None:
    """Worth an Event: nothing moves before somebody else acts; or, as a drain begins, what will end with it."""
    if assessment.blocked:
        return Cause(Reason.DRAIN_BLOCKED, assessment.why)
    return Cause(Reason.DRAIN_LOSES, f"this ends with the drain: {assessment.lost}") if assessment.lost else None


def drained_condition(assessment: Assessment) -> Condition:
    match assessment:
        case NotDrained(why=why, blocked=blocked):
            reason = Reason.DRAIN_BLOCKED if blocked else Reason.DRAINING
            return condition(MachineCondition.DRAINED, False, reason, why)
        case Drained(skipped=skipped) if skipped:
            return condition(MachineCondition.DRAINED, True, Reason.DRAIN_SKIPPED, skipped)
        case Drained():
            return condition(MachineCondition.DRAINED, True, Reason.DRAINED)
