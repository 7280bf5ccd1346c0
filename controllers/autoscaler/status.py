"""The text of the ConfigMap ``cluster-autoscaler-status``, in the shape that the Cluster Autoscaler gives it.

It is only written when it says something new: its times are those of the last writing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import orjson

from api import yamltext
from controllers.autoscaler.cluster_state import ClusterState, GroupState
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.health import Counts, count, count_all, unhealthy, upcoming
from controllers.kernel.conditions import format_time

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
