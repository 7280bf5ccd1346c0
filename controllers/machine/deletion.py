"""Let a Machine go: hooks, drain, host, Node, and last of all the finalizer.

It never gets stuck on a bad spec: what counts is whether the provider still shows a host for this UID
(machine-controller#131, #224, #1015: a finalizer that no valid config can lift). But as long as nobody can say that
there is no host, the Machine stays: a leaked host costs money and nobody would know of it.
"""

from __future__ import annotations

from dataclasses import replace

from api import names
from api.conditions import MachineCondition, Reason
from controllers.drain.assess import REQUEUE_AFTER, Drained, NotDrained
from controllers.kernel.actions import Action, Delete, Event, Patch
from controllers.kernel.conditions import Condition
from controllers.kernel.hooks import PRE_DRAIN, PRE_TERMINATE, hook_of
from controllers.kernel.plan import Blocked, Outcome, Wait, steps
from controllers.kernel.refs import NODE, ref_of
from controllers.kernel.view import HostAbsent, HostPresent, HostUnknown
from controllers.machine import bootstrap_data, clocks, deletion_guards, status, unreachable
from controllers.machine.decision import (
    Cause,
    Decision,
    call_is_due,
    call_outcome,
    condition,
    deletion_attempt,
    failure_message,
    infrastructure,
)
from controllers.machine.draining import attached_volumes, drain, drain_end, drained_condition, warning
from controllers.machine.observe import Observed
from controllers.machine.phases import Stage
from controllers.machine.polling import FIRST_LOOK, next_requeue
from controllers.machine.update import delete_host
from providers.base.contract import Host, HostState

IN_FLIGHT_LOOK = 1.0
"""Seconds until the next look; the end of the call wakes the Machine earlier."""
OURS = frozenset({names.MACHINE_FINALIZER, *names.LEGACY_MACHINE_FINALIZERS})
_AS_PLANNED = frozenset(
    (
        Reason.DELETING_HOST,
        Reason.DELETING_NODE,
        Reason.DRAINING,
        Reason.WAITING_FOR_HOOK,
        Reason.WAITING_FOR_VOLUME_DETACH,
    )
)
"""Reasons that are worth no Event."""


def decide(observed: Observed) -> Decision | None:
    """The next step of the deletion; None if our part is done."""
    if not OURS & set(observed.machine["metadata"].get("finalizers") or ()):
        return None
    decision = _decide(observed)
    removal = bootstrap_data.removal(observed.bootstrapping, observed.now, "its Machine is being deleted")
    if (
        is_final(decision)
        and bootstrap_data.holds_deletion(observed.bootstrapping)
        and not observed.goes_with_its_cluster
    ):
        # No token may outlive its Machine: nobody would look for it.
        return Decision(Stage.DELETING, steps(removal), Wait(1.0, "its bootstrap token goes first"))
    return replace(decision, steps=(*steps(removal), *decision.steps))


def _decide(observed: Observed) -> Decision:
    match observed.reads.host:
        case HostAbsent() if observed.reads.in_flight:
            # A list can't show what a call that still runs is about to make: released now, that host would be nobody's.
            text = f"the provider has not answered yet ({observed.reads.in_flight})"
            return _going(Wait(IN_FLIGHT_LOOK, text), (Reason.DELETING_HOST, text))
        case HostAbsent(leftover=leftover) if leftover is not None:
            return _delete_host(observed, leftover, Drained(), ())
        case HostAbsent() if unreachable.is_frozen(observed) and not unreachable.never_had_a_node(observed):
            reported = unreachable.holds(observed, "its host is gone, its Node stays")
            return _going(Blocked(reported[1], unreachable.REQUEUE_AFTER), reported)
        case HostAbsent():
            return _release(observed, "its host is gone")
        case HostUnknown(why):
            return _nobody_knows(observed, why)
        case HostPresent(host):
            return _remove(observed, host)


def is_final(decision: Decision) -> bool:
    """Whether the Machine goes with this reconcile, so that a word on its status would be wasted."""
    return not decision.extra


def _release(observed: Observed, why: str) -> Decision:
    """The Node goes, then the finalizer; a Node that can't be deleted holds the Machine until nodeDeletionTimeout."""
    nodes: list[Action] = []
    given_up: list[Action] = []
    stays = observed.deletion_guards.last_control_plane or unreachable.gives_up_node(observed)
    if observed.stale_nodes and not stays:
        limit, since = observed.timeout("nodeDeletionTimeout"), clocks.read(observed, clocks.NODE)
        if limit is not None and since is None:
            text = f"the Node goes next: {why}"
            going = _going(Wait(0.0, text), (Reason.DELETING_NODE, text))
            return replace(going, record=clocks.started(observed, clocks.NODE))
        if limit is None or since is None or observed.now < since + limit:
            nodes += (Delete(ref_of(NODE, n), f"Node {n['metadata']['name']}: {why}") for n in observed.stale_nodes)
        else:
            titles = ", ".join(node["metadata"]["name"] for node in observed.stale_nodes)
            text = f"Node {titles} could not be deleted within nodeDeletionTimeout and is left behind"
            given_up.append(Event(observed.ref, "Warning", str(Reason.DELETING_NODE), text))
    kept = [name for name in observed.machine["metadata"].get("finalizers") or () if name not in OURS]
    release = Patch(
        observed.ref,
        {"metadata": {"finalizers": kept or None}},
        f"Machine {observed.name} may go: {why}",
        resource_version=observed.version,
    )
    return Decision(Stage.DELETING, steps(nodes, [release], given_up))


def _nobody_knows(observed: Observed, why: str) -> Decision:
    if names.ABANDON_HOST_ANNOTATION in observed.annotations:
        why_unknown = f"the annotation {names.ABANDON_HOST_ANNOTATION} says so, though the host is unknown ({why})"
        return _release(observed, why_unknown)
    if not observed.problems:
        text = f"nobody knows whether there is a host: {why}"
        return _going(Wait(2.0, text), (Reason.PROVIDER_UNREACHABLE, text))
    problem = observed.problems[0]
    text = (
        f"{problem.path}: {problem.message}; nobody knows whether there is a host ({why}); repair the config, "
        f"or annotate the Machine with {names.ABANDON_HOST_ANNOTATION} if there is none"
    )
    return _going(Blocked(text), (Reason.INVALID_CONFIGURATION, text))


def _remove(observed: Observed, host: Host) -> Decision:
    if host.state is HostState.DELETING:
        text = f"host {host.name} is being deleted"
        return _going(Wait(next_requeue(observed), text), (Reason.DELETING_HOST, text))
    held = deletion_guards.block_reason(observed.machine, observed.deletion_guards)
    if held:
        return _going(Blocked(held), (Reason.HOSTS_CONTROLLER, held))
    if unreachable.is_frozen(observed):
        frozen = unreachable.holds(observed, "its host stays")
        return _going(Blocked(frozen[1], unreachable.REQUEUE_AFTER), frozen)
    if clocks.read(observed, clocks.PRE_TERMINATE) is not None:
        # The owner of the pre-terminate hook has seen that the Node is empty, so no second drain may begin.
        return _terminate(observed, host, Drained(), status.as_reported(observed, MachineCondition.DRAINED))
    hook = hook_of(observed.annotations, PRE_DRAIN)
    if hook:
        text = f"waiting until the annotation {hook} is removed before draining"
        return _going(Blocked(text), (Reason.WAITING_FOR_HOOK, text))
    return _empty(observed, host)


def _empty(observed: Observed, host: Host) -> Decision:
    """Pods first, then their volumes, then what comes before the host goes."""
    assessment = drain(observed, clocks.read(observed, clocks.DRAIN), "its Machine is being deleted")
    if observed.node_with_pods is None and isinstance(assessment, Drained):
        return _terminate(observed, host, assessment, ())
    drained = (drained_condition(assessment),)
    if isinstance(assessment, NotDrained):
        reason = Reason.DRAIN_BLOCKED if assessment.blocked else Reason.DRAINING
        reported = (reason, f"{assessment.why}{drain_end(observed)}" if assessment.blocked else assessment.why)
        going = _going(Blocked(assessment.why, REQUEUE_AFTER), reported, assessment.actions, drained)
        return replace(going, record=clocks.started(observed, clocks.DRAIN), warning=warning(assessment))
    volumes = attached_volumes(observed, assessment, clocks.read(observed, clocks.VOLUMES))
    if volumes:
        text = f"waiting until volumes are detached from the Node: {volumes}"
        going = _going(Blocked(text, REQUEUE_AFTER), (Reason.WAITING_FOR_VOLUME_DETACH, text), (), drained)
        return replace(going, record=clocks.started(observed, clocks.DRAIN, clocks.VOLUMES))
    return _terminate(observed, host, assessment, drained)


def _terminate(observed: Observed, host: Host, drained: Drained, reported: tuple[Condition, ...]) -> Decision:
    hook = hook_of(observed.annotations, PRE_TERMINATE)
    if not hook:
        return _delete_host(observed, host, drained, reported)
    text = f"waiting until the annotation {hook} is removed before deleting the host"
    going = _going(Blocked(text), (Reason.WAITING_FOR_HOOK, text), (), reported)
    return replace(going, record=clocks.started(observed, clocks.PRE_TERMINATE))


def _delete_host(observed: Observed, host: Host, drained: Drained, reported: tuple[Condition, ...]) -> Decision:
    attempt = deletion_attempt(observed)
    text, reason = f"host {host.name} is being deleted", str(Reason.DELETING_HOST)
    if attempt is not None:
        text, reason = f"host {host.name} can't be deleted: {failure_message(attempt)}", str(attempt.error_class)
    actions: tuple[Action, ...] = ()
    outcome = call_outcome(attempt, observed, f"deleting host {host.name}")
    if call_is_due(attempt, observed):
        why = f"Machine {observed.name} is being deleted"
        actions = (delete_host(observed, host, f"{why}; {drained.skipped}" if drained.skipped else why),)
        outcome = Wait(FIRST_LOOK, text)
    going = _going(outcome, (reason, text), actions, reported)
    return replace(going, record=clocks.started(observed, clocks.HOST))


def _going(
    outcome: Outcome,
    reported: tuple[str, str],
    actions: tuple[Action, ...] = (),
    extra: tuple[Condition, ...] = (),
) -> Decision:
    """A step on the way, with what the condition Deleting says of it."""
    reason, text = str(reported[0]), reported[1]
    host_goes = infrastructure(False, reason, text) if reason == Reason.DELETING_HOST else None
    return Decision(
        Stage.DELETING,
        steps(actions),
        outcome,
        infrastructure=host_goes,
        extra=(condition(MachineCondition.DELETING, True, reason, text), *extra),
        warning=None if reason in _AS_PLANNED else Cause(reason, text),
    )
