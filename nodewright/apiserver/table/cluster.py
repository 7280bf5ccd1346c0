"""The tables of what keeps a cluster in order: Nodes, Namespaces, events, leases, quotas, priorities, webhooks."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from nodewright.apiserver.table.layout import AGE, NAME, Cells, Layout, boolean, number, text, wide
from nodewright.apiserver.table.wording import (
    NONE,
    UNKNOWN,
    age,
    at,
    condition,
    joined,
    name,
    since,
)
from nodewright.apiserver.values import Column, Obj

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"


def _node_state(obj: Obj) -> str:
    ready = condition(obj, "Ready")
    state = "Unknown" if not ready else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{state},SchedulingDisabled" if at(obj, "spec", "unschedulable") else state


def _roles(obj: Obj) -> set[str]:
    labels = at(obj, "metadata", "labels", default={})
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return {role for role in (*roles, labels.get("kubernetes.io/role", "")) if role}


def _node(obj: Obj, now: datetime) -> Cells:
    info = at(obj, "status", "nodeInfo", default={})
    kernel = str(info.get("kernelVersion") or UNKNOWN)
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        name(obj),
        _node_state(obj),
        joined(sorted(_roles(obj))) or NONE,
        age(obj, now),
        info.get("kubeletVersion", ""),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _address(obj: Obj, kind: str) -> str:
    addresses = at(obj, "status", "addresses", default=())
    return next((str(a.get("address", "")) for a in addresses if a.get("type") == kind), NONE)


def _event(obj: Obj, now: datetime) -> Cells:
    """Fill the row of an event of either group: core/v1 and events.k8s.io/v1 name the same things differently."""
    target = at(obj, "involvedObject", default=None) or at(obj, "regarding", default={})
    first = since(_field(obj, "firstTimestamp", "deprecatedFirstTimestamp") or obj.get("eventTime"), now)
    last_seen = _field(obj, "lastTimestamp", "deprecatedLastTimestamp")
    last = since(last_seen, now) if last_seen else first
    count = _field(obj, "count", "deprecatedCount") or 1
    series = obj.get("series")
    if series:
        last, count = since(series.get("lastObservedTime"), now), series.get("count", 0)
    named = str(target.get("kind", "")).lower()
    if target.get("name"):
        named += f"/{target['name']}"
    source = _field(obj, "source", "deprecatedSource") or {}
    component = source.get("component") or _field(obj, "reportingComponent", "reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        named,
        target.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        str(_field(obj, "message", "note") or "").strip(),
        first,
        count,
        name(obj),
    ]


def _field(obj: Obj, *names: str) -> Any:
    return next((obj[key] for key in names if obj.get(key)), None)


_EVENT: Final = Layout(
    (
        text("Last Seen"),
        text("Type"),
        text("Reason"),
        text("Object", "What the event is about."),
        wide(text("Subobject")),
        wide(text("Source", "Who reported it.")),
        text("Message"),
        wide(text("First Seen")),
        wide(text("Count")),
        Column("Name", "string", "", NAME.description, "name", 1),
    ),
    _event,
)


def _namespace(obj: Obj, now: datetime) -> Cells:
    return [name(obj), at(obj, "status", "phase", default=""), age(obj, now)]


def _lease(obj: Obj, now: datetime) -> Cells:
    return [name(obj), at(obj, "spec", "holderIdentity", default=""), age(obj, now)]


def _quota(obj: Obj, now: datetime) -> Cells:
    hard, used = at(obj, "status", "hard", default={}), at(obj, "status", "used", default={})
    lines = {key: f"{key}: {used.get(key, 0)}/{hard[key]}" for key in sorted(hard)}
    requests = ", ".join(line for key, line in lines.items() if not key.startswith("limits."))
    limits = ", ".join(line for key, line in lines.items() if key.startswith("limits."))
    return [name(obj), requests, limits, age(obj, now)]


def _priority_class(obj: Obj, now: datetime) -> Cells:
    policy = obj.get("preemptionPolicy", "")
    return [name(obj), obj.get("value", 0), bool(obj.get("globalDefault")), age(obj, now), policy]


def _webhooks(obj: Obj, now: datetime) -> Cells:
    return [name(obj), len(at(obj, "webhooks", default=())), age(obj, now)]


_WEBHOOKS: Final = Layout((NAME, number("Webhooks", "How many webhooks it has."), AGE), _webhooks)

LAYOUTS: Final = {
    ("", "Node"): Layout(
        (
            NAME,
            text("Status"),
            text("Roles"),
            AGE,
            text("Version", "Version of the kubelet."),
            wide(text("Internal-IP")),
            wide(text("External-IP")),
            wide(text("OS-Image")),
            wide(text("Kernel-Version")),
            wide(text("Container-Runtime")),
        ),
        _node,
    ),
    ("", "Event"): _EVENT,
    ("events.k8s.io", "Event"): _EVENT,
    ("", "Namespace"): Layout((NAME, text("Status"), AGE), _namespace),
    ("coordination.k8s.io", "Lease"): Layout((NAME, text("Holder"), AGE), _lease),
    ("", "ResourceQuota"): Layout((NAME, text("Request"), text("Limit"), AGE), _quota),
    ("scheduling.k8s.io", "PriorityClass"): Layout(
        (NAME, number("Value"), boolean("Global-Default"), AGE, text("PreemptionPolicy")), _priority_class
    ),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
}
