"""Replace the host under the same Machine: the only way in which a Machine gets a second one.

    record it -> drain -> delete the old host -> it is gone -> delete its Node -> clear spec.providerID -> new host
    -> its Node joins -> forget the record

Each step can be read from what is observed, so after a crash the next reconcile goes on from there. Once recorded it is
seen through: whether the old host was asked to go can't be taken back. A Node of the old host that turns up late is
deleted for as long as the record stands, or, if the new host's kubelet has taken it over, that host is replaced once
more.
"""

from __future__ import annotations

from api.conditions import Reason
from controllers.drain.assess import REQUEUE_AFTER, NotDrained
from controllers.kernel.actions import Action, Delete, DeleteHost, Patch
from controllers.kernel.conditions import Condition, format_time, parse_time
from controllers.kernel.in_place import forbids_replacement
from controllers.kernel.plan import Blocked, Step, Wait, steps
from controllers.kernel.refs import NODE, Obj, ref_of, resource_version_of
from controllers.machine import attempts, deletion_guards, node_takeover, stale_nodes
from controllers.machine.decision import Cause, Decision, infrastructure, up_to_date
from controllers.machine.draining import attached_volumes, drain, drained_condition, warning
from controllers.machine.observe import Observed
from controllers.machine.phases import Stage
from controllers.machine.polling import next_requeue
from providers.base.contract import Host, HostIdentity, HostState

_MOST_EARLIER = 8


def begin(observed: Observed, host: Host, why: str, reason: str = Reason.REPLACING) -> Decision:
    """Write down that this host is to be replaced. Nothing is touched before that is saved. ``reason``: the Event's."""
    before = observed.replaced_host
    earlier = [*stale_nodes.earlier_hosts(observed.machine), before] if before else []
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
    return begin(observed, host, why, Reason.NODE_TAKEN_OVER)


def is_old(observed: Observed, host: Host) -> bool:
    """Whether ``host`` is the one that was recorded to go."""
    return stale_nodes.is_of(host, observed.replaced_host)


def remove_old(observed: Observed, host: Host) -> Decision:
    """Drain the old host's Node, then delete the host, or what is left of it."""
    recorded = observed.status["replacement"]
    why = str(recorded.get("reason") or "the provider can't change it in place")
    stale = up_to_date(False, Reason.REPLACING, why)
    if host.state not in {HostState.DELETING, HostState.UNFINISHED}:
        not_yet = _not_yet(observed, stale)
        if not_yet is not None:
            return not_yet
    attempt = attempts.of_deletion(observed)
    actions: list[Action] = []
    if host.state is not HostState.DELETING and attempts.is_due(attempt, observed):
        actions.append(delete_host(observed, host, f"replace host {host.name}: {why}"))
    failed = attempt is not None and host.state is not HostState.DELETING
    text = attempts.message(attempt) if attempt and failed else f"host {host.name} is being deleted"
    condition = infrastructure(False, str(attempt.error_class) if attempt and failed else Reason.DELETING_HOST, text)
    waiting = attempts.outcome(None if actions else attempt, observed, f"deleting host {host.name}")
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


def forget_old(observed: Observed) -> Decision:
    """The old host is gone: its Node goes, and the Machine is free for the new one.

    A view that lags may show this when the new host runs already: then its kubelet must not lose the Node.
    """
    nodes = [_delete(node) for node in observed.stale_nodes if node_takeover.may_go(node, observed.reads.host)]
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
    return steps([_delete(node) for node in late])


def _delete(node: Obj) -> Action:
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
