"""What keeps a cluster in order: namespaces, events, leases, budgets, quotas, priorities, webhooks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from nodewright.controlplane.table import ages
from nodewright.controlplane.table.builtin.basics import age, items, text_of
from nodewright.controlplane.table.printer import Printer, columns, name_of, part
from nodewright.controlplane.values import Obj


def _namespace(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), part(obj, "status").get("phase", ""), age(obj, now)]


def _lease(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), part(obj, "spec").get("holderIdentity", ""), age(obj, now)]


def _budget(obj: Obj, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        text_of(spec.get("minAvailable"), "N/A"),
        text_of(spec.get("maxUnavailable"), "N/A"),
        part(obj, "status").get("disruptionsAllowed", 0),
        age(obj, now),
    ]


def _priority_class(obj: Obj, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        obj.get("value", 0),
        bool(obj.get("globalDefault")),
        age(obj, now),
        obj.get("preemptionPolicy", ""),
    ]


def _webhooks(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), len(items(obj, "webhooks")), age(obj, now)]


def _quota(obj: Obj, now: datetime) -> list[Any]:
    hard, used = part(obj, "status", "hard"), part(obj, "status", "used")
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        chosen = limits if name.startswith("limits.") else requests
        chosen.append(f"{name}: {used.get(name, '0')}/{hard[name]}")
    return [name_of(obj), ", ".join(requests), ", ".join(limits), age(obj, now)]


def _core_event(obj: Obj, now: datetime) -> list[Any]:
    source = part(obj, "source")
    times = (obj.get("firstTimestamp"), obj.get("lastTimestamp"), obj.get("count", 0))
    return _event(obj, now, times, (part(obj, "involvedObject"), source, obj.get("message", "")))


def _new_event(obj: Obj, now: datetime) -> list[Any]:
    source = part(obj, "deprecatedSource")
    times = (obj.get("deprecatedFirstTimestamp"), obj.get("deprecatedLastTimestamp"), obj.get("deprecatedCount", 0))
    return _event(obj, now, times, (part(obj, "regarding"), source, obj.get("note", "")))


def _event(obj: Obj, now: datetime, times: tuple[Any, Any, int], what: tuple[Obj, Obj, str]) -> list[Any]:
    """Make the cells of an event of either API; `times` are first, last and how often, `what` is of what and whom."""
    first, last, count = times
    target, source, message = what
    first = first or obj.get("eventTime")
    last = last or first
    series = obj.get("series")
    if isinstance(series, dict):
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    kind, name = str(target.get("kind", "")).lower(), target.get("name", "")
    return [
        ages.since(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        target.get("fieldPath", ""),
        _reporter(obj, source),
        message.strip(),
        ages.since(first, now),
        count or 1,
        name_of(obj),
    ]


def _reporter(obj: Obj, source: Obj) -> str:
    # The two APIs name the reporting component differently.
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else str(component)


_EVENT = columns("Last Seen | Type | Reason | Object | +Subobject | +Source | Message | +First Seen | +Count | +Name")
_WEBHOOKS = columns("Name | Webhooks:integer | Age")
_ADMISSION = "admissionregistration.k8s.io/v1"

PRINTERS = {
    ("v1", "Namespace"): Printer(columns("Name | Status | Age"), _namespace),
    ("v1", "Event"): Printer(_EVENT, _core_event),
    ("events.k8s.io/v1", "Event"): Printer(_EVENT, _new_event),
    ("v1", "ResourceQuota"): Printer(columns("Name | Request | Limit | Age"), _quota),
    ("coordination.k8s.io/v1", "Lease"): Printer(columns("Name | Holder | Age"), _lease),
    ("policy/v1", "PodDisruptionBudget"): Printer(
        columns("Name | Min Available | Max Unavailable | Allowed Disruptions:integer | Age"), _budget
    ),
    ("scheduling.k8s.io/v1", "PriorityClass"): Printer(
        columns("Name | Value:integer | Global-Default:boolean | Age | PreemptionPolicy"), _priority_class
    ),
    (_ADMISSION, "ValidatingWebhookConfiguration"): Printer(_WEBHOOKS, _webhooks),
    (_ADMISSION, "MutatingWebhookConfiguration"): Printer(_WEBHOOKS, _webhooks),
}
