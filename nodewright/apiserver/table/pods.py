"""The table of Pods, whose status comes from their containers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from nodewright.apiserver.table.layout import AGE, NAME, Cells, Layout, text, wide
from nodewright.apiserver.table.wording import NONE, age, at, condition, name, parse_time, since
from nodewright.apiserver.values import Obj

_ROW_CONDITIONS: Final = {
    "Succeeded": {
        "type": "Completed",
        "status": "True",
        "reason": "Succeeded",
        "message": "The pod has completed successfully.",
    },
    "Failed": {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."},
}


class _Tally:
    """What the statuses of a pod's containers add up to."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.ready = 0
        self.restarts = 0
        self.last_restart: str | None = None

    def count_restarts(self, status: Obj) -> None:
        self.restarts += int(status.get("restartCount") or 0)
        finished = at(status, "lastState", "terminated", "finishedAt")
        if parse_time(finished) is not None and (self.last_restart is None or finished > self.last_restart):
            self.last_restart = finished


def _cells(pod: Obj, now: datetime) -> Cells:
    tally = _tally(pod)
    restarts = str(tally.restarts)
    if tally.restarts and tally.last_restart:
        restarts = f"{tally.restarts} ({since(tally.last_restart, now)} ago)"
    total = len(at(pod, "spec", "containers", default=())) + sum(
        container.get("restartPolicy") == "Always" for container in at(pod, "spec", "initContainers", default=())
    )
    ips = at(pod, "status", "podIPs", default=())
    return [
        name(pod),
        f"{tally.ready}/{total}",
        _final_reason(pod, tally.reason),
        restarts,
        age(pod, now),
        (ips[0].get("ip") if ips else "") or NONE,
        at(pod, "spec", "nodeName", default="") or NONE,
        at(pod, "status", "nominatedNodeName", default="") or NONE,
        _gates(pod),
    ]


def _tally(pod: Obj) -> _Tally:
    tally = _Tally(_phase_reason(pod))
    sidecars = _Tally("")
    initializing = _count_init_containers(pod, tally, sidecars)
    if initializing and condition(pod, "Initialized").get("status") != "True":
        return tally
    tally.restarts, tally.last_restart = sidecars.restarts, sidecars.last_restart
    running, error = _count_containers(pod, tally)
    if tally.reason == "Completed":
        tally.reason = _despite_completed(pod, running, error)
    return tally


def _count_containers(pod: Obj, tally: _Tally) -> tuple[bool, str]:
    """Say whether one of them runs, and why the first one that failed did."""
    running, error = False, ""
    for status in reversed(at(pod, "status", "containerStatuses", default=())):
        tally.count_restarts(status)
        terminated = at(status, "state", "terminated")
        if at(status, "state", "waiting", "reason"):
            tally.reason = str(at(status, "state", "waiting", "reason"))
        elif terminated is not None:
            tally.reason = _exit_reason(terminated)
            if terminated.get("exitCode"):
                error = tally.reason
        elif status.get("ready") and at(status, "state", "running") is not None:
            running = True
            tally.ready += 1
    return running, error


def _despite_completed(pod: Obj, running: bool, error: str) -> str:
    if running and condition(pod, "Ready").get("status") == "True":
        return "Running"
    if error:
        return error
    return "NotReady" if running else "Completed"


def _phase_reason(pod: Obj) -> str:
    if condition(pod, "PodScheduled").get("reason") == "SchedulingGated":
        return "SchedulingGated"
    return str(at(pod, "status", "reason", default="") or at(pod, "status", "phase", default="Unknown"))


def _count_init_containers(pod: Obj, tally: _Tally, sidecars: _Tally) -> bool:
    specs = {c.get("name"): c for c in at(pod, "spec", "initContainers", default=())}
    for place, status in enumerate(at(pod, "status", "initContainerStatuses", default=())):
        tally.count_restarts(status)
        sidecar = specs.get(status.get("name"), {}).get("restartPolicy") == "Always"
        if sidecar:
            sidecars.count_restarts(status)
        terminated = at(status, "state", "terminated")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if sidecar and status.get("started"):
            tally.ready += bool(status.get("ready"))
            continue
        tally.reason = f"Init:{_holding_up(status) or f'{place}/{len(specs)}'}"
        return True
    return False


def _holding_up(status: Obj) -> str:
    """Why an init container holds up the others; "" if it just takes its time."""
    terminated = at(status, "state", "terminated")
    if terminated is not None:
        return _exit_reason(terminated)
    waiting = str(at(status, "state", "waiting", "reason", default=""))
    return waiting if waiting != "PodInitializing" else ""


def _exit_reason(terminated: Any) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _final_reason(pod: Obj, reason: str) -> str:
    if not at(pod, "metadata", "deletionTimestamp"):
        return reason
    if at(pod, "status", "reason") == "NodeLost":
        return "Unknown"
    return reason if at(pod, "status", "phase") in ("Succeeded", "Failed") else "Terminating"


def _gates(pod: Obj) -> str:
    gates = at(pod, "spec", "readinessGates", default=())
    if not gates:
        return NONE
    passed = sum(condition(pod, gate.get("conditionType", "")).get("status") == "True" for gate in gates)
    return f"{passed}/{len(gates)}"


def _row_conditions(pod: Obj) -> list[Obj]:
    found = _ROW_CONDITIONS.get(str(at(pod, "status", "phase")))
    return [dict(found)] if found else []


LAYOUTS: Final = {
    ("", "Pod"): Layout(
        (
            NAME,
            text("Ready", "Containers that are ready, of all."),
            text("Status", "What the pod's containers add up to."),
            text("Restarts", "How often containers were restarted, and when last."),
            AGE,
            wide(text("IP")),
            wide(text("Node")),
            wide(text("Nominated Node")),
            wide(text("Readiness Gates")),
        ),
        _cells,
        _row_conditions,
    )
}
