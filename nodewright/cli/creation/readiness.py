"""What a cluster in the making still waits for: decided from objects alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from controllers.kernel.conditions import find
from controllers.kernel.ownership import controller_of
from controllers.kernel.refs import (
    CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    Kind,
    Obj,
    generation_of,
    is_deleting,
    key_of,
    mapping,
    spec_of,
    status_of,
)

_COUNTS = {
    CONTROL_PLANE: ("replicas", "updatedReplicas", "readyReplicas"),
    MACHINE_DEPLOYMENT: ("replicas", "updatedReplicas", "readyReplicas"),
    MACHINE_SET: ("replicas", "readyReplicas"),
}


def missing(members: Mapping[Kind, Iterable[Obj]]) -> list[str]:
    """What of a Cluster's sets and Machines is not ready yet, each in a few words; empty: all are."""
    found = []
    for kind in _COUNTS:
        for each in members.get(kind, ()):
            if kind != MACHINE_SET or controller_of(each) is None:
                found += _of_set(kind, each)
    for machine in members.get(MACHINE, ()):
        ready = find(status_of(machine).get("conditions"), "Ready") or {}
        if is_deleting(machine) or ready.get("status") != "True":
            why = "is going" if is_deleting(machine) else str(ready.get("reason") or "has not begun")
            found.append(f"Machine {key_of(machine).name}: {why}")
    return found


_CONDITION_OF = {"CustomResourceDefinition": "Established", "APIService": "Available", "Job": "Complete"}
"""Kinds that do their work once a condition holds."""


def waits(obj: Obj) -> str:
    """Why an object of an add-on does not do its work yet, "" if it does.

    Kinds without a rule here are never waited for. The rules are those of ``kubectl rollout status`` and of the
    conditions that each kind has.
    """
    status, spec = status_of(obj), spec_of(obj)
    match obj.get("kind"):
        case "Deployment" | "StatefulSet":
            name = "availableReplicas" if obj.get("kind") == "Deployment" else "readyReplicas"
            return _too_few(obj, int(spec.get("replicas", 1)), ("updatedReplicas", name))
        case "DaemonSet":
            want = status.get("desiredNumberScheduled")
            return _too_few(obj, want if isinstance(want, int) else 1, ("updatedNumberScheduled", "numberAvailable"))
        case str(kind) if kind in _CONDITION_OF:
            return _condition(status, _CONDITION_OF[kind])
    return ""


def _of_set(kind: Kind, obj: Obj) -> list[str]:
    want, status = spec_of(obj).get("replicas", 1), status_of(obj)
    present = status.get("observedGeneration") == generation_of(obj)
    if present and not is_deleting(obj) and all((status.get(name) or 0) == want for name in _COUNTS[kind]):
        return []
    return [f"{kind.name} {key_of(obj).name}: {status.get('readyReplicas') or 0} of {want} ready"]


def _too_few(obj: Obj, want: int, counts: tuple[str, ...]) -> str:
    status = status_of(obj)
    if status.get("observedGeneration") != generation_of(obj):
        return "its controller has not seen it yet"
    have = min(_number(status.get(name)) for name in counts)
    return "" if have >= want else f"{have} of {want} ready"


def _condition(status: Mapping[str, Any], type_: str) -> str:
    found = mapping(find(status.get("conditions"), type_))
    return "" if found.get("status") == "True" else f"not {type_}"


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
