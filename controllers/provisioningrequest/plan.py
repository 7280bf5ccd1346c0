"""Observed → Plan: first what must be kept, then the sizes of all groups at once, then what is reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from api.conditions import ProvisioningCondition
from controllers.autoscaler import record as records
from controllers.autoscaler.candidates import to_create
from controllers.autoscaler.cluster_state import ClusterState
from controllers.autoscaler.health import unhealthy
from controllers.autoscaler.plan import why_not
from controllers.kernel.actions import Action, Delete, Event, Patch
from controllers.kernel.conditions import Condition, Moment, counted, find, merge_in_place
from controllers.kernel.plan import Plan, Settled, Step, Wait, steps
from controllers.kernel.refs import Key, generation_of, resource_version_of
from controllers.provisioningrequest.consumers import consumer_events
from controllers.provisioningrequest.deciding import NEXT_REQUEUE, Decided, decide_all, end_of_booking
from controllers.provisioningrequest.metrics import samples
from controllers.provisioningrequest.observe import Observed
from controllers.provisioningrequest.rollback import Leaving, plan_leaving
from controllers.provisioningrequest.stages import Stage
from controllers.provisioningrequest.trial_snapshot import TrialSnapshot
from controllers.scaling.resize import Resize, Scaler, Scaling

_AT_REST = frozenset({Stage.OTHERS, Stage.UNKNOWN_CLASS, Stage.OVER, Stage.OLD})
_AT_ONCE = timedelta(milliseconds=100)
_IDLE = timedelta(minutes=1)
"""How often requests are looked at of which nothing is expected but that they grow old."""
_EVENT_TYPES = (
    (ProvisioningCondition.PROVISIONED, "True", "Normal"),
    (ProvisioningCondition.PROVISIONED, "False", "Warning"),
    (ProvisioningCondition.FAILED, "True", "Warning"),
    (ProvisioningCondition.BOOKING_EXPIRED, "True", "Normal"),
    (ProvisioningCondition.CAPACITY_REVOKED, "True", "Warning"),
    (ProvisioningCondition.ACCEPTED, "False", "Warning"),
)


def plan(observed: Observed) -> Plan:
    options = observed.autoscaler.cluster.options
    pause = why_not(observed.autoscaler) or observed.autoscaler.cluster.health.unreachable
    if pause:
        return Plan(steps=(), outcome=Wait(options.scan_interval.total_seconds(), pause), notes=(pause,))
    trial_snapshot = TrialSnapshot(_without_ended(observed))
    decided = decide_all(observed, trial_snapshot)
    leaving = Leaving(marked=True)
    if not unhealthy(observed.autoscaler.cluster):
        leaving = plan_leaving((key for each in decided for key in _going(each)), observed.autoscaler.cluster)
    unsettled = bool(decided or leaving.marked or observed.waiting)
    return Plan(
        steps=_steps(observed, decided, leaving),
        outcome=Wait(_pause(observed, decided).total_seconds(), "the next look") if unsettled else Settled(),
        notes=tuple(f"{each.request.ref}: {each.note}" for each in decided if each.note),
        samples=samples(observed, decided, trial_snapshot),
    )


def _pause(observed: Observed, decided: Iterable[Decided]) -> timedelta:
    """Until the next look."""
    if any(each.note == NEXT_REQUEUE for each in decided):
        return _AT_ONCE
    busy = any(each.stage not in _AT_REST for each in decided)
    return observed.autoscaler.cluster.options.scan_interval if busy else _IDLE


def _without_ended(observed: Observed) -> ClusterState:
    """The cluster in which bookings that end now hold nothing any more."""
    cluster = observed.autoscaler.cluster
    requests = (replace(each, ended=end_of_booking(each, observed) is not None) for each in cluster.requests)
    return replace(cluster, capacity=replace(cluster.capacity, requests=tuple(requests)))


def _going(decided: Decided) -> Sequence[Key]:
    """Machines that are written down as leaving; what is decided only now is first written down."""
    return decided.request.record.leaving if decided.record is None else ()


def _steps(observed: Observed, decided: Sequence[Decided], leaving: Leaving) -> tuple[Step, ...]:
    """What is kept comes before what is done. All groups are scaled in one step, each by one write."""
    kept: list[Action] = [patch for each in decided if (patch := _status(each, observed)) is not None]
    gone: list[Action] = [Delete(each.request.ref, each.delete) for each in decided if each.delete]
    events: list[Action] = list(_events(decided, kept))
    events += consumer_events(observed.waiting, observed.requests, dict(observed.classes))
    scaling = Scaling(
        scaler=Scaler.PROVISIONING_REQUEST,
        going=leaving.going,
        staying=leaving.staying,
        sizes=_sizes(observed, decided, leaving),
        groups=to_create(observed.autoscaler.cluster, _added(decided)),
    )
    return (*steps(kept), *scaling.steps(), *steps(gone, events))


def _sizes(observed: Observed, decided: Iterable[Decided], leaving: Leaving) -> list[Resize]:
    """One per group that gets another size."""
    more, found = _added(decided), list[Resize]()
    for state in observed.autoscaler.cluster.groups:
        added, fewer = more[state.id], leaving.fewer.get(state.id, 0)
        if added == fewer:
            continue
        sentences = [f"{counted(added, 'Node')} more for ProvisioningRequests"] if added else []
        sentences += [f"{counted(fewer, 'Machine')} of requests that are rolled back"] if fewer else []
        size = state.group.replicas + added - fewer
        found.append(Resize(group=state.group, replicas=size, why="; ".join(sentences)))
    return found


def _added(decided: Iterable[Decided]) -> Counter[str]:
    """Group → Nodes that it gets more for all requests together."""
    more: Counter[str] = Counter()
    for each in decided:
        more.update(each.added)
    return more


def _status(decided: Decided, observed: Observed) -> Patch | None:
    """Only the difference; guarded, since a list is replaced."""
    request = decided.request
    status: dict[str, object] = {}
    forgotten = _forgotten(decided.conditions)
    moment = Moment(generation_of(request.body), observed.now)
    after = merge_in_place(request.conditions, decided.conditions, forgotten, moment)
    if after != list(request.conditions):
        status["conditions"] = after
    details = (request.body.get("status") or {}).get("provisioningClassDetails") or {}
    if decided.record is not None:
        wanted = records.write(decided.record)
        stale = {key: None for key in details if records.is_owned(key) and key not in wanted}
        changed = {key: text for key, text in wanted.items() if details.get(key) != text}
        if changed or stale:
            status["provisioningClassDetails"] = {**changed, **stale}
    if not status:
        return None
    why = decided.conditions[-1].message if decided.conditions else "its booking moves"
    return Patch(request.ref, {"status": status}, why, "status", resource_version_of(request.body))


def _forgotten(conditions: Sequence[Condition]) -> tuple[str, ...]:
    """A request that is processed again has not failed."""
    current = {condition.type for condition in conditions}
    taken_up = ProvisioningCondition.PROVISIONED in current and ProvisioningCondition.FAILED not in current
    return (ProvisioningCondition.FAILED,) if taken_up else ()


def _events(decided: Iterable[Decided], kept: Iterable[Action]) -> Iterator[Event]:
    """Events for what has changed; a changed number alone makes none."""
    written = {action.target for action in kept if isinstance(action, Patch)}
    for each in decided:
        if each.request.ref not in written:
            continue
        for condition in each.conditions:
            event_type = next(
                (kind for t, s, kind in _EVENT_TYPES if (t, s) == (condition.type, condition.status)), None
            )
            before = find(each.request.conditions, condition.type) or {}
            if event_type and (before.get("status"), before.get("reason")) != (condition.status, condition.reason):
                normal = event_type == "Normal" or condition.reason == "ProvisioningInProgress"
                yield Event(each.request.ref, "Normal" if normal else "Warning", condition.reason, condition.message)
