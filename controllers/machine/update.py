"""The spec has changed and the host has not: ask the provider, which decides in place or replace (KEP-3)."""

from __future__ import annotations

from datetime import timedelta

from api.conditions import Reason
from controllers.drain.assess import REQUEUE_AFTER, NotDrained
from controllers.drain.cordon import is_cordoned_for, uncordon
from controllers.kernel.actions import Action, UpdateHost
from controllers.kernel.conditions import Condition
from controllers.kernel.in_place import forbids_replacement
from controllers.kernel.plan import Blocked, Wait, steps
from controllers.kernel.refs import runs_control_plane
from controllers.machine import attempts, replacement
from controllers.machine.bootstrap_data import before_replacement, is_being_found_out, with_upgrade
from controllers.machine.decision import Cause, Decision, infrastructure, up_to_date
from controllers.machine.draining import drain, drained_condition, warning
from controllers.machine.observe import Observed
from controllers.machine.phases import Stage
from providers.base.contract import (
    Host,
    HostRequest,
    HostState,
    InProgress,
    NeedsDrain,
    NeedsReplacement,
    Updated,
)

_RUNS = {HostState.RUNNING, HostState.UPDATING}
CHANGING = "the host is changed in place"


def decide(observed: Observed, request: HostRequest, host: Host) -> Decision:
    """The next step of bringing ``host`` to ``request``."""
    attempt = attempts.current(observed)
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
            # The provider's answer would be kept for this spec, and would still count once the API server is newer.
            return _stays(observed, host, waits)
        case None:
            return _ask(observed, request, host)


def _ask(observed: Observed, request: HostRequest, host: Host, *, how_far: str = "") -> Decision:
    if observed.reads.in_flight:
        return _updating(host, Wait(2.0, f"{observed.reads.in_flight} of host {host.name} is running"))
    if is_being_found_out(observed.bootstrapping) and not observed.reads.problems:
        # Right after a start. Asked now, the provider would answer for good that nobody says how.
        return _updating(host, Wait(1.0, "it is being found out how its host is to be changed"), how_far=how_far)
    ask = _update(observed, request, host, f"host {host.name} is not as its Machine asks")
    return _updating(host, Wait(1.0, "the provider was asked to change the host"), ask, how_far=how_far)


def _waits_for_api_server(observed: Observed) -> Cause | None:
    """Its kubelet would be of a version that the API server does not go with."""
    refused = observed.bootstrapping.refused if observed.bootstrapping is not None else None
    return Cause(refused.reason, refused.message) if refused and refused.reason == Reason.VERSION_SKEW else None


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
    if observed.reads.in_flight:
        return _updating(host, Wait(2.0, CHANGING))
    ask = _update(observed, request, host, f"Node is drained, host {host.name} can be changed", drained=True)
    return _updating(host, Wait(1.0, "the provider was asked to change the host"), ask)


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
        return replacement.begin(observed, host, why)
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
    attempt = attempts.current(observed)
    assert attempt is not None
    actions: list[Action] = []
    if attempts.is_due(attempt, observed):
        actions.append(_update(observed, request, host, f"ask again to change host {host.name}"))
    failure = attempts.terminal(attempt)
    stage = Stage.UPDATE_STUCK if failure and observed.node is not None else Stage.UPDATING
    return Decision(
        stage,
        steps(actions),
        attempts.outcome(None if actions else attempt, observed, f"changing host {host.name}"),
        infrastructure=_as_it_is(host),
        up_to_date=up_to_date(False, attempt.error_class, attempts.message(attempt)),
        failure=failure,
        warning=Cause(attempt.error_class, attempts.message(attempt)),
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
