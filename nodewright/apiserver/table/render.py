"""From objects to a Table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from nodewright.apiserver.table import access, cluster, custom, devices, network, pods, storage, workloads
from nodewright.apiserver.table.layout import AGE, CREATED, NAME, Layout, date, number, text
from nodewright.apiserver.table.wording import age, at, name
from nodewright.apiserver.values import ApiError, Obj, Resource

_LAYOUTS: Final = {
    **access.LAYOUTS,
    **cluster.LAYOUTS,
    **devices.LAYOUTS,
    **network.LAYOUTS,
    **pods.LAYOUTS,
    **storage.LAYOUTS,
    **workloads.LAYOUTS,
}
_PLAIN: Final = Layout((NAME, CREATED), lambda obj, now: [name(obj), at(obj, "metadata", "creationTimestamp")])


def _scale(obj: Obj, now: datetime) -> list[Any]:
    return [name(obj), at(obj, "spec", "replicas", default=0), at(obj, "status", "replicas", default=0), age(obj, now)]


_REPLICAS: Final = (number("Desired", "How many are wanted."), number("Available", "How many there are."))
_SCALE: Final = Layout((text("Name"), *_REPLICAS, AGE), _scale)
_CUSTOM_SCALE: Final = Layout((NAME, *_REPLICAS, date("Age")), _scale)


def _carried(include_object: str) -> Callable[[Obj], Any]:
    """Give what makes of an object what its row carries. Raises ApiError 400."""
    carry = _CARRIED.get(include_object)
    if carry is None:
        must = "must be 'Metadata', 'Object', 'None', or empty"
        why = f'includeObject: Invalid value: "{include_object}": {must}'
        raise ApiError.bad_request(f"Unable to convert to Table as requested: {why}")
    return carry


def render(resource: Resource, objects: Sequence[Obj], list_meta: Obj, include_object: str, now: datetime) -> Obj:
    """Give the meta.k8s.io/v1 Table of objects of one kind, as seen at `now`; wide columns have a priority over 0.

    `include_object` is the parameter `includeObject`: "None", "Metadata" (also the default, "") or "Object".
    `list_meta` becomes the table's metadata. A bookmark's row always carries its metadata, which is all it is for.
    Raises ApiError 400 for another `include_object`.
    """
    carry = _carried(include_object)
    # A subresource may be of another kind than its resource.
    is_scale = bool(objects) and objects[0].get("kind") == "Scale" and resource.kind != "Scale"
    layout, definitions = _printer(resource, is_scale)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta,
        "columnDefinitions": definitions,
        "rows": [_row(layout, obj, carry, now) for obj in objects],
    }


@lru_cache(maxsize=512)
def _printer(resource: Resource, is_scale: bool) -> tuple[Layout, list[Obj]]:
    layout = _layout(resource, is_scale)
    return layout, [_definition(asdict(column)) for column in layout.columns]


def _layout(resource: Resource, is_scale: bool) -> Layout:
    if is_scale:
        return _SCALE if resource.builtin else _CUSTOM_SCALE
    if resource.builtin:
        return _LAYOUTS.get((resource.group, resource.kind), _PLAIN)
    return custom.layout(resource.columns)


def _definition(column: Obj) -> Obj:
    return {field: column[field] for field in ("name", "type", "format", "description", "priority")}


def _row(layout: Layout, obj: Obj, carry: Callable[[Obj], Any], now: datetime) -> Obj:
    row: Obj = {"cells": layout.cells(obj, now), "object": carry(obj)}
    if layout.conditions is not None and (conditions := layout.conditions(obj)):
        row["conditions"] = conditions
    return row


def _metadata(obj: Obj) -> Obj:
    metadata = obj.get("metadata") or {}
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}


def _nothing(obj: Obj) -> Obj | None:
    # Only a bookmark has no name.
    return None if name(obj) else _metadata(obj)


_CARRIED: Final[Mapping[str, Callable[[Obj], Any]]] = {
    "": _metadata,
    "None": _nothing,
    "Metadata": _metadata,
    "Object": lambda obj: obj,
}
