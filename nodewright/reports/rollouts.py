"""Rollouts as lanes: a deployment's MachineSets side by side, what may be disturbed at once, and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from api.conditions import DeploymentCondition
from api.intorstring import IntOrStringError, resolve
from api.names import CAPI_REVISION_ANNOTATION, REVISION_ANNOTATION
from controllers.kernel.conditions import find, format_time
from controllers.kernel.ownership import controlled
from controllers.kernel.refs import MACHINE_SET, Obj, annotations_of, key_of
from controllers.kernel.view import View
from controllers.machinedeployment.spec import DisruptionBudget, read_budgets
from nodewright.reports.json_parts import number, part, text

MOST = 300
"""Deployments of one answer; those on their way stand first."""
MOST_LANES = 12
_SHOWN = (DeploymentCondition.PROGRESSING, DeploymentCondition.DISRUPTION_ALLOWED, DeploymentCondition.SCALING_DOWN,
         DeploymentCondition.MACHINES_READY)  # fmt: skip


def rollouts(deployments: Iterable[Obj], view: View) -> dict[str, Any]:
    """All deployments as values; ``leftOut`` counts those beyond MOST."""
    found = [_rollout(each, view) for each in deployments]
    found.sort(key=lambda each: (each["state"] == "done", each["namespace"], each["name"]))
    return {"rollouts": found[:MOST], "leftOut": max(0, len(found) - MOST)}


def _rollout(deployment: Obj, view: View) -> dict[str, Any]:
    key, spec, status = key_of(deployment), part(deployment, "spec"), part(deployment, "status")
    wanted = number(spec, "replicas", default=1)
    rolling = part(spec, "strategy", "rollingUpdate")
    budgets = read_budgets(part(spec, "strategy").get("disruptionBudgets"), wanted)
    sets = controlled(deployment, MACHINE_SET, view)
    lanes = sorted((_lane(each) for each in sets), key=lambda lane: -int(lane["revision"]))
    kept = [lane for lane in lanes if lane["machines"] or lane["replicas"]] or lanes[:1]
    return {
        "namespace": key.namespace,
        "name": key.name,
        "cluster": text(spec, "template", "spec", "clusterName"),
        "replicas": wanted,
        "updated": number(status, "updatedReplicas"),
        "ready": number(status, "readyReplicas"),
        "available": number(status, "availableReplicas"),
        "deleting": number(status, "deletingReplicas"),
        "paused": spec.get("paused") is True,
        "strategy": text(spec, "strategy", "type") or "RollingUpdate",
        "inPlace": text(rolling, "inPlace") or "Never",
        "limits": _limits(rolling, wanted),
        "state": _state(status, wanted, spec.get("paused") is True),
        "lanes": kept[:MOST_LANES],
        "budgets": [_budget(each, view.now) for each in budgets],
        "conditions": [_condition(each) for type_ in _SHOWN if (each := find(status.get("conditions"), type_))],
    }  # fmt: skip


def _state(status: Mapping[str, Any], wanted: int, paused: bool) -> str:
    """done, going, paused or failed; one that is scaled up is on its way too."""
    progressing = find(status.get("conditions"), DeploymentCondition.PROGRESSING) or {}
    done = (
        number(status, "updatedReplicas") == number(status, "replicas") == number(status, "availableReplicas") == wanted
    )
    if progressing.get("status") == "False" and not paused and not done:
        return "failed"
    if done and progressing.get("reason") != "RollingOut":
        return "done"
    return "paused" if paused else "going"


def _lane(machine_set: Obj) -> dict[str, Any]:
    status, spec, marks = part(machine_set, "status"), part(machine_set, "spec"), annotations_of(machine_set)
    revision = marks.get(REVISION_ANNOTATION) or marks.get(CAPI_REVISION_ANNOTATION) or "0"
    machines = number(status, "replicas")
    return {
        "set": key_of(machine_set).name,
        "revision": int(revision) if revision.isascii() and revision.isdigit() and len(revision) < 10 else 0,
        "version": text(spec, "template", "spec", "versions", "kubelet"),
        "replicas": number(spec, "replicas"),
        "machines": machines,
        "ready": min(number(status, "readyReplicas"), machines),
        "since": text(machine_set, "metadata", "creationTimestamp"),
    }


def _limits(rolling: Mapping[str, Any], wanted: int) -> dict[str, Any]:
    """As they are written, and the Machines that they come to: 25 % of 10 Machines is a surge of 3."""
    surge, missing = rolling.get("maxSurge", 1), rolling.get("maxUnavailable", 0)
    return {
        "maxSurge": str(surge)[:20],
        "surge": _resolved(surge, wanted, "up"),
        "maxUnavailable": str(missing)[:20],
        "unavailable": _resolved(missing, wanted, "down"),
        "partition": _resolved(rolling.get("partition", 0), wanted, "up"),
    }


def _resolved(value: Any, wanted: int, way: Any) -> int:
    try:
        return resolve(value, wanted, way)
    except IntOrStringError:
        return 0


def _budget(budget: DisruptionBudget, now: datetime) -> dict[str, Any]:
    """``holds``: it limits now. ``changes``: when that is next different, "" never."""
    changes = budget.changes(now)
    return {
        "nodes": budget.nodes,
        "schedule": budget.schedule,
        "seconds": int(budget.duration.total_seconds()),
        "reasons": list(budget.reasons),
        "holds": budget.holds(now),
        "changes": format_time(changes) if changes is not None else "",
        "problem": budget.problem,
    }


def _condition(condition: Mapping[str, Any]) -> dict[str, str]:
    return {name: text(condition, name) for name in ("type", "status", "reason", "message", "lastTransitionTime")}
