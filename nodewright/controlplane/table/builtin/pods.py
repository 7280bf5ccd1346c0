"""Pods: one word for what all their containers do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nodewright.controlplane.table import ages
from nodewright.controlplane.table.builtin.basics import (
    age,
    container_cells,
    deleting,
    has_condition,
    items,
    labels_text,
)
from nodewright.controlplane.table.printer import NONE, Printer, columns, name_of, part
from nodewright.controlplane.values import Obj

_OVER = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
_LOST = "NodeLost"
"""The status reason that the node lifecycle controller gave to pods of a node out of reach."""


@dataclass(slots=True)
class _Restarts:
    count: int = 0
    last: str = ""

    def add(self, status: Obj) -> None:
        self.count += status.get("restartCount", 0)
        finished = part(status, "lastState", "terminated").get("finishedAt") or ""
        # RFC 3339 in UTC and whole seconds, as the server writes it, sorts as text.
        self.last = max(self.last, finished)

    def text(self, now: datetime) -> str:
        return f"{self.count} ({ages.since(self.last, now)} ago)" if self.count and self.last else str(self.count)


@dataclass(slots=True)
class _Summary:
    reason: str
    ready: int = 0
    restarts: _Restarts | None = None


def _cells(pod: Obj, now: datetime) -> list[Any]:
    spec, status = part(pod, "spec"), part(pod, "status")
    summary = _summarise(spec, status)
    if deleting(pod):
        if status.get("reason") == _LOST:
            summary.reason = "Unknown"
        elif status.get("phase") not in _OVER:
            summary.reason = "Terminating"
    total = len(items(spec, "containers")) + len(_sidecars(spec))
    restarts = summary.restarts or _Restarts()
    ips = items(status, "podIPs")
    return [
        name_of(pod),
        f"{summary.ready}/{total}",
        summary.reason,
        restarts.text(now),
        age(pod, now),
        (ips[0].get("ip") if ips else status.get("podIP")) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    ]


def _summarise(spec: Obj, status: Obj) -> _Summary:
    conditions = items(status, "conditions")
    summary = _Summary(status.get("reason") or status.get("phase") or "")
    if any(c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in conditions):
        summary.reason = "SchedulingGated"
    sidecars = _sidecars(spec)
    initializing = _initialize(summary, spec, items(status, "initContainerStatuses"), sidecars)
    if not initializing or has_condition(conditions, "Initialized"):
        _run(summary, status, sidecars)
    return summary


def _sidecars(spec: Obj) -> set[str]:
    """Give the init containers that keep running (KEP-753)."""
    return {c.get("name", "") for c in items(spec, "initContainers") if c.get("restartPolicy") == "Always"}


def _initialize(summary: _Summary, spec: Obj, statuses: list[Obj], sidecars: set[str]) -> bool:
    """Account for the init containers; True if one of them isn't done."""
    summary.restarts = _Restarts()
    for index, status in enumerate(statuses):
        summary.restarts.add(status)
        state = part(status, "state")
        terminated, waiting = state.get("terminated"), part(state, "waiting").get("reason", "")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if status.get("name") in sidecars and status.get("started"):
            summary.ready += bool(status.get("ready"))
            continue
        if terminated is not None:
            summary.reason = f"Init:{_end(terminated)}"
        elif waiting and waiting != "PodInitializing":
            summary.reason = f"Init:{waiting}"
        else:
            summary.reason = f"Init:{index}/{len(items(spec, 'initContainers'))}"
        return True
    return False


def _run(summary: _Summary, status: Obj, sidecars: set[str]) -> None:
    """Account for the containers proper; of several reasons the one of the first container stays."""
    restarts = _Restarts()
    for init in items(status, "initContainerStatuses"):
        if init.get("name") in sidecars:
            restarts.add(init)
    running = False
    for container in reversed(items(status, "containerStatuses")):
        restarts.add(container)
        state = part(container, "state")
        if waiting := part(state, "waiting").get("reason"):
            summary.reason = waiting
        elif state.get("terminated") is not None:
            summary.reason = _end(state["terminated"])
        elif container.get("ready") and state.get("running") is not None:
            running = True
            summary.ready += 1
    if summary.reason == "Completed" and running:
        ready = has_condition(items(status, "conditions"), "Ready")
        summary.reason = "Running" if ready else "NotReady"
    summary.restarts = restarts


def _end(terminated: Obj) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _gates(spec: Obj, status: Obj) -> str:
    gates = items(spec, "readinessGates")
    if not gates:
        return NONE
    conditions: dict[str, str] = {}
    for condition in items(status, "conditions"):
        conditions.setdefault(condition.get("type", ""), condition.get("status", ""))
    passed = sum(conditions.get(gate.get("conditionType", "")) == "True" for gate in gates)
    return f"{passed}/{len(gates)}"


def _conditions(pod: Obj) -> list[Obj] | None:
    phase = part(pod, "status").get("phase", "")
    if phase not in _OVER:
        return None
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _OVER[phase]}]


def _template_cells(template: Obj, now: datetime) -> list[Any]:
    pod = part(template, "template")
    return [name_of(template), *container_cells(part(pod, "spec")), labels_text(part(pod, "metadata", "labels"))]


PRINTERS = {
    ("v1", "Pod"): Printer(
        columns(
            "Name | Ready | Status | Restarts | Age | +IP | +Node | +Nominated Node | +Readiness Gates",
        ),
        _cells,
        _conditions,
    ),
    ("v1", "PodTemplate"): Printer(columns("Name | Containers | Images | Pod Labels"), _template_cells),
}
