"""Does an applied configuration fit the schema? Before it is merged, it must: merging goes by types and keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nodewright.apiserver.managedfields.comparing import item_element
from nodewright.apiserver.managedfields.elements import display
from nodewright.apiserver.managedfields.shapes import Shape
from nodewright.apiserver.validation.gotext import go_value, quote
from nodewright.apiserver.values import Obj


def typing_faults(shape: Shape, obj: Obj) -> list[str]:
    """Give all that does not fit, each with its path, in the words of structured-merge-diff."""
    return list(_faults(shape, obj, ()))


def _faults(shape: Shape, value: Any, path: tuple[str, ...]) -> Iterator[str]:
    if value is None or shape.kind == "any":
        return
    if shape.kind == "scalar":
        fault = _scalar_fault(shape.type, value)
        if fault:
            yield f"{display(path)}: {fault}"
    elif shape.kind == "map" or (shape.kind == "atomic" and shape.type == "object"):
        yield from _map_faults(shape, value, path)
    elif not isinstance(value, list):
        yield f"{display(path)}: expected list, got &{{{go_value(value)}}}"
    elif shape.kind in ("set", "keyed"):
        yield from _list_faults(shape, value, path)


def _scalar_fault(kind: str, value: Any) -> str:
    got = f"got &value.valueUnstructured{{Value:{go_value(value)}}}"
    match kind:
        case "string":
            return "" if isinstance(value, str) else f"expected string, {got}"
        case "boolean":
            return "" if isinstance(value, bool) else f"expected boolean, {got}"
        case "integer" | "number":
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return ""
            return f"expected numeric (int or float), got {_go_type(value)}"
        case _:
            return f"expected scalar, {got}" if isinstance(value, (dict, list)) else ""


def _go_type(value: Any) -> str:
    match value:
        case str():
            return "string"
        case bool():
            return "bool"
        case list():
            return "[]interface {}"
        case _:
            return "map[string]interface {}"


def _map_faults(shape: Shape, value: Any, path: tuple[str, ...]) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{display(path)}: expected map, got &{{{go_value(value)}}}"
        return
    if shape.kind == "atomic":
        return
    for name, child in value.items():
        below = shape.child(name)
        here = (*path, f"f:{name}")
        if below is None:
            yield f"{display(here)}: field not declared in schema"
        else:
            yield from _faults(below, child, here)


def _list_faults(shape: Shape, items: list[Any], path: tuple[str, ...]) -> Iterator[str]:
    seen: set[str] = set()
    for place, item in enumerate(items):
        element = item_element(shape, item)
        if element is None:
            message = "associative list with keys has an element that omits all key fields"
            keys = " ".join(quote(key) for key in shape.keys)
            rest = "(and doesn't have default values for any key fields)"
            yield f"{display(path)}: element {place}: {message} [{keys}] {rest}"
            continue
        if element in seen:
            yield f"{display(path)}: duplicate entries for key {display((element,))}"
        seen.add(element)
        if shape.element is not None:
            yield from _faults(shape.element, item, (*path, element))
