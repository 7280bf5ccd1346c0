"""Which fields does the schema not know? They are dropped, and named for `fieldValidation` (KEP-2885)."""

from __future__ import annotations

from functools import cache
from typing import Any

from nodewright.apiserver.validation.nodes import TYPE_META, Node, read
from nodewright.apiserver.values import Obj


def prune(root: Node, obj: Obj) -> tuple[Obj, list[str]]:
    """Give the object without unknown fields, sharing what did not change, and the sorted paths of those fields."""
    found: list[str] = []
    pruned = _prune_map(root, obj, "", found)
    return pruned, sorted(found)


def _prune(node: Node | None, value: Any, path: str, found: list[str]) -> Any:
    if isinstance(value, dict):
        return _prune_map(node, value, path, found)
    if isinstance(value, list):
        items = node.items if node is not None else None
        if node is not None and node.preserve and items is None:
            return value
        after = [_prune(items, item, f"{path}[{i}]", found) for i, item in enumerate(value)]
        return after if any(a is not b for a, b in zip(after, value, strict=True)) else value
    return value


def _prune_map(node: Node | None, value: Obj, path: str, found: list[str]) -> Obj:
    if node is None:
        found.extend(_join(path, key) for key in value)
        return {} if value else value
    after: Obj = {}
    changed = False
    for key, before in value.items():
        child = node.child(key)
        if child is not None:
            kept = _prune(child, before, _join(path, key), found)
        elif node.embedded and key in TYPE_META:
            kept = _prune(_object_meta(), before, _join(path, key), found) if key == "metadata" else before
        elif node.preserve:
            kept = before
        else:
            found.append(_join(path, key))
            changed = True
            continue
        changed = changed or kept is not before
        after[key] = kept
    return after if changed else value


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


@cache
def _object_meta() -> Node:
    return read({}).properties["metadata"]
