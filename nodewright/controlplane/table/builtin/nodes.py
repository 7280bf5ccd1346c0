"""Nodes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from nodewright.controlplane.table.ages import UNKNOWN
from nodewright.controlplane.table.builtin.basics import age, items
from nodewright.controlplane.table.printer import NONE, Printer, columns, name_of, part
from nodewright.controlplane.values import Obj

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"
_SOFTWARE = ("osImage", "kernelVersion", "containerRuntimeVersion")


def _cells(node: Obj, now: datetime) -> list[Any]:
    status = part(node, "status")
    info = part(status, "nodeInfo")
    return [
        name_of(node),
        _state(node, status),
        _roles(part(node, "metadata", "labels")),
        age(node, now),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        *[info.get(field) or UNKNOWN for field in _SOFTWARE],
    ]


def _state(node: Obj, status: Obj) -> str:
    ready = [c.get("status") == "True" for c in items(status, "conditions") if c.get("type") == "Ready"]
    words = [] if not ready else ["Ready" if ready[-1] else "NotReady"]
    words = words or ["Unknown"]
    if part(node, "spec").get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(labels: dict[str, str]) -> str:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get(_ROLE_LABEL, ""))
    return ",".join(sorted(roles - {""})) or NONE


def _address(status: Obj, type_: str) -> str:
    found = (a.get("address", "") for a in items(status, "addresses") if a.get("type") == type_)
    return next(found, NONE)


PRINTERS = {
    ("v1", "Node"): Printer(
        columns(
            "Name | Status | Roles | Age | Version | +Internal-IP | +External-IP | +OS-Image | +Kernel-Version"
            " | +Container-Runtime"
        ),
        _cells,
    )
}
