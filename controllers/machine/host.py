"""The host of a living Machine: make it once, bind the Machine to it, and tell when it is broken or gone.

One Machine has at most one host ever, but for a recorded replacement: a host that vanished is reported, never made
again under the same Machine (kubermatic re-creates it, machine-controller#381 got three of them so).
"""

from __future__ import annotations

from dataclasses import replace

from api import names
from api.conditions import Reason
from controllers.drain.cordon import is_cordoned_for, uncordon
from controllers.kernel.actions import Action, CreateHost, Patch, UpdateHost
from controllers.kernel.conditions import Condition
from controllers.kernel.plan import Blocked, Failed, Outcome, Settled, Wait, steps
from controllers.kernel.view import HostAbsent, HostPresent, HostUnknown
from controllers.machine import bootstrap_data, unreachable, update
from controllers.machine.conditions import join_failure, node_is_ready
from controllers.machine.creation_limits import Queued, must_queue
from controllers.machine.decision import (
    IS_UP_TO_DATE,
    Cause,
    Decision,
    call_is_due,
    call_outcome,
    current_attempt,
    failure_message,
    infrastructure,
    terminal_cause,
    up_to_date,
)
from controllers.machine.machine_node import Conflict
from controllers.machine.observe import Observed
from controllers.machine.phases import Stage
from controllers.machine.polling import next_requeue
from controllers.machine.update import forget_old_host, give_up, is_old_host, remove_old_host
from providers.base.contract import Host, HostRequest, HostState

REPLACEMENT = "the replacement of its host"
TOKEN_LOOK = 300.0
"""Seconds until a token is looked at again that is to live on: it is renewed every ten minutes."""


def decide(observed: Observed, request: HostRequest) -> Decision:
    """What to do about the host that ``request`` asks for."""
    match observed.reads.host:
        case HostUnknown(why):
            return unknown(observed, why)
        case HostAbsent(leftover):
            return _absent(observed, request, leftover)
        case HostPresent(host):
            return _present(observed, request, host)


def unknown(observed: Observed, why: str) -> Decision:
    """Nothing is done and nothing taken back: that nobody answers does not mean that nothing is there (MCM#657)."""
    known = observed.provider_id or observed.status.get("phase")
    reported = None if known else infrastructure(None, Reason.PROVIDER_UNREACHABLE, why)
    return Decision(None if known else Stage.WAITING, infrastructure=reported, outcome=Wait(2.0, why))


def lost(observed: Observed) -> Decision:
    text = (
        f"host {observed.provider_id} vanished: the provider does not show it any more; "
        "delete the Machine, its MachineSet then makes another"
    )
    return Decision(
        Stage.LOST,
        outcome=Failed(Reason.HOST_MISSING, text),
        infrastructure=infrastructure(False, Reason.HOST_MISSING, text),
        failure=Cause(Reason.HOST_MISSING, text),
        warning=Cause(Reason.HOST_MISSING, text),
    )


def with_finalizer(observed: Observed) -> list[str] | None:
    """The finalizers to write before a host is made; None if ours is there (a MachineSet's Machine is born with it)."""
    have = list(observed.machine["metadata"].get("finalizers") or ())
    return None if names.MACHINE_FINALIZER in have else [*have, names.MACHINE_FINALIZER]


def _absent(observed: Observed, request: HostRequest, leftover: Host | None) -> Decision:
    if observed.provider_id and observed.provider_id != observed.replaced_host:
        return _create(observed, request) if _is_half_made(observed, leftover) else lost(observed)
    if observed.provider_id and observed.unreachable is not None:
        return unreachable.hold_change(observed, REPLACEMENT)
    if observed.provider_id and leftover is not None:
        return remove_old_host(observed, leftover)
    if observed.provider_id:
        return forget_old_host(observed)
    return _create(observed, request)


def _is_half_made(observed: Observed, leftover: Host | None) -> bool:
    """The host that the Machine is bound to is there and was never finished. One that was a Node once is not made
    again: what is left of it counts as lost.
    """
    joined = observed.status.get("nodeRef")
    return leftover is not None and leftover.provider_id == observed.provider_id and not joined


def _create(observed: Observed, request: HostRequest) -> Decision:
    attempt = current_attempt(observed)
    failure = terminal_cause(attempt)
    doing = f"making the host of Machine {observed.name}"
    waits = must_queue(observed.lines) if call_is_due(attempt, observed) else None
    actions: list[Action] = []
    guard: list[Action] = []
    if call_is_due(attempt, observed) and waits is None:
        given = bootstrap_data.before_host(observed.bootstrapping, observed.now)
        if isinstance(given, bootstrap_data.NotYet):
            return _without_data(observed, request, given)
        finalizers = with_finalizer(observed)
        if finalizers:
            patch = {"metadata": {"finalizers": finalizers}}
            guard.append(Patch(observed.ref, patch, "hold the Machine while it may have a host", "", observed.version))
        actions.append(
            CreateHost(observed.ref, replace(request, bootstrap=given), f"make the host of Machine {observed.name}")
        )
    stage = Stage.REFUSED if failure else Stage.REPLACING if observed.replaced_host else Stage.WAITING
    outcome = call_outcome(None if actions else attempt, observed, doing)
    return Decision(
        stage,
        steps(guard, actions),
        outcome if waits is None else Wait(waits.requeue_after, waits.why),
        infrastructure=_why_there_is_none(observed, waits),
        up_to_date=_no_host_yet(observed),
        failure=failure,
        warning=Cause(attempt.error_class, failure_message(attempt)) if attempt is not None else None,
    )


def _without_data(observed: Observed, request: HostRequest, not_yet: bootstrap_data.NotYet) -> Decision:
    """No host without what it needs to join: it would cost money and never be a Node. One that costs nothing may be
    prepared for it.
    """
    refused = not_yet.refused
    actions = [*not_yet.actions, *_preparing(observed, request)]
    finalizers = with_finalizer(observed)
    hold: list[Action] = []
    if actions and finalizers:
        patch = {"metadata": {"finalizers": finalizers}}
        hold.append(Patch(observed.ref, patch, "hold the Machine while it may have a token", "", observed.version))
    outcome = Blocked(not_yet.why, not_yet.after) if refused else Wait(not_yet.after, not_yet.why)
    return Decision(
        Stage.REPLACING if observed.replaced_host else Stage.WAITING,
        steps(hold, actions),
        outcome,
        infrastructure=infrastructure(False, refused.reason if refused else Reason.PROVISIONING, not_yet.why),
        up_to_date=_no_host_yet(observed),
        warning=Cause(refused.reason, refused.message) if refused else None,
    )


def _preparing(observed: Observed, request: HostRequest) -> tuple[CreateHost, ...]:
    script = observed.bootstrapping.preparation if observed.bootstrapping is not None else ""
    early = replace(request, preparation=script)
    return (CreateHost(observed.ref, early, f"prepare the host of Machine {observed.name}"),) if script else ()


def _why_there_is_none(observed: Observed, waits: Queued | None) -> Condition:
    """A refusal of the provider says more than that others are served before."""
    attempt = current_attempt(observed)
    if attempt is not None:
        return infrastructure(False, attempt.error_class, failure_message(attempt))
    if waits is not None:
        return infrastructure(False, waits.reason, waits.why)
    if observed.reads.queued:
        return infrastructure(False, Reason.HOSTS_IN_FLIGHT, observed.reads.queued)
    return infrastructure(False, Reason.PROVISIONING, "the provider was asked for a host")


def _no_host_yet(observed: Observed) -> Condition:
    if observed.replaced_host:
        return up_to_date(False, Reason.REPLACING, "the old host is gone, a new one is being made")
    return up_to_date(False, Reason.WAITING_FOR_HOST, "there is no host yet")


def _present(observed: Observed, request: HostRequest, host: Host) -> Decision:
    is_old = is_old_host(observed, host)
    if isinstance(observed.link, Conflict) and observed.provider_id:
        return _in_conflict(observed, request, host, observed.link.why)
    if observed.unreachable is not None and (is_old or _is_bound_to_old(observed)):
        return unreachable.hold_change(observed, REPLACEMENT)
    if is_old:
        return remove_old_host(observed, host)
    if _is_bound_to_old(observed):
        return forget_old_host(observed)
    if observed.is_bound_elsewhere:
        return _bound_elsewhere(observed, host)
    if host.state is HostState.DELETING:
        text = f"host {host.name} is being deleted, though nobody asked for it here"
        condition = infrastructure(False, Reason.DELETING_HOST, text)
        return Decision(None, outcome=Wait(2.0, text), infrastructure=condition)
    if host.provider_id and not observed.provider_id:
        return _bind(observed, host)
    given_up = give_up(observed, host, observed.node_takeover) if observed.node_takeover is not None else None
    if given_up is not None:
        return given_up
    if host.spec_hash != request.spec_hash and observed.waits_for_its_set:
        return _held_by_its_set(observed, host)
    if host.spec_hash != request.spec_hash and observed.unreachable is not None:
        return unreachable.hold_change(observed, "the change of its host")
    if host.spec_hash != request.spec_hash:
        return _changed_with_data(observed, update.decide(observed, request, host))
    return _as_asked(observed, host)


def _changed_with_data(observed: Observed, decision: Decision) -> Decision:
    """A drained host may be rebuilt: then it joins anew, by data that has to be there before. Steps that change the
    kubelet alone need none.
    """
    asks = [a for step in decision.steps for a in step if isinstance(a, UpdateHost)]
    rebuilt = any(a.drained and not a.request.upgrade.script for a in asks)
    given = bootstrap_data.before_host(observed.bootstrapping, observed.now) if rebuilt else None
    if given is None:
        return decision
    if isinstance(given, bootstrap_data.NotYet):
        return replace(decision, steps=steps(given.actions), outcome=Wait(given.after, given.why))
    changed = [
        tuple(replace(a, request=replace(a.request, bootstrap=given)) if isinstance(a, UpdateHost) else a for a in step)
        for step in decision.steps
    ]
    return replace(decision, steps=tuple(changed))


def _in_conflict(observed: Observed, request: HostRequest, host: Host, why: str) -> Decision:
    """Nobody can tell which Node is its own, so none can be drained: the host stays as it is until a person looks."""
    as_it_runs = replace(_as_asked(observed, host), steps=(), record={})
    if observed.replaced_host or host.spec_hash != request.spec_hash:
        stale = up_to_date(False, Reason.NODE_CONFLICT, f"its host is left as it is: {why}")
        return replace(as_it_runs, up_to_date=stale, outcome=Blocked(why))
    return as_it_runs


def _is_bound_to_old(observed: Observed) -> bool:
    return bool(observed.provider_id) and observed.provider_id == observed.replaced_host


def _bound_elsewhere(observed: Observed, host: Host) -> Decision:
    text = (
        f"spec.providerID is {observed.provider_id}, but the provider's host of this Machine is {host.provider_id}; "
        "clear spec.providerID to take that one"
    )
    condition = infrastructure(False, Reason.NODE_CONFLICT, text)
    return Decision(None, outcome=Blocked(text), infrastructure=condition, warning=Cause(Reason.NODE_CONFLICT, text))


def _bind(observed: Observed, host: Host) -> Decision:
    """Write down which host it is, before anything else is said of it. Guarded: a stale view must not bind twice."""
    patch: dict[str, object] = {"spec": {"providerID": host.provider_id}}
    finalizers = with_finalizer(observed)
    metadata: dict[str, object] = {"finalizers": finalizers} if finalizers else {}
    mark = bootstrap_data.mark(observed.bootstrapping, observed.annotations)
    metadata |= {"annotations": mark} if mark else {}
    if metadata:
        patch["metadata"] = metadata
    why = f"Machine {observed.name} is bound to host {host.provider_id}"
    bind = Patch(observed.ref, patch, why, resource_version=observed.version)
    return Decision(None, steps([bind]), Wait(next_requeue(observed), f"host {host.name} comes up"))


def _as_asked(observed: Observed, host: Host) -> Decision:
    if host.state is HostState.FAILED:
        text = f"host {host.name} failed: {host.failure or 'the provider does not say why'}; delete the Machine"
        return Decision(
            Stage.BROKEN,
            outcome=Failed(Reason.HOST_FAILED, text),
            infrastructure=infrastructure(False, Reason.HOST_FAILED, text),
            up_to_date=IS_UP_TO_DATE,
            failure=Cause(Reason.HOST_FAILED, text),
            warning=Cause(Reason.HOST_FAILED, text),
        )
    tidy: list[Action] = []
    if observed.own_node is not None and is_cordoned_for(observed.own_node, observed.uid):
        tidy.append(uncordon(observed.own_node, "its host is as its Machine asks"))
    tidy += _bootstrap(observed, host)
    return Decision(
        _stage(observed, host),
        steps(tidy),
        _outcome(observed, host),
        infrastructure=_infrastructure(observed, host),
        up_to_date=IS_UP_TO_DATE,
        record={**_replacement_over(observed), **_class_of_host(observed)},
        warning=join_failure(observed) or (Cause(Reason.HOST_DRIFTED, host.drift) if host.drift else None),
    )


def _bootstrap(observed: Observed, host: Host) -> tuple[Action, ...]:
    """The token lives until the Node has joined, on a control plane until kubeadm has ended; the status names both
    first."""
    found, joined_before = observed.bootstrapping, observed.status.get("nodeRef")
    if observed.own_node is None and (not joined_before or observed.replaced_host):
        return bootstrap_data.renewal(found, host, observed.now)
    if bootstrap_data.seconds_to_end(found, observed.machine, observed.now):
        return bootstrap_data.until_end(found, host, observed.now)
    if observed.own_node is None or not (joined_before or node_is_ready(observed.own_node)):
        return ()
    return bootstrap_data.after_join(found, observed.now)


def _replacement_over(observed: Observed) -> dict[str, None]:
    """The record of a replaced host is forgotten when a Node of this one has joined."""
    return {"replacement": None} if observed.node is not None else {}


def _class_of_host(observed: Observed) -> dict[str, str]:
    return {"machineClassDigest": observed.class_digest} if observed.class_digest else {}


def _held_by_its_set(observed: Observed, host: Host) -> Decision:
    """An edit of a class is a change of many templates at once: it reaches hosts that run by their sets' budgets."""
    text = (
        "its MachineClass has changed since: its MachineSet hands that out within spec.inPlaceUpdate; without it only "
        "new Machines get it, and a restart of the rollout replaces this one"
    )
    as_it_runs = _as_asked(observed, host)
    record = _replacement_over(observed)
    return replace(as_it_runs, up_to_date=up_to_date(False, Reason.WAITING_FOR_ROLLOUT, text), record=record)


def _stage(observed: Observed, host: Host) -> Stage | None:
    if observed.node is not None:
        return Stage.JOINED
    if observed.unreachable is not None and observed.status.get("nodeRef"):
        return None
    return Stage.CREATING if host.state is HostState.PENDING else Stage.BOOTED


def _infrastructure(observed: Observed, host: Host) -> Condition:
    # A Node that is Ready is newer news than a list in which its host still boots.
    if host.state is HostState.PENDING and not node_is_ready(observed.node):
        return infrastructure(False, Reason.PROVISIONING, f"host {host.name} is booting")
    if host.state is HostState.STOPPED:
        text = f"host {host.name} is switched off; start it, or delete the Machine"
        return infrastructure(False, Reason.HOST_STOPPED, text)
    return infrastructure(True, Reason.PROVISIONED)


def _outcome(observed: Observed, host: Host) -> Outcome:
    if host.state is HostState.STOPPED:
        return Blocked(f"host {host.name} is switched off")
    if node_is_ready(observed.node) and host.state is not HostState.UPDATING:
        left = bootstrap_data.seconds_to_end(observed.bootstrapping, observed.machine, observed.now)
        return Wait(min(left, TOKEN_LOOK), "kubeadm has not ended yet") if left else Settled()
    if observed.unreachable is not None and host.state is HostState.RUNNING:
        return Blocked(unreachable.message(observed), unreachable.REQUEUE_AFTER)
    return Wait(next_requeue(observed), f"waiting for the Node of host {host.name}")
