"""Objects inside objects (x-kubernetes-embedded-resource): they must say what they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from nodewright.apiserver.validation.gotext import value_text
from nodewright.apiserver.validation.nodes import Node
from nodewright.apiserver.values import Cause, Obj

_KIND: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_KIND_RULE: Final = (
    "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric "
    "characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  "
    "or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def embedded_faults(node: Node, value: Any, path: str = "") -> Iterator[Cause]:
    """Give what is wrong with apiVersion and kind of embedded objects."""
    if not node.has_embedded:
        return
    if isinstance(value, list) and node.items is not None:
        for i, item in enumerate(value):
            yield from embedded_faults(node.items, item, f"{path}[{i}]")
    elif isinstance(value, dict):
        if node.embedded:
            yield from _type_meta_faults(value, path)
        for key, child in value.items():
            below = node.properties.get(key)
            if below is not None:
                yield from embedded_faults(below, child, f"{path}.{key}" if path else key)
            elif node.additional is not None:
                yield from embedded_faults(node.additional, child, f"{path}[{key}]")


def _type_meta_faults(value: Obj, path: str) -> Iterator[Cause]:
    for key in ("apiVersion", "kind"):
        if key not in value:
            yield Cause(f"{path}.{key}", "FieldValueRequired", "Required value")
    for key in ("apiVersion", "kind"):
        stated = value.get(key, "v1")
        fault = _fault_of(key, stated)
        if fault:
            yield Cause(f"{path}.{key}", "FieldValueInvalid", f"Invalid value: {value_text(stated)}: {fault}")


def _fault_of(key: str, stated: Any) -> str:
    if not isinstance(stated, str):
        return "must be a string"
    if not stated:
        return "must not be empty"
    if key == "apiVersion":
        return f"unexpected GroupVersion string: {stated}" if stated.count("/") > 1 else ""
    return "" if _KIND.fullmatch(stated.lower()) else _KIND_RULE
