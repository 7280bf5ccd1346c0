"""Who changed the size of a set or deployment: the managers of ``spec.replicas``, and what events say of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from api import names
from controllers.kernel.refs import Kind, Obj, annotations_of, key_of
from nodewright.reports.json_parts import number, objects, part, text

MOST = 300
MOST_EVENTS = 20
_SIZES: Final = frozenset({"SuccessfulCreate", "SuccessfulDelete", "ScaledUpGroup", "ScaledDownGroup", "ScalingUp",
                           "ScalingDown", "ScalingMachineSet", "ScaleUp", "ScaleDown", "TriggeredScaleUp"})  # fmt: skip


def sizes(groups: Iterable[tuple[Kind, Obj]], events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Groups nobody controls, with ``writers`` (who wrote ``spec.replicas`` last comes first) and ``events``."""
    by_subject: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for event in events:
        about = part(event, "involvedObject")
        if _is_of_size(event):
            key = (text(about, "kind"), text(about, "namespace"), text(about, "name"))
            by_subject.setdefault(key, []).append(event)
    found = [_group(kind, obj, by_subject) for kind, obj in groups]
    found.sort(key=lambda each: (_latest(each), each["name"]), reverse=True)
    return {"groups": found[:MOST], "leftOut": max(0, len(found) - MOST)}


def _is_of_size(event: Mapping[str, Any]) -> bool:
    reason = text(event, "reason")
    return reason in _SIZES or "Scal" in reason


def _latest(group: Mapping[str, Any]) -> str:
    return max((*(str(each["at"]) for each in (*group["writers"], *group["events"])), ""))


def _group(kind: Kind, obj: Obj, events: Mapping[tuple[str, str, str], list[Mapping[str, Any]]]) -> dict[str, Any]:
    key, marks = key_of(obj), annotations_of(obj)
    reported = [_event(each) for each in events.get((kind.name, key.namespace, key.name), ())]
    reported.sort(key=lambda each: str(each["at"]), reverse=True)
    return {
        "kind": kind.name,
        "namespace": key.namespace,
        "name": key.name,
        "replicas": number(obj, "spec", "replicas", default=1),
        "machines": number(obj, "status", "replicas"),
        "min": marks.get(names.AUTOSCALER_MIN_ANNOTATION) or marks.get(names.CAPI_AUTOSCALER_MIN_ANNOTATION) or "",
        "max": marks.get(names.AUTOSCALER_MAX_ANNOTATION) or marks.get(names.CAPI_AUTOSCALER_MAX_ANNOTATION) or "",
        "writers": writers(obj),
        "events": reported[:MOST_EVENTS],
    }


def writers(obj: Obj) -> list[dict[str, str]]:
    """Managers that own ``spec.replicas`` by ``metadata.managedFields``, the last one first."""
    found = [
        {
            "manager": text(entry, "manager"),
            "operation": text(entry, "operation"),
            "through": text(entry, "subresource") or "spec",
            "at": text(entry, "time"),
        }
        for entry in objects(obj, "metadata", "managedFields")[:100]
        if "f:replicas" in part(entry, "fieldsV1", "f:spec")
    ]
    return sorted(found, key=lambda each: each["at"], reverse=True)


def _event(event: Mapping[str, Any]) -> dict[str, Any]:
    at = text(event, "series", "lastObservedTime") or text(event, "lastTimestamp") or text(event, "eventTime")
    return {
        "at": at,
        "reason": text(event, "reason"),
        "message": text(event, "message"),
        "from": text(event, "reportingComponent") or text(event, "source", "component"),
        "count": number(event, "count", default=1),
    }
