"""From objects to a Table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from nodewright.controlplane.table import builtin, custom
from nodewright.controlplane.table.printer import Printer
from nodewright.controlplane.values import Obj, Resource


def render(resource: Resource, objects: Sequence[Obj], list_meta: Obj, include_object: str, now: datetime) -> Obj:
    """Give the meta.k8s.io/v1 Table of `objects` as seen at `now`, all columns, the wide ones with priority > 0.

    `include_object` says what the rows carry of their object: "None", "Metadata" (the default for "") or "Object".
    """
    kind = objects[0].get("kind", resource.kind) if objects else resource.kind
    printer = _printer(resource, kind)
    carry = _CARRIED.get(include_object, _metadata)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta,
        "columnDefinitions": printer.columns,
        "rows": [_row(printer, obj, carry, now) for obj in objects],
    }


def _row(printer: Printer, obj: Obj, carry: Callable[[Obj], Any], now: datetime) -> Obj:
    row: Obj = {"cells": printer.cells(obj, now), "object": carry(obj)}
    if printer.conditions is not None and (conditions := printer.conditions(obj)):
        row["conditions"] = conditions
    return row


def _printer(resource: Resource, kind: str) -> Printer:
    if not resource.builtin:
        return custom.printer(resource.columns) if kind == resource.kind else builtin.DEFAULT
    # A subresource may be of another kind: the scale of a Deployment is a Scale.
    group_version = resource.api_version if kind == resource.kind else ""
    return builtin.PRINTERS.get((group_version, kind), builtin.DEFAULT)


def _metadata(obj: Obj) -> Obj:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj.get("metadata") or {},
    }


_CARRIED: dict[str, Callable[[Obj], Any]] = {
    "None": lambda obj: None,
    "Metadata": _metadata,
    "Object": lambda obj: obj,
}
