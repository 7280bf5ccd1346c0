"""What users see: the status ConfigMap, a condition on groups that can't be scaled, events on pods and groups."""

from __future__ import annotations

from collections.abc import Iterator

from api import names
from api.conditions import DeploymentCondition, Reason
from controllers.autoscaler import publishing, status
from controllers.autoscaler.capacity_reports import capacity_events, capacity_writes
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.observe import Observed
from controllers.kernel.actions import Action, Create, Event, Patch
from controllers.kernel.conditions import Condition, Moment, find, format_time, merge_in_place
from controllers.kernel.plan import Step, steps
from controllers.kernel.refs import CONFIG_MAP, POD, Key, Obj, Ref, generation_of, ref_of, resource_version_of
from controllers.scheduling.shapes import PodInfo

_TYPE = DeploymentCondition.SCALING_ACTIVE
_LONGEST = 900
MOST_EVENTS = 50
"""Pods that get an event in one reconcile: which group grew for them, or why none did."""


def ref_of_pod(pod: PodInfo) -> Ref:
    return Ref(POD, Key(pod.namespace, pod.name), pod.uid)


def report(observed: Observed, decision: Decision) -> tuple[Step, ...]:
    """Writes first, then the events."""
    problems = problems_of(observed, decision)
    writes = [*_status(observed, decision), *_conditions(observed, problems)]
    if decision.buffers or observed.cluster.capacity.quotas:
        writes += capacity_writes(observed, decision)
    events = list(_events(observed, decision, problems))
    return steps(writes, [*events, *(capacity_events(decision) if decision.buffers else ())])


def problems_of(observed: Observed, decision: Decision) -> dict[Ref, tuple[Reason, str]]:
    """Group → why it is not scaled as it says it should be; the message names the field."""
    found = {bad.ref: (Reason.INVALID_CONFIGURATION, f"{bad.field}: {bad.message}") for bad in observed.cluster.bad}
    found |= {
        ref: (Reason.NODES_ELSEWHERE, why) for ref, why in observed.scope.elsewhere.items() if _unspoken(observed, ref)
    }
    for state in observed.cluster.groups:
        if observed.scope.outage is not None:
            found[state.group.ref] = (Reason.CONNECTION_DOWN, observed.cluster.health.unreachable)
            continue
        rest = decision.memory.backoffs.get(state.id)
        if state.template is None and state.id in observed.templates.awaiting:
            continue
        if state.template is None:
            why = observed.templates.unknown.get(state.id, "")
            text = f"{state.problem} ({why})" if why else state.problem
            found[state.group.ref] = (Reason.INVALID_CONFIGURATION, text)
        elif rest is not None and rest.is_on(observed.cluster.now):
            found[state.group.ref] = (Reason.BACKED_OFF, f"until {format_time(rest.until)}: {rest.why}")
    return {ref: conditions for ref, conditions in found.items() if ref.uid in observed.records.bodies}


def _unspoken(observed: Observed, ref: Ref) -> bool:
    """Whether no other autoscaler has said how the group is: one that is for its Cluster knows better."""
    return _previous(observed.records.bodies.get(ref.uid) or {}).get("reason") in (None, Reason.NODES_ELSEWHERE)


def _previous(body: Obj) -> Obj:
    return find((body.get("status") or {}).get("conditions"), _TYPE) or {}


def _status(observed: Observed, decision: Decision) -> Iterator[Action]:
    now, before, key = observed.cluster.now, observed.records.status, observed.cluster.options.status_key
    old = {str(name): str(text) for name, text in ((before or {}).get("data") or {}).items()}
    conditions = status.status_of(observed.cluster, decision)
    conditions["message"] = "; ".join(
        filter(
            None,
            [decision.frozen, *(f"no group is called {key}, which --nodes names" for key in observed.scope.missing)],
        )
    )
    beside = {
        publishing.OPTIONS: publishing.options_text(observed.cluster.options),
        publishing.DECISIONS: publishing.decisions_text(old.get(publishing.DECISIONS, ""), decision, now),
    }
    then = old.get("status", "")
    is_same = status.says_the_same(then, status.written(conditions, now))
    if not is_same or any(old.get(name, "") != text for name, text in beside.items()):
        text = then if is_same else status.written(conditions, now, then)
        yield configured(key, before, data={"status": text, **beside}, updated=format_time(now))


def configured(key: Key, before: Obj | None, *, data: dict[str, str], updated: str = "") -> Create | Patch:
    """The ConfigMap ``key`` with ``data``; others' keys in it stay."""
    why = f"{key.name} is out of date"
    meta = {"annotations": {names.AUTOSCALER_LAST_UPDATED_ANNOTATION: updated}} if updated else {}
    if before is None:
        named = {"namespace": key.namespace, "name": key.name, **meta}
        return Create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": data}, why)
    patch = {"data": data, **({"metadata": meta} if meta else {})}
    return Patch(ref_of(CONFIG_MAP, before), patch, why, resource_version=resource_version_of(before))


def _conditions(observed: Observed, problems: dict[Ref, tuple[Reason, str]]) -> Iterator[Patch]:
    """Only on groups that have a problem, or had one; not on those of which another autoscaler tells."""
    by_uid = {ref.uid: conditions for ref, conditions in problems.items()}
    others = {ref.uid for ref in observed.scope.elsewhere} - by_uid.keys()
    for uid, body in observed.records.bodies.items():
        problem = by_uid.get(uid)
        before = (body.get("status") or {}).get("conditions")
        had = find(before, _TYPE)
        if uid in others or (problem is None and had is None):
            continue
        reason, why = problem or (Reason.SCALED, "")
        decided = Condition(_TYPE, "False" if problem else "True", reason, why)
        moment = Moment(generation_of(body), observed.cluster.now)
        after = merge_in_place(before, [decided], [_TYPE], moment)
        if after != list(before or ()):
            ref = observed.records.refs[uid]
            yield Patch(ref, {"status": {"conditions": after}}, f"{_TYPE} is out of date", "status",
                        resource_version_of(body))  # fmt: skip


def _events(observed: Observed, decision: Decision, problems: dict[Ref, tuple[Reason, str]]) -> Iterator[Event]:
    for ref, (reason, why) in problems.items():
        previous = _previous(observed.records.bodies[ref.uid])
        if (previous.get("reason"), previous.get("message")) != (reason, why):
            name = "FailedToScaleUpGroup" if reason == Reason.BACKED_OFF else str(reason)
            yield Event(ref, "Warning", name, why)
    whole = Ref(CONFIG_MAP, observed.cluster.options.status_key)
    if decision.frozen:
        yield Event(whole, "Warning", "ClusterUnhealthy", decision.frozen)
    for ref, why in observed.records.misconfigured.items():
        yield Event(ref, "Warning", Reason.INVALID_CONFIGURATION, why)
    if not observed.templates.awaiting:
        yield from _left(decision)


def _left(decision: Decision) -> Iterator[Event]:
    previous = 0
    for left in decision.scale_up.left:
        if not left.why and not left.gang:
            continue
        why = "; ".join(filter(None, [left.gang, *(f"{group}: {reason}" for group, reason in left.why.items())]))
        for pod in left.pods[: MOST_EVENTS - previous]:
            previous += 1
            yield Event(ref_of_pod(pod), "Normal", "NotTriggerScaleUp", why[:_LONGEST])
