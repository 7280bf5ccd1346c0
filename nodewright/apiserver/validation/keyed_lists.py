"""Lists with keys (x-kubernetes-list-type `set` and `map`): no key twice, and old items found by their keys."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from nodewright.apiserver.validation.gotext import compact_json, value_text
from nodewright.apiserver.validation.nodes import Node
from nodewright.apiserver.values import Cause, Obj


def duplicates(node: Node, value: Any, path: str = "") -> Iterator[Cause]:
    """Give a cause for every item whose key stands earlier in its list."""
    if isinstance(value, list):
        yield from _list_duplicates(node, value, path)
    elif isinstance(value, dict):
        for key, below in node.properties.items():
            if below.has_keyed_lists and key in value:
                yield from duplicates(below, value[key], f"{path}.{key}" if path else key)
        if node.additional is not None and node.additional.has_keyed_lists:
            for key, child in value.items():
                if key not in node.properties:
                    yield from duplicates(node.additional, child, f"{path}[{key}]")


def _list_duplicates(node: Node, items: list[Any], path: str) -> Iterator[Cause]:
    if node.list_type in ("set", "map") and items:
        yield from _twice(node, items, path)
    if node.items is not None and node.items.has_keyed_lists:
        for i, item in enumerate(items):
            yield from duplicates(node.items, item, f"{path}[{i}]")


def _twice(node: Node, items: list[Any], path: str) -> Iterator[Cause]:
    keyed = node.list_type == "map"
    for i, item in enumerate(items):
        if keyed and item is not None and not isinstance(item, dict):
            message = f"Invalid value: {value_text(item)}: must be an object for an array of list-type map"
            yield Cause(f"{path}[{i}]", "FieldValueInvalid", message)
            return
    keys = [_stated_keys(node, item) if keyed else item for item in items]
    counts: dict[Hashable, int] = {}
    for i, key in enumerate(keys):
        handle = _handle(key)
        counts[handle] = counts.get(handle, 0) + 1
        if counts[handle] == 2:
            yield Cause(f"{path}[{i}]", "FieldValueDuplicate", f"Duplicate value: {value_text(key)}")


def _stated_keys(node: Node, item: Any) -> Obj:
    return {key: item[key] for key in node.list_map_keys if key in item} if isinstance(item, dict) else {}


def _handle(key: Any) -> Hashable:
    return compact_json(key) if isinstance(key, (dict, list)) else (type(key), key)


def correlate(node: Node | None, items: list[Any], old: Any) -> list[Any] | None:
    """Give the old item of each item of a `map` list, None where there is none; None for all other lists."""
    if node is None or node.list_type != "map" or not isinstance(old, list):
        return None
    if items is old:
        return items
    known = {_handle(_stated_keys(node, item)): item for item in old}
    return [known.get(_handle(_stated_keys(node, item))) for item in items]
