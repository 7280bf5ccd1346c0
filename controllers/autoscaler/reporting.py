"""What people are told: the status ConfigMap, a condition on groups that can't be scaled, events on pods and groups."""

from __future__ import annotations

from collections.abc import Iterator

from api import names
from api.conditions import DeploymentCondition, Reason
from controllers.autoscaler import status
from controllers.autoscaler.cluster_state import ClusterState
from controllers.autoscaler.plan import MOST_EVENTS, Decision, ref_of_pod
from controllers.kernel.actions import Action, Create, Event, Patch
from controllers.kernel.conditions import Condition, Moment, find, format_time, merge_in_place
from controllers.kernel.plan import Step, steps
from controllers.kernel.refs import CONFIG_MAP, Key, Obj, Ref, generation_of, ref_of, resource_version_of

_TYPE = DeploymentCondition.SCALING_ACTIVE
_LONGEST = 900


def report(cluster_state: ClusterState, decision: Decision) -> tuple[Step, ...]:
    """Writes first, then the events."""
    problems = problems_of(cluster_state, decision)
    writes = [*_status(cluster_state, decision), *_conditions(cluster_state, problems)]
    return steps(writes, list(_events(cluster_state, decision, problems)))


def problems_of(cluster_state: ClusterState, decision: Decision) -> dict[Ref, tuple[Reason, str]]:
    """Group → why it is not scaled as it says it should be; the message names the field."""
    found = {
        bad.ref: (Reason.INVALID_CONFIGURATION, f"{bad.field}: {bad.message}") for bad in cluster_state.observed.bad
    }
    found |= {
        ref: (Reason.NODES_ELSEWHERE, why)
        for ref, why in cluster_state.elsewhere.items()
        if _unspoken(cluster_state, ref)
    }
    for state in cluster_state.observed.groups:
        if cluster_state.unreachable is not None:
            found[state.group.ref] = (Reason.CONNECTION_DOWN, cluster_state.observed.unreachable)
            continue
        rest = decision.memory.backoffs.get(state.id)
        if state.template is None and state.id in cluster_state.awaiting_template:
            continue
        if state.template is None:
            why = cluster_state.unknown_template.get(state.id, "")
            text = f"{state.problem} ({why})" if why else state.problem
            found[state.group.ref] = (Reason.INVALID_CONFIGURATION, text)
        elif rest is not None and rest.is_on(cluster_state.observed.now):
            found[state.group.ref] = (Reason.BACKED_OFF, f"until {format_time(rest.until)}: {rest.why}")
    return {ref: said for ref, said in found.items() if ref.uid in cluster_state.bodies}


def _unspoken(cluster_state: ClusterState, ref: Ref) -> bool:
    """Whether no other autoscaler has said how the group is: one that is for its Cluster knows better."""
    return _previous(cluster_state.bodies.get(ref.uid) or {}).get("reason") in (None, Reason.NODES_ELSEWHERE)


def _previous(body: Obj) -> Obj:
    return find((body.get("status") or {}).get("conditions"), _TYPE) or {}


def _status(cluster_state: ClusterState, decision: Decision) -> Iterator[Action]:
    now, before, key = cluster_state.observed.now, cluster_state.previous, cluster_state.observed.options.status_key
    old = str(((before or {}).get("data") or {}).get("status") or "")
    said = status.status_of(cluster_state.observed, decision)
    said["message"] = "; ".join(
        filter(
            None,
            [decision.frozen, *(f"no group is called {key}, which --nodes names" for key in cluster_state.missing)],
        )
    )
    text = status.written(said, now)
    if not status.says_the_same(old, text):
        yield configured(key, before, {"status": status.written(said, now, old)}, format_time(now))


def configured(key: Key, before: Obj | None, data: dict[str, str], updated: str = "") -> Create | Patch:
    """The ConfigMap ``key`` with ``data``; others' keys in it stay."""
    why = f"{key.name} is out of date"
    meta = {"annotations": {names.AUTOSCALER_LAST_UPDATED_ANNOTATION: updated}} if updated else {}
    if before is None:
        named = {"namespace": key.namespace, "name": key.name, **meta}
        return Create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": data}, why)
    patch = {"data": data, **({"metadata": meta} if meta else {})}
    return Patch(ref_of(CONFIG_MAP, before), patch, why, resource_version=resource_version_of(before))


def _conditions(cluster_state: ClusterState, problems: dict[Ref, tuple[Reason, str]]) -> Iterator[Patch]:
    """Only on groups that have a problem, or had one; not on those of which another autoscaler tells."""
    by_uid = {ref.uid: said for ref, said in problems.items()}
    others = {ref.uid for ref in cluster_state.elsewhere} - by_uid.keys()
    for uid, body in cluster_state.bodies.items():
        problem = by_uid.get(uid)
        before = (body.get("status") or {}).get("conditions")
        had = find(before, _TYPE)
        if uid in others or (problem is None and had is None):
            continue
        reason, why = problem or (Reason.SCALED, "")
        decided = Condition(_TYPE, "False" if problem else "True", reason, why)
        moment = Moment(generation_of(body), cluster_state.observed.now)
        after = merge_in_place(before, [decided], [_TYPE], moment)
        if after != list(before or ()):
            ref = cluster_state.refs[uid]
            yield Patch(ref, {"status": {"conditions": after}}, f"{_TYPE} is out of date", "status",
                        resource_version_of(body))  # fmt: skip


def _events(
    cluster_state: ClusterState, decision: Decision, problems: dict[Ref, tuple[Reason, str]]
) -> Iterator[Event]:
    for ref, (reason, why) in problems.items():
        previous = _previous(cluster_state.bodies[ref.uid])
        if (previous.get("reason"), previous.get("message")) != (reason, why):
            name = "FailedToScaleUpGroup" if reason == Reason.BACKED_OFF else str(reason)
            yield Event(ref, "Warning", name, why)
    whole = Ref(CONFIG_MAP, cluster_state.observed.options.status_key)
    if decision.frozen:
        yield Event(whole, "Warning", "ClusterUnhealthy", decision.frozen)
    for ref, why in cluster_state.misconfigured.items():
        yield Event(ref, "Warning", Reason.INVALID_CONFIGURATION, why)
    if not cluster_state.awaiting_template:
        yield from _left(decision)


def _left(decision: Decision) -> Iterator[Event]:
    previous = 0
    for left in decision.growing.left:
        if not left.why:
            continue
        why = "; ".join(f"{group}: {reason}" for group, reason in left.why.items())
        for pod in left.pods[: MOST_EVENTS - previous]:
            previous += 1
            yield Event(ref_of_pod(pod), "Normal", "NotTriggerScaleUp", why[:_LONGEST])
