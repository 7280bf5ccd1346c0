"""From objects to a Table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from nodewright.controlplane.jsonpath import JSONPathError
from nodewright.controlplane.table import cluster, custom, pods, workloads
from nodewright.controlplane.table.layout import AGE, NAME, Layout
from nodewright.controlplane.table.wording import age, name
from nodewright.controlplane.values import Column, Obj, Resource

_LAYOUTS = {**cluster.LAYOUTS, **pods.LAYOUTS, **workloads.LAYOUTS}
_PLAIN = Layout((NAME, AGE), lambda obj, now: [name(obj), age(obj, now)])
_PLAIN_CUSTOM = (Column("Age", "date", ".metadata.creationTimestamp", AGE.description),)


def render(resource: Resource, objects: Sequence[Obj], list_meta: Obj, include_object: str, now: datetime) -> Obj:
    """Give the meta.k8s.io/v1 Table of objects of one kind.

    `include_object` is the parameter `includeObject`: "None", "Metadata" (also the default, "") or "Object".
    `list_meta` becomes the table's metadata. Kinds without columns of their own show Name and Age.
    """
    layout = _layout(resource)
    rows = [_row(layout, obj, include_object, now) for obj in objects]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta,
        "columnDefinitions": [_definition(column) for column in layout.columns],
        "rows": rows,
    }


@lru_cache(maxsize=512)
def _layout(resource: Resource) -> Layout:
    if resource.builtin:
        return _LAYOUTS.get((resource.group, resource.kind), _PLAIN)
    try:
        return custom.layout(resource.columns or _PLAIN_CUSTOM)
    except JSONPathError:
        return custom.layout(_PLAIN_CUSTOM)


def _definition(column: Column) -> Obj:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _row(layout: Layout, obj: Obj, include_object: str, now: datetime) -> Obj:
    row: Obj = {"cells": layout.cells(obj, now)}
    conditions = layout.conditions(obj) if layout.conditions is not None else []
    if conditions:
        row["conditions"] = conditions
    match include_object:
        case "Object":
            row["object"] = obj
        case "None":
            row["object"] = None
        case _:
            metadata = obj.get("metadata") or {}
            row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return row
