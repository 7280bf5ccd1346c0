"""Let a Machine go: hooks, drain, host, Node, and last of all the finalizer.

It never gets stuck on a bad spec: what counts is whether the provider still shows a host for this UID
(machine-controller#131, #224, #1015: a finalizer that no valid config can lift). But as long as nobody can say that
there is no host, the Machine stays: a leaked host costs money and nobody would know of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from api import names
from api.conditions import MachineCondition, Reason
from controllers.drain.assess import LOOK_AGAIN, Drained, NotDrained
from controllers.kernel.actions import Action, Delete, Patch
from controllers.kernel.conditions import Condition, format_time, parse_time
from controllers.kernel.plan import Blocked, Outcome, Wait, steps
from controllers.kernel.refs import NODE, ref_of
from controllers.kernel.view import HostAbsent, HostPresent, HostUnknown
from controllers.machine import attempts, unreached
from controllers.machine.decision import Decision, Failure, condition, infrastructure
from controllers.machine.draining import blocked_warning, drain, drained_condition
from controllers.machine.observe import Observed
from controllers.machine.phases import Stage
from controllers.machine.polling import next_look
from controllers.machine.replacement import delete_host
from providers.base.contract import Host, HostState

IN_FLIGHT_LOOK = 1.0
"""Seconds until the next look; the end of the call wakes the Machine earlier."""
OURS = frozenset({names.MACHINE_FINALIZER, *names.LEGACY_MACHINE_FINALIZERS})
_PRE_DRAIN = (names.PRE_DRAIN_HOOK_PREFIX, names.OWN_PRE_DRAIN_HOOK_PREFIX)
_PRE_TERMINATE = (names.PRE_TERMINATE_HOOK_PREFIX, names.OWN_PRE_TERMINATE_HOOK_PREFIX)


def decide(observed: Observed) -> Decision | None:
    """The next step of the deletion; None if our part is done."""
    if not OURS & set(observed.machine["metadata"].get("finalizers") or ()):
        return None
    match observed.reads.host:
        case HostAbsent() if observed.reads.in_flight:
            # A list can't show what a call that still runs is about to make: released now, that host would be nobody's.
            text = f"the provider has not answered yet ({observed.reads.in_flight})"
            return _going(observed, Wait(IN_FLIGHT_LOOK, text), (Reason.DELETING_HOST, text))
        case HostAbsent() if unreached.is_frozen(observed) and not unreached.never_had_a_node(observed):
            said = unreached.holds(observed, "its host is gone, its Node stays")
            return _going(observed, Blocked(said[1], unreached.LOOK_AGAIN), said)
        case HostAbsent():
            return _release(observed, "its host is gone")
        case HostUnknown(why):
            return _nobody_knows(observed, why)
        case HostPresent(host):
            return _remove(observed, host)


def is_final(decision: Decision) -> bool:
    """Whether the Machine goes with this round, so that a word on its status would be wasted."""
    return not decision.extra


def _release(observed: Observed, why: str) -> Decision:
    nodes: list[Action] = [
        Delete(ref_of(NODE, node), f"Node {node['metadata']['name']}: {why}")
        for node in observed.left_nodes
        if not unreached.gives_up_node(observed)
    ]
    kept = [name for name in observed.machine["metadata"].get("finalizers") or () if name not in OURS]
    release = Patch(
        observed.ref,
        {"metadata": {"finalizers": kept or None}},
        f"Machine {observed.name} may go: {why}",
        resource_version=observed.version,
    )
    return Decision(Stage.DELETING, steps(nodes, [release]))


def _nobody_knows(observed: Observed, why: str) -> Decision:
    if names.ABANDON_HOST_ANNOTATION in observed.annotations:
        said = f"the annotation {names.ABANDON_HOST_ANNOTATION} says so, though the host is unknown ({why})"
        return _release(observed, said)
    if not observed.problems:
        text = f"nobody knows whether there is a host: {why}"
        return _going(observed, Wait(2.0, text), (Reason.PROVIDER_UNREACHABLE, text))
    problem = observed.problems[0]
    text = (
        f"{problem.path}: {problem.message}; nobody knows whether there is a host ({why}); repair the config, "
        f"or annotate the Machine with {names.ABANDON_HOST_ANNOTATION} if there is none"
    )
    return _going(observed, Blocked(text), (Reason.INVALID_CONFIGURATION, text))


def _remove(observed: Observed, host: Host) -> Decision:
    if host.state is HostState.DELETING:
        text = f"host {host.name} is being deleted"
        return _going(observed, Wait(next_look(observed), text), (Reason.DELETING_HOST, text))
    hook = _hook(observed, _PRE_DRAIN)
    if hook:
        text = f"waiting until the annotation {hook} is removed before draining"
        return _going(observed, Blocked(text), (Reason.WAITING_FOR_HOOK, text))
    if unreached.is_frozen(observed):
        held = unreached.holds(observed, "its host stays")
        return _going(observed, Blocked(held[1], unreached.LOOK_AGAIN), held)
    assessment = drain(observed, _drain_started(observed), "its Machine is being deleted")
    drained = (drained_condition(assessment),) if observed.node is not None else ()
    if isinstance(assessment, NotDrained):
        said = (Reason.DRAINING, assessment.why)
        going = _going(observed, Blocked(assessment.why, LOOK_AGAIN), said, assessment.actions, drained)
        return replace(going, warning=blocked_warning(assessment))
    hook = _hook(observed, _PRE_TERMINATE)
    if hook:
        text = f"waiting until the annotation {hook} is removed before deleting the host"
        return _going(observed, Blocked(text), (Reason.WAITING_FOR_HOOK, text), (), drained)
    return _delete_host(observed, host, assessment, drained)


def _delete_host(observed: Observed, host: Host, drained: Drained, said: tuple[Condition, ...]) -> Decision:
    attempt = attempts.current(observed)
    text, reason = f"host {host.name} is being deleted", str(Reason.DELETING_HOST)
    if attempt is not None:
        text, reason = f"host {host.name} can't be deleted: {attempts.message(attempt)}", str(attempt.error_class)
    actions: tuple[Action, ...] = ()
    outcome = attempts.outcome(attempt, observed, f"deleting host {host.name}")
    if attempts.is_due(attempt, observed):
        why = f"Machine {observed.name} is being deleted"
        actions = (delete_host(observed, host, f"{why}; {drained.skipped}" if drained.skipped else why),)
        outcome = Wait(next_look(observed), text)
    return _going(observed, outcome, (reason, text), actions, said)


def _going(
    observed: Observed,
    outcome: Outcome,
    said: tuple[str, str],
    actions: tuple[Action, ...] = (),
    extra: tuple[Condition, ...] = (),
) -> Decision:
    """A step on the way, with what the condition Deleting says of it."""
    reason, text = str(said[0]), said[1]
    trouble = reason not in {Reason.DELETING_HOST, Reason.DRAINING, Reason.WAITING_FOR_HOOK}
    started = _drain_started(observed)
    record = {} if started or observed.node is None else {"nodeDrainStartTime": format_time(observed.now)}
    host_goes = infrastructure(False, reason, text) if reason == Reason.DELETING_HOST else None
    return Decision(
        Stage.DELETING,
        steps(actions),
        outcome,
        infrastructure=host_goes,
        extra=(condition(MachineCondition.DELETING, True, reason, text), *extra),
        record={"deletion": record} if record else {},
        warning=Failure(reason, text) if trouble else None,
    )


def _drain_started(observed: Observed) -> datetime | None:
    found = observed.status.get("deletion")
    return parse_time(found.get("nodeDrainStartTime")) if isinstance(found, dict) else None


def _hook(observed: Observed, prefixes: Iterable[str]) -> str:
    """The first annotation that holds the deletion up, "" if none does."""
    marks = tuple(f"{prefix}/" for prefix in prefixes)
    return next((name for name in sorted(observed.annotations) if name.startswith(marks)), "")
