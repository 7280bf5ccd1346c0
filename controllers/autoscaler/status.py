"""What users see of the autoscaler: the status ConfigMap, a condition on groups, events on pods and groups.

The text of the ConfigMap ``cluster-autoscaler-status``, in the shape that the Cluster Autoscaler gives it.

It is only written when it says something new: its times are those of the last writing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import orjson

from api import names, yamltext
from api.conditions import DeploymentCondition, Reason
from controllers.autoscaler.capacity_reports import capacity_events, capacity_writes
from controllers.autoscaler.cluster_state import ClusterState, GroupState
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.health import Counts, count, count_all, unhealthy, upcoming
from controllers.autoscaler.metrics import DECISIONS, OPTIONS, decisions_text, options_text
from controllers.autoscaler.observe import Observed
from controllers.kernel.actions import Action, Create, Event, Patch
from controllers.kernel.conditions import Condition, Moment, find, format_time, merge_in_place
from controllers.kernel.plan import Step, steps
from controllers.kernel.refs import CONFIG_MAP, POD, Key, Obj, Ref, generation_of, ref_of, resource_version_of
from controllers.scheduling.shapes import PodInfo

_TIMES = re.compile(r"^\s*(?:- )?(?:time|lastProbeTime|lastTransitionTime): .*\n", re.MULTILINE)
_PARTS = ("health", "scaleUp", "scaleDown")


def status_of(cluster: ClusterState, decision: Decision) -> dict[str, Any]:
    """All that it says, without times."""
    counts = {state.id: count(state, cluster) for state in cluster.groups}
    coming = {state.id: upcoming(state, cluster) for state in cluster.groups}
    candidates = _candidates(cluster, decision)
    resting = {name for name, rest in decision.memory.backoffs.items() if rest.is_on(cluster.now)}
    moving = any(coming.values()) or bool(decision.scale_up.added)
    return {
        "autoscalerStatus": "Running",
        "message": decision.frozen,
        "clusterWide": {
            "health": {
                "status": "Unhealthy" if unhealthy(cluster) else "Healthy",
                "nodeCounts": _nodes(count_all(cluster, counts.values())),
            },
            "scaleUp": {"status": "InProgress" if moving else "NoActivity"},
            "scaleDown": _scale_down(sum(candidates.values())),
        },
        "nodeGroups": [
            {
                "name": state.id,
                "health": {
                    "status": "Unhealthy" if _is_ill(counts[state.id], cluster) else "Healthy",
                    "nodeCounts": _nodes(counts[state.id]),
                    "cloudProviderTarget": state.group.replicas + decision.changes.get(state.id, 0),
                    "minSize": state.group.bounds.min_size,
                    "maxSize": state.group.bounds.max_size,
                },
                "scaleUp": _scale_up(state, decision, coming=coming[state.id], resting=state.id in resting),
                "scaleDown": _scale_down(candidates[state.id]),
            }
            for state in cluster.groups
        ],
    }


def says_the_same(before: str, text: str) -> bool:
    """Two texts, but for their times."""
    return _TIMES.sub("", before) == _TIMES.sub("", text)


def written(status: Mapping[str, Any], now: datetime, before: str = "") -> str:
    """As YAML with times. An entry of ``before`` with the same status keeps its transition time."""
    earlier = _read(before)
    stamped = {"time": format_time(now), **status}
    stamped["clusterWide"] = _stamped(status["clusterWide"], earlier.get("clusterWide"), now=now)
    known = {group.get("name"): group for group in earlier.get("nodeGroups") or () if isinstance(group, Mapping)}
    stamped["nodeGroups"] = [_stamped(group, known.get(group["name"]), now=now) for group in status["nodeGroups"]]
    return "\n".join(_lines(stamped)) + "\n"


def _stamped(status: Mapping[str, Any], before: Any, *, now: datetime) -> dict[str, Any]:
    found = dict(status)
    for part in _PARTS:
        old = before.get(part) if isinstance(before, Mapping) else None
        same = isinstance(old, Mapping) and old.get("status") == status[part]["status"]
        since = str(old.get("lastTransitionTime") or format_time(now)) if same and old else format_time(now)
        found[part] = {**status[part], "lastProbeTime": format_time(now), "lastTransitionTime": since}
    return found


_BOUNDS = yamltext.Bounds(numbers="none", values=200_000)
"""A status of a thousand groups is ours, and fits."""


def _read(text: str) -> Mapping[str, Any]:
    """Somebody may have written anything there. Times stay text."""
    try:
        found = yamltext.load(text, _BOUNDS)
    except yamltext.TextError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _lines(value: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """YAML in blocks; every scalar as JSON writes it, which is YAML too. ``yaml.dump`` takes a hundred times longer."""
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield f"{indent}{key}:"
            yield from _lines(inner, f"{indent}  ")
        elif isinstance(inner, list) and inner:
            yield f"{indent}{key}:"
            for each in inner:
                first, *rest = _lines(each, f"{indent}  ")
                yield f"{indent}- {first.strip()}"
                yield from rest
        else:
            yield f"{indent}{key}: {orjson.dumps(inner).decode()}"


def _nodes(counts: Counts) -> dict[str, Any]:
    found = asdict(counts)
    return {
        "registered": {
            "total": counts.registered,
            "ready": found["ready"],
            "notStarted": found["not_started"],
            "beingDeleted": found["being_deleted"],
            "unready": {"total": found["unready"], "resourceUnready": 0},
        },
        "longUnregistered": found["long_unregistered"],
        "unregistered": found["unregistered"],
    }


def _is_ill(counts: Counts, cluster: ClusterState) -> bool:
    limits = cluster.options.health
    bad = counts.unready + counts.long_unregistered
    return bad > max(limits.ok_unready, limits.most_unready * (counts.registered + counts.long_unregistered))


def _scale_up(state: GroupState, decision: Decision, *, coming: int, resting: bool) -> dict[str, Any]:
    if resting:
        why = decision.memory.backoffs[state.id].why
        code = why.partition(":")[0]
        return {"status": "Backoff", "backoffInfo": {"errorCode": code, "errorMessage": why}}
    return {"status": "InProgress" if coming or decision.scale_up.added.get(state.id) else "NoActivity"}


def _scale_down(candidates: int) -> dict[str, Any]:
    return {"status": "CandidatesPresent" if candidates else "NoCandidates", "candidates": candidates}


def _candidates(cluster: ClusterState, decision: Decision) -> dict[str, int]:
    unneeded = decision.scale_down.unneeded
    return {state.id: sum(1 for m in state.machines if m.node_name in unneeded) for state in cluster.groups}


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
    conditions = status_of(observed.cluster, decision)
    conditions["message"] = "; ".join(
        filter(
            None,
            [decision.frozen, *(f"no group is called {key}, which --nodes names" for key in observed.scope.missing)],
        )
    )
    beside = {
        OPTIONS: options_text(observed.cluster.options),
        DECISIONS: decisions_text(old.get(DECISIONS, ""), decision, now),
    }
    then = old.get("status", "")
    is_same = says_the_same(then, written(conditions, now))
    if not is_same or any(old.get(name, "") != text for name, text in beside.items()):
        text = then if is_same else written(conditions, now, then)
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
        for pod in [pod for pod in left.pods if pod.uid][: MOST_EVENTS - previous]:
            previous += 1
            yield Event(ref_of_pod(pod), "Normal", "NotTriggerScaleUp", why[:_LONGEST])
