"""What people are told: the status ConfigMap, a condition on groups that can't be scaled, events on pods and groups."""

from __future__ import annotations

from collections.abc import Iterator

from api import names
from api.conditions import DeploymentCondition, Reason
from controllers.autoscaler import status
from controllers.autoscaler.plan import MOST_EVENTS, Decision, ref_of_pod
from controllers.autoscaler.standing import Standing
from controllers.kernel.actions import Action, Create, Event, Patch
from controllers.kernel.conditions import Condition, Moment, find, format_time, merge_in_place
from controllers.kernel.plan import Step, steps
from controllers.kernel.refs import CONFIG_MAP, Key, Obj, Ref, generation_of, ref_of, resource_version_of

_TYPE = DeploymentCondition.SCALING_ACTIVE
_LONGEST = 900


def report(standing: Standing, decision: Decision) -> tuple[Step, ...]:
    """Writes first, then the events."""
    problems = problems_of(standing, decision)
    writes = [*_status(standing, decision), *_conditions(standing, problems)]
    return steps(writes, list(_events(standing, decision, problems)))


def problems_of(standing: Standing, decision: Decision) -> dict[Ref, tuple[Reason, str]]:
    """Group → why it is not scaled as it says it should be; the message names the field."""
    found = {bad.ref: (Reason.INVALID_CONFIGURATION, f"{bad.field}: {bad.message}") for bad in standing.observed.bad}
    found |= {ref: (Reason.NODES_ELSEWHERE, why) for ref, why in standing.abroad.items() if _unspoken(standing, ref)}
    for state in standing.observed.groups:
        if standing.unreached is not None:
            found[state.group.ref] = (Reason.CONNECTION_DOWN, standing.observed.unreached)
            continue
        rest = decision.memory.backoffs.get(state.id)
        if state.template is None and state.id in standing.asking:
            continue
        if state.template is None:
            why = standing.shapeless.get(state.id, "")
            text = f"{state.problem} ({why})" if why else state.problem
            found[state.group.ref] = (Reason.INVALID_CONFIGURATION, text)
        elif rest is not None and rest.is_on(standing.observed.now):
            found[state.group.ref] = (Reason.BACKED_OFF, f"until {format_time(rest.until)}: {rest.why}")
    return {ref: said for ref, said in found.items() if ref.uid in standing.bodies}


def _unspoken(standing: Standing, ref: Ref) -> bool:
    """Whether no other autoscaler has said how the group is: one that is for its Cluster knows better."""
    return _told(standing.bodies.get(ref.uid) or {}).get("reason") in (None, Reason.NODES_ELSEWHERE)


def _told(body: Obj) -> Obj:
    return find((body.get("status") or {}).get("conditions"), _TYPE) or {}


def _status(standing: Standing, decision: Decision) -> Iterator[Action]:
    now, before, key = standing.observed.now, standing.told, standing.observed.options.status_key
    old = str(((before or {}).get("data") or {}).get("status") or "")
    said = status.status_of(standing.observed, decision)
    said["message"] = "; ".join(
        filter(None, [decision.frozen, *(f"no group is called {key}, which --nodes names" for key in standing.missing)])
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


def _conditions(standing: Standing, problems: dict[Ref, tuple[Reason, str]]) -> Iterator[Patch]:
    """Only on groups that have a problem, or had one; not on those of which another autoscaler tells."""
    by_uid = {ref.uid: said for ref, said in problems.items()}
    others = {ref.uid for ref in standing.abroad} - by_uid.keys()
    for uid, body in standing.bodies.items():
        problem = by_uid.get(uid)
        before = (body.get("status") or {}).get("conditions")
        had = find(before, _TYPE)
        if uid in others or (problem is None and had is None):
            continue
        reason, why = problem or (Reason.SCALED, "")
        decided = Condition(_TYPE, "False" if problem else "True", reason, why)
        moment = Moment(generation_of(body), standing.observed.now)
        after = merge_in_place(before, [decided], [_TYPE], moment)
        if after != list(before or ()):
            ref = standing.refs[uid]
            yield Patch(ref, {"status": {"conditions": after}}, f"{_TYPE} is out of date", "status",
                        resource_version_of(body))  # fmt: skip


def _events(standing: Standing, decision: Decision, problems: dict[Ref, tuple[Reason, str]]) -> Iterator[Event]:
    for ref, (reason, why) in problems.items():
        told = _told(standing.bodies[ref.uid])
        if (told.get("reason"), told.get("message")) != (reason, why):
            name = "FailedToScaleUpGroup" if reason == Reason.BACKED_OFF else str(reason)
            yield Event(ref, "Warning", name, why)
    whole = Ref(CONFIG_MAP, standing.observed.options.status_key)
    if decision.frozen:
        yield Event(whole, "Warning", "ClusterUnhealthy", decision.frozen)
    for ref, why in standing.misconfigured.items():
        yield Event(ref, "Warning", Reason.INVALID_CONFIGURATION, why)
    if not standing.asking:
        yield from _left(decision)


def _left(decision: Decision) -> Iterator[Event]:
    told = 0
    for left in decision.growing.left:
        if not left.why:
            continue
        why = "; ".join(f"{group}: {reason}" for group, reason in left.why.items())
        for pod in left.pods[: MOST_EVENTS - told]:
            told += 1
            yield Event(ref_of_pod(pod), "Normal", "NotTriggerScaleUp", why[:_LONGEST])
