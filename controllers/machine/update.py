"""Another host for the same Machine, or the same host changed in place.

Replace the host under the same Machine: the only way in which a Machine gets a second one.

    record it -> drain -> delete the old host -> it is gone -> delete its Node -> clear spec.providerID -> new host
    -> its Node joins -> forget the record

Each step can be read from what is observed, so after a crash the next reconcile goes on from there. Once recorded it is
seen through: whether the old host was asked to go can't be taken back. A Node of the old host that turns up late is
deleted for as long as the record stands, or, if the new host's kubelet has taken it over, that host is replaced once
more.

The spec has changed and the host has not: ask the provider, which decides in place or replace (KEP-3).
"""

from __future__ import annotations

from datetime import timedelta

from api.conditions import Reason
from controllers.drain.assess import REQUEUE_AFTER, NotDrained
from controllers.drain.cordon import is_cordoned_for, uncordon
from controllers.kernel.actions import Action, Delete, DeleteHost, Patch, UpdateHost
from controllers.kernel.conditions import Condition, format_time, parse_time
from controllers.kernel.in_place import forbids_replacement
from controllers.kernel.plan import Blocked, Step, Wait, steps
from controllers.kernel.refs import NODE, Obj, ref_of, resource_version_of, runs_control_plane
from controllers.machine import deletion_guards, node_takeover
from controllers.machine.bootstrap_data import before_replacement, is_being_found_out, with_upgrade
from controllers.machine.decision import (
    Cause,
    Decision,
    call_is_due,
    call_outcome,
    current_attempt,
    deletion_attempt,
    failure_message,
    infrastructure,
    terminal_cause,
    up_to_date,
)
from controllers.machine.draining import attached_volumes, drain, drained_condition, warning
from controllers.machine.machine_node import earlier_hosts, is_of
from controllers.machine.observe import Observed
from controllers.machine.phases import Stage
from controllers.machine.polling import next_requeue
from providers.base.contract import (
    Host,
    HostIdentity,
    HostRequest,
    HostState,
    InProgress,
    NeedsDrain,
    NeedsReplacement,
    Updated,
)

_MOST_EARLIER = 8


def begin_replacement(observed: Observed, host: Host, why: str, reason: str = Reason.REPLACING) -> Decision:
    """Write down that this host is to be replaced. Nothing is touched before that is saved. ``reason``: the Event's."""
    before = observed.replaced_host
    earlier = [*earlier_hosts(observed.machine), before] if before else []
    record = {
        **(dict.fromkeys(observed.status["replacement"]) if before else {}),
        "providerID": host.provider_id or host.id,
        **({"earlierProviderIDs": earlier[-_MOST_EARLIER:]} if earlier else {}),
        "reason": why[:1024],
        "startedAt": format_time(observed.now),
    }
    return Decision(
        Stage.REPLACING,
        outcome=Wait(1.0, f"host {host.name} is to be replaced: {why}"),
        up_to_date=up_to_date(False, Reason.REPLACING, why),
        record={"replacement": record},
        news=Cause(reason, f"host {host.name} is replaced by a new one: {why}"),
    )


def give_up(observed: Observed, host: Host, node: Obj) -> Decision | None:
    """The host goes on with ``node``, that of a host before it, and can get none of its own: only another host can.

    None while that is not certain.
    """
    since = host.created_at or parse_time(observed.status["replacement"].get("startedAt")) or observed.now
    if not node_takeover.is_certain(node, host, since, observed.now):
        return None
    why = node_takeover.message(node)
    if forbidden_by := forbids_replacement(observed.machine):
        return Decision(
            Stage.BOOTED,
            outcome=Blocked(f"{why}, and {forbidden_by} forbids another host", REQUEUE_AFTER),
            infrastructure=infrastructure(True, Reason.PROVISIONED),
            warning=Cause(Reason.NODE_TAKEN_OVER, why),
        )
    return begin_replacement(observed, host, why, Reason.NODE_TAKEN_OVER)


def is_old_host(observed: Observed, host: Host) -> bool:
    """Whether ``host`` is the one that was recorded to go."""
    return is_of(host, observed.replaced_host)


def remove_old_host(observed: Observed, host: Host) -> Decision:
    """Drain the old host's Node, then delete the host, or what is left of it."""
    recorded = observed.status["replacement"]
    why = str(recorded.get("reason") or "the provider can't change it in place")
    stale = up_to_date(False, Reason.REPLACING, why)
    if host.state not in {HostState.DELETING, HostState.UNFINISHED}:
        not_yet = _not_yet(observed, stale)
        if not_yet is not None:
            return not_yet
    attempt = deletion_attempt(observed)
    actions: list[Action] = []
    if host.state is not HostState.DELETING and call_is_due(attempt, observed):
        actions.append(delete_host(observed, host, f"replace host {host.name}: {why}"))
    failed = attempt is not None and host.state is not HostState.DELETING
    text = failure_message(attempt) if attempt and failed else f"host {host.name} is being deleted"
    condition = infrastructure(False, str(attempt.error_class) if attempt and failed else Reason.DELETING_HOST, text)
    waiting = call_outcome(None if actions else attempt, observed, f"deleting host {host.name}")
    return Decision(
        Stage.REPLACING,
        steps(actions),
        waiting if failed else Wait(next_requeue(observed), text),
        infrastructure=condition,
        up_to_date=stale,
        warning=Cause(condition.reason, text) if failed else None,
    )


def _not_yet(observed: Observed, stale: Condition) -> Decision | None:
    """What has to be done before the old host may be deleted; None if nothing has."""
    recorded = observed.status["replacement"]
    held = deletion_guards.block_reason(observed.machine, observed.deletion_guards)
    if held:
        failure = Cause(Reason.HOSTS_CONTROLLER, held)
        waiting = up_to_date(False, Reason.HOSTS_CONTROLLER, held)
        return Decision(Stage.REPLACING, outcome=Blocked(held), up_to_date=waiting, warning=failure)
    assessment = drain(observed, parse_time(recorded.get("startedAt")), "its host is replaced by a new one")
    if isinstance(assessment, NotDrained):
        return Decision(
            Stage.REPLACING,
            steps(assessment.actions),
            Blocked(assessment.why, REQUEUE_AFTER),
            up_to_date=stale,
            extra=(drained_condition(assessment),),
            warning=warning(assessment),
        )
    began = recorded.get("waitForNodeVolumeDetachStartTime")
    volumes = attached_volumes(observed, assessment, parse_time(began))
    if not volumes:
        return None
    text = f"waiting until volumes are detached from the Node: {volumes}"
    return Decision(
        Stage.REPLACING,
        outcome=Blocked(text, REQUEUE_AFTER),
        up_to_date=up_to_date(False, Reason.WAITING_FOR_VOLUME_DETACH, text),
        extra=(drained_condition(assessment),),
        record={} if began else {"replacement": {"waitForNodeVolumeDetachStartTime": format_time(observed.now)}},
    )


def forget_old_host(observed: Observed) -> Decision:
    """The old host is gone: its Node goes, and the Machine is free for the new one.

    A view that lags may show this when the new host runs already: then its kubelet must not lose the Node.
    """
    nodes = [_delete_node(node) for node in observed.stale_nodes if node_takeover.may_go(node, observed.reads.host)]
    clear = Patch(
        observed.ref,
        {"spec": {"providerID": None}},
        f"host {observed.provider_id} is gone, the next one may come",
        resource_version=observed.version,
    )
    return Decision(
        Stage.REPLACING,
        steps(nodes, [clear]),
        Wait(1.0, "the new host comes next"),
        up_to_date=up_to_date(False, Reason.REPLACING, "the old host is gone, a new one is being made"),
    )


def delete_late_nodes(observed: Observed) -> tuple[Step, ...]:
    """Nodes of hosts that were replaced go when they turn up, else they would be nobody's.

    If the new host bears the same name, its kubelet may have found such a Node and taken it over; not so if it has
    joined with another.
    """
    host = observed.host
    joined = observed.node is not None and host is not None and host.provider_id == observed.provider_id
    late = (node for node in observed.late_nodes if joined or node_takeover.may_go(node, observed.reads.host))
    return steps([_delete_node(node) for node in late])


def _delete_node(node: Obj) -> Action:
    """Guarded: a kubelet that begins to report on it meanwhile keeps it."""
    why = f"Node {node['metadata']['name']}: its host was replaced"
    return Delete(ref_of(NODE, node), why, resource_version=resource_version_of(node))


def delete_host(observed: Observed, host: Host, why: str) -> DeleteHost:
    request = observed.desired.request
    return DeleteHost(observed.ref, identity_of(observed), host, request.config if request else {}, why)


def identity_of(observed: Observed) -> HostIdentity:
    """Also of a Machine whose config can't be read."""
    request, meta = observed.desired.request, observed.machine["metadata"]
    return request.identity if request else HostIdentity(observed.uid, meta.get("namespace", ""), observed.name)


_RUNS = {HostState.RUNNING, HostState.UPDATING}
CHANGING = "the host is changed in place"


def decide(observed: Observed, request: HostRequest, host: Host) -> Decision:
    """The next step of bringing ``host`` to ``request``."""
    attempt = current_attempt(observed)
    if attempt is not None:
        return _failed(observed, request, host)
    match observed.reads.answer:
        case NeedsReplacement(why=why):
            return _replace(observed, host, why)
        case NeedsDrain(why=why):
            return _drain_first(observed, request, host, why)
        case InProgress(failed=True, why=why):
            return _went_back(observed, host, why)
        case InProgress(after=after, why=why):
            return _in_progress(observed, request, host, (after, why))
        case Updated():
            return _updating(host, Wait(1.0, "the host was changed, the provider's list does not show it yet"))
        case None if (waits := _waits_for_api_server(observed)) and not observed.reads.in_flight:
            return _stays(observed, host, waits)
        case None:
            return _ask(observed, request, host)


def _ask(observed: Observed, request: HostRequest, host: Host, *, how_far: str = "", drained: bool = False) -> Decision:
    """Asked before it is known with which steps, the provider would answer that another host is needed; its answer is
    kept for this spec and would still count afterwards.
    """
    if observed.reads.in_flight:
        return _updating(host, Wait(2.0, f"{observed.reads.in_flight} of host {host.name} is running"), how_far=how_far)
    if is_being_found_out(observed.bootstrapping) and not observed.reads.problems:
        return _updating(host, Wait(1.0, "it is being found out how its host is to be changed"), how_far=how_far)
    if waits := _waits_for_api_server(observed):
        return _updating(host, Wait(REQUEUE_AFTER, waits.message), how_far=how_far)
    why = "Node is drained, it can be changed" if drained else "it is not as its Machine asks"
    ask = _update(observed, request, host, f"host {host.name}: {why}", drained=drained)
    return _updating(host, Wait(1.0, "the provider was asked to change the host"), ask, how_far=how_far)


def _waits_for_api_server(observed: Observed) -> Cause | None:
    """Its kubelet would be newer than the API server, or that can't be asked: during its own upgrade it is away for
    some seconds.
    """
    refused = observed.bootstrapping.refused if observed.bootstrapping is not None else None
    waits = refused is not None and refused.reason in (Reason.VERSION_SKEW, Reason.WORKLOAD_UNREACHABLE)
    return Cause(refused.reason, refused.message) if refused is not None and waits else None


def _in_progress(observed: Observed, request: HostRequest, host: Host, progress: tuple[float, str]) -> Decision:
    """Wait, and ask again when the provider said so; without a time of its answer the host's own state has to tell."""
    after, why = progress
    answered = observed.reads.answered_at
    left = ((answered + timedelta(seconds=after)) - observed.now).total_seconds() if answered else after
    if left > 0 or observed.reads.in_flight:
        return _updating(host, Wait(max(0.1, left), why or CHANGING), how_far=why)
    return _ask(observed, request, host, how_far=why)


def _went_back(observed: Observed, host: Host, why: str) -> Decision:
    """The host is as it was, and serves: its Node takes pods again. Only another spec begins anything."""
    node, back = observed.own_node, "its host went back to what it was"
    return Decision(
        Stage.UPDATE_STUCK,
        steps([uncordon(node, back)] if node is not None and is_cordoned_for(node, observed.uid) else []),
        Blocked(why, REQUEUE_AFTER),
        infrastructure=_as_it_is(host),
        up_to_date=up_to_date(False, Reason.UPDATE_FAILED, why),
        warning=Cause(Reason.UPDATE_FAILED, why),
    )


def _drain_first(observed: Observed, request: HostRequest, host: Host, why: str) -> Decision:
    assessment = drain(observed, None, why)
    if isinstance(assessment, NotDrained):
        return Decision(
            Stage.UPDATING,
            steps(assessment.actions),
            Blocked(assessment.why, REQUEUE_AFTER),
            infrastructure=_as_it_is(host),
            up_to_date=up_to_date(False, Reason.DRAINING, why),
            extra=(drained_condition(assessment),),
            warning=warning(assessment),
        )
    return _ask(observed, request, host, drained=True)


def _replace(observed: Observed, host: Host, why: str) -> Decision:
    """A host that runs is not given up for one that is known not to join."""
    if forbidden_by := forbids_replacement(observed.machine):
        text = f"only another host would do ({why}), and {forbidden_by} forbids that"
        return _stays(observed, host, Cause(Reason.NEEDS_REPLACEMENT, text))
    if observed.bootstrapping is not None and observed.bootstrapping.asked and runs_control_plane(observed.machine):
        text = (
            f"only another host would do ({why}), and the host of a control plane is not given up while its Machine is "
            "there: make another control-plane Machine, then delete this one"
        )
        return _stays(observed, host, Cause(Reason.NEEDS_REPLACEMENT, text))
    not_yet = before_replacement(observed.bootstrapping)
    if not_yet is None:
        return begin_replacement(observed, host, why)
    if not_yet.refused is None:
        return _updating(host, Wait(not_yet.after, not_yet.why))
    refused = not_yet.refused
    known = why == refused.message
    text = why if known else f"only another host would do ({why}), and that could not join: {refused.message}"
    return _stays(observed, host, Cause(refused.reason, text))


def _stays(observed: Observed, host: Host, refused: Cause) -> Decision:
    """Only another host would do, and there can be none: the host stays as it runs."""
    node, back = observed.own_node, "its host stays as it is"
    return Decision(
        Stage.UPDATE_STUCK,
        steps([uncordon(node, back)] if node is not None and is_cordoned_for(node, observed.uid) else []),
        Blocked(refused.message, REQUEUE_AFTER),
        infrastructure=_as_it_is(host),
        up_to_date=up_to_date(False, refused.reason, refused.message),
        warning=refused,
    )


def _failed(observed: Observed, request: HostRequest, host: Host) -> Decision:
    """The call failed: say so, keep the host as it runs, and ask again when it is time."""
    attempt = current_attempt(observed)
    assert attempt is not None
    actions: list[Action] = []
    if call_is_due(attempt, observed):
        if waits := _waits_for_api_server(observed):
            return _stays(observed, host, waits)
        actions.append(_update(observed, request, host, f"ask again to change host {host.name}"))
    failure = terminal_cause(attempt)
    stage = Stage.UPDATE_STUCK if failure and observed.node is not None else Stage.UPDATING
    return Decision(
        stage,
        steps(actions),
        call_outcome(None if actions else attempt, observed, f"changing host {host.name}"),
        infrastructure=_as_it_is(host),
        up_to_date=up_to_date(False, attempt.error_class, failure_message(attempt)),
        failure=failure,
        warning=Cause(attempt.error_class, failure_message(attempt)),
    )


def _updating(host: Host, wait: Wait, ask: UpdateHost | None = None, *, how_far: str = "") -> Decision:
    return Decision(
        Stage.UPDATING,
        steps([ask] if ask else []),
        wait,
        infrastructure=_as_it_is(host),
        up_to_date=up_to_date(False, Reason.UPDATING_IN_PLACE, f"{CHANGING}: {how_far}" if how_far else CHANGING),
    )


def _update(observed: Observed, request: HostRequest, host: Host, why: str, *, drained: bool = False) -> UpdateHost:
    full = with_upgrade(request, observed.bootstrapping)
    return UpdateHost(observed.ref, full, host, drained or _was_drained(observed), why)


def _as_it_is(host: Host) -> Condition:
    if host.state in _RUNS:
        return infrastructure(True, Reason.PROVISIONED)
    return infrastructure(False, Reason.PROVISIONING, f"host {host.name} is {host.state}")


def _was_drained(observed: Observed) -> bool:
    """Whether the Node was emptied for this change: cordoned by us, and nothing left on it that a drain waits for."""
    node = observed.own_node
    if node is None or not is_cordoned_for(node, observed.uid):
        return False
    return not isinstance(drain(observed, None, CHANGING), NotDrained)
