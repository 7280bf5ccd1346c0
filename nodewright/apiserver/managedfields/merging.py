"""Merging an applied configuration into the live object, and taking fields out of it again."""

from __future__ import annotations

from typing import Any, Final

from nodewright.apiserver.managedfields.comparing import item_element
from nodewright.apiserver.managedfields.fieldsets import FieldSet, is_member
from nodewright.apiserver.managedfields.shapes import ANY, Shape
from nodewright.apiserver.values import Obj

_GONE: Final = object()


def merge(shape: Shape, live: Any, applied: Any) -> Any:
    """Give the live value with the applied one laid over it: maps and keyed lists entry by entry, all else replaced."""
    if live is applied or live == applied:
        return live
    if shape.kind in ("map", "any") and isinstance(live, dict) and isinstance(applied, dict):
        return _merge_maps(shape, live, applied)
    if shape.kind in ("set", "keyed") and isinstance(live, list) and isinstance(applied, list):
        return _merge_lists(shape, live, applied)
    return applied


def _merge_maps(shape: Shape, live: Obj, applied: Obj) -> Obj:
    result = dict(live)
    for name, value in applied.items():
        if name in live:
            result[name] = merge(shape.child(name) or ANY, live[name], value)
        else:
            result[name] = value
    return result


def _merge_lists(shape: Shape, live: list[Any], applied: list[Any]) -> list[Any]:
    """Merge two keyed lists. The applied order wins for what both have; the rest keeps its place in the live order."""
    ours = _indexed(shape, live)
    theirs = _indexed(shape, applied)
    result: list[Any] = []
    shared = [element for element in theirs if element in ours]
    left, right = list(ours), list(theirs)
    done: set[str] = set()
    li = ri = 0
    while li < len(left) or ri < len(right):
        if li < len(left) and ri < len(right):
            element = left[li]
            if element == right[ri]:
                result.append(_merge_items(shape, ours[element], theirs[element]))
                done.add(element)
                shared = shared[1:]
                li, ri = li + 1, ri + 1
                continue
            if element in theirs and shared and shared[0] != element:
                li += 1
                continue
        if li < len(left):
            element = left[li]
            if element not in theirs:
                result.append(ours[element])
                li += 1
                continue
            if element in done:
                li += 1
        if ri < len(right):
            element = right[ri]
            done.add(element)
            result.append(_merge_items(shape, ours.get(element, _GONE), theirs[element]))
            ri += 1
            if shared and shared[0] == element:
                shared = shared[1:]
    return result


def _merge_items(shape: Shape, live: Any, applied: Any) -> Any:
    if live is _GONE or shape.kind == "set":
        return applied
    return merge(shape.element or ANY, live, applied)


def _indexed(shape: Shape, items: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for place, item in enumerate(items):
        element = item_element(shape, item)
        found.setdefault(element if element is not None else f"i:{place}", item)
    return found


def remove(shape: Shape, value: Any, gone: FieldSet) -> Any:
    """Give a value without the members of a set. A container that becomes empty goes with them (None)."""
    if shape.kind in ("map", "any") and isinstance(value, dict):
        return _remove_entries(shape, value, gone)
    if shape.kind in ("set", "keyed") and isinstance(value, list):
        return _remove_items(shape, value, gone)
    return value


def _remove_entries(shape: Shape, value: Obj, gone: FieldSet) -> Obj | None:
    if not value:
        return value
    result: Obj = {}
    for name, child in value.items():
        node = gone.get(f"f:{name}")
        if node is None:
            result[name] = child
        elif not is_member(node):
            after = remove(shape.child(name) or ANY, child, node)
            if after is not None:
                result[name] = after
    return result or None


def _remove_items(shape: Shape, value: list[Any], gone: FieldSet) -> list[Any] | None:
    if not value:
        return value
    result: list[Any] = []
    for item in value:
        node = gone.get(item_element(shape, item) or "")
        if node is None:
            result.append(item)
        elif not is_member(node):
            result.append(remove(shape.element or ANY, item, node) or {})
    return result or None
