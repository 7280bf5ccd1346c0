"""What many built-in kinds' cells have in common: ages, labels, selectors, containers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from nodewright.controlplane.store.scaling import selector_text
from nodewright.controlplane.table import ages
from nodewright.controlplane.table.printer import NONE, Printer, columns, name_of, part
from nodewright.controlplane.values import Obj


def age(obj: Obj, now: datetime) -> str:
    """Give the time since an object was created."""
    return ages.since(part(obj, "metadata").get("creationTimestamp"), now)


def deleting(obj: Obj) -> bool:
    """Say whether an object is being deleted."""
    return bool(part(obj, "metadata").get("deletionTimestamp"))


def labels_text(labels: Mapping[str, str]) -> str:
    """Give labels as `a=1,b=2`, in order."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) or NONE


def selector_or_none(selector: Obj) -> str:
    """Give a metav1.LabelSelector as text, `<none>` if it is empty."""
    return selector_text(selector) or NONE


def container_cells(pod_spec: Obj) -> list[str]:
    """Give the names and the images of a pod's containers."""
    containers = items(pod_spec, "containers")
    return [",".join(c.get(field, "") for c in containers) for field in ("name", "image")]


def items(obj: Obj, name: str) -> list[Obj]:
    """Give the mappings of a list field, none if it is missing."""
    found = obj.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def has_condition(conditions: Iterable[Obj], type_: str) -> bool:
    """Say whether a condition is True."""
    return any(c.get("type") == type_ and c.get("status") == "True" for c in conditions)


def text_of(value: Any, missing: str = NONE) -> str:
    """Give a value as text, `missing` if it is not set."""
    return missing if value in (None, "") else str(value)


def _default(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), part(obj, "metadata").get("creationTimestamp") or ages.UNKNOWN]


DEFAULT = Printer(columns("Name | Created At:date"), _default)
"""For kinds without columns of their own, as the real server has it."""
