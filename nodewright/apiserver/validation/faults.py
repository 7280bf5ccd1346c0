"""The slow path: what exactly is wrong with an object? In the words of the real server (kube-openapi's validation).

On an update, what was wrong before and did not change is let pass (validation ratcheting, KEP-4008).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from nodewright.apiserver.validation import formats
from nodewright.apiserver.validation.gotext import number, quote, value_text
from nodewright.apiserver.validation.keyed_lists import correlate
from nodewright.apiserver.validation.nodes import Node
from nodewright.apiserver.validation.patterns import compile_pattern
from nodewright.apiserver.values import Cause, Obj


class Old(Enum):
    """What stands for "there is no old value to compare with": null is a value."""

    NONE = "none"


BLOCKING: Final = frozenset(
    {
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
        "FieldValueNotSupported",
    }
)
"""Reasons after which rules are not evaluated: they could not rely on the types."""


@dataclass(frozen=True, slots=True)
class _Spot:
    """A value and where it stands. `rule` is the raw schema; `node` its place in the tree, None under allOf etc."""

    path: str
    value: Any
    old: Any
    rule: Obj
    node: Node | None


def find_faults(root: Node, obj: Obj, old: Obj | None) -> list[Cause]:
    """Give all that the structural schema holds against an object, without its rules and list keys."""
    before: Any = Old.NONE if old is None else old
    return list(_faults(_Spot("", obj, before, root.raw, root)))


def _faults(spot: _Spot) -> Iterator[Cause]:
    found = list(_faults_now(spot))
    if found and spot.old is not Old.NONE and spot.value == spot.old:
        return
    yield from found


def _faults_now(spot: _Spot) -> Iterator[Cause]:
    types = _types(spot)
    if types and (spot.value is None or "format" in spot.rule or not _is_any(spot.value, types)):
        yield from _type_faults(spot, types)
    if spot.value is None:
        yield from _enum_faults(spot)
        return
    yield from _branch_faults(spot)
    match spot.value:
        case list():
            yield from _list_faults(spot)
        case dict():
            yield from _map_faults(spot)
        case str() | bool() | int() | float():
            yield from _scalar_faults(spot, types)


def _scalar_faults(spot: _Spot, types: tuple[str, ...]) -> Iterator[Cause]:
    if isinstance(spot.value, str):
        yield from _string_faults(spot)
    elif not isinstance(spot.value, bool):
        yield from _number_faults(spot, types)
    yield from _enum_faults(spot)


def _types(spot: _Spot) -> tuple[str, ...]:
    if spot.node is not None:
        return spot.node.types
    kind = spot.rule.get("type")
    return (kind,) if isinstance(kind, str) else ()


def kind_of(value: Any) -> str:
    """Name the JSON type of a value as the API's messages do."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _is_any(value: Any, types: Sequence[str]) -> bool:
    kind = kind_of(value)
    if kind in types or (kind == "integer" and "number" in types):
        return True
    return isinstance(value, float) and value.is_integer() and "integer" in types


def _type_faults(spot: _Spot, types: tuple[str, ...]) -> Iterator[Cause]:
    value, joined = spot.value, ",".join(types)
    if value is None:
        if not bool(spot.rule.get("nullable")):
            yield _wrong_type(spot.path, joined, "null")
        return
    wanted = _known_format(spot.rule, types)
    if wanted and not isinstance(value, (str, list)) and not _is_any(value, types):
        native = {"integer": "int64", "number": "float64"}.get(kind_of(value), "")
        yield _wrong_type(spot.path, wanted, native)
    elif not _is_any(value, types):
        yield _wrong_type(spot.path, joined, kind_of(value))


def _known_format(rule: Obj, types: tuple[str, ...]) -> str:
    wanted = str(rule.get("format", ""))
    if types == ("integer",):
        return wanted if wanted in ("int32", "int64") else ""
    if types == ("number",):
        return wanted if wanted in ("float", "double") else ""
    return wanted if formats.normal_name(rule, types) else ""


def _wrong_type(path: str, wanted: str, got: str) -> Cause:
    return Cause(
        path, "FieldValueTypeInvalid", f'Invalid value: "{got}": {path} in body must be of type {wanted}: "{got}"'
    )


def _invalid(path: str, value: Any, message: str) -> Cause:
    return Cause(path, "FieldValueInvalid", f"Invalid value: {value_text(value)}: {path} in body should {message}")


def _nowhere(message: str) -> Cause:
    """A fault that the real server reports without a field."""
    return Cause("<nil>", "FieldValueInvalid", f'Invalid value: "": {message}')


def _enum_faults(spot: _Spot) -> Iterator[Cause]:
    allowed = spot.rule.get("enum")
    if not allowed or any(_same_scalar(spot.value, a) for a in allowed):
        return
    texts = ", ".join(quote(a) if isinstance(a, str) else quote(value_text(a)) for a in allowed)
    message = f"Unsupported value: {value_text(spot.value)}: supported values: {texts}"
    yield Cause(spot.path, "FieldValueNotSupported", message)


def _same_scalar(left: Any, right: Any) -> bool:
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _string_faults(spot: _Spot) -> Iterator[Cause]:
    rule, path, text = spot.rule, spot.path, spot.value
    longest, shortest, pattern = rule.get("maxLength"), rule.get("minLength"), rule.get("pattern")
    if longest is not None and len(text) > longest:
        yield Cause(path, "FieldValueTooLong", f"Too long: may not be more than {longest} bytes")
    if shortest is not None and len(text) < shortest:
        yield _invalid(path, text, f"be at least {shortest} chars long")
    if pattern and not compile_pattern(pattern).found_in(text):
        yield _invalid(path, text, f"match '{pattern}'")
    check = formats.CHECKS.get(formats.normal_name(rule, _types(spot)))
    if check is not None and not check(text):
        message = f"Invalid value: {quote(text)}: {path} in body must be of type {rule['format']}: {quote(text)}"
        yield Cause(path, "FieldValueTypeInvalid", message)


def _number_faults(spot: _Spot, types: tuple[str, ...]) -> Iterator[Cause]:
    rule, path, value = spot.rule, spot.path, spot.value
    if types == ("integer",):
        wanted = str(rule.get("format", ""))
        low, high = formats.INTEGER_BOUNDS.get(wanted, formats.INTEGER_BOUNDS["int64"])
        if not (low <= value <= high and float(value).is_integer()):
            stated = f"with format {wanted}" if wanted in formats.INTEGER_BOUNDS else "(default format)"
            yield _nowhere(f"Checked value must be of type integer {stated} in {path}")
    factor = rule.get("multipleOf")
    if factor and not float(value / factor).is_integer():
        yield _invalid(path, value, f"be a multiple of {number(factor)}")
    yield from _bound_faults(rule, path, value)


def _bound_faults(rule: Obj, path: str, value: Any) -> Iterator[Cause]:
    highest, lowest = (_bound(rule.get(key), value) for key in ("maximum", "minimum"))
    if highest is not None:
        if rule.get("exclusiveMaximum") and value >= highest:
            yield _invalid(path, value, f"be less than {number(highest)}")
        elif value > highest:
            yield _invalid(path, value, f"be less than or equal to {number(highest)}")
    if lowest is not None:
        if rule.get("exclusiveMinimum") and value <= lowest:
            yield _invalid(path, value, f"be greater than {number(lowest)}")
        elif value < lowest:
            yield _invalid(path, value, f"be greater than or equal to {number(lowest)}")


def _bound(bound: float | None, value: float) -> float | None:
    """Give a bound as the real server compares it: without its fraction for whole numbers (so 0 passes 0.5)."""
    return math.trunc(bound) if bound is not None and isinstance(value, int) else bound


def _list_faults(spot: _Spot) -> Iterator[Cause]:
    rule, path, items = spot.rule, spot.path, spot.value
    old_items = correlate(spot.node, items, spot.old)
    below = _below(spot, "items", spot.node.items if spot.node else None)
    if below is not None:
        for i, item in enumerate(items):
            old = old_items[i] if old_items is not None else Old.NONE
            yield from _faults(_Spot(f"{path}[{i}]", item, Old.NONE if old is None else old, *below))
    fewest, most = rule.get("minItems"), rule.get("maxItems")
    if fewest is not None and len(items) < fewest:
        yield _invalid(path, len(items), f"have at least {fewest} items")
    if most is not None and len(items) > most:
        yield Cause(path, "FieldValueTooMany", f"Too many: {len(items)}: must have at most {most} items")


def _below(spot: _Spot, keyword: str, node: Node | None) -> tuple[Obj, Node | None] | None:
    if node is not None:
        return node.raw, node
    raw = spot.rule.get(keyword)
    return (raw, None) if isinstance(raw, dict) and spot.node is None else None


def _map_faults(spot: _Spot) -> Iterator[Cause]:
    rule, path, value = spot.rule, spot.path, spot.value
    fewest, most = rule.get("minProperties"), rule.get("maxProperties")
    if fewest is not None and len(value) < fewest:
        yield _invalid(path, len(value), f"have at least {fewest} properties")
    if most is not None and len(value) > most:
        yield Cause(path, "FieldValueTooMany", f"Too many: {len(value)}: must have at most {most} items")
    for key, child in value.items():
        below = _property(spot, key)
        if below is not None:
            old = spot.old.get(key, Old.NONE) if isinstance(spot.old, dict) else Old.NONE
            yield from _faults(_Spot(f"{path}.{key}" if path else key, child, old, *below))
    for key in rule.get("required") or ():
        if key not in value:
            yield Cause(f"{path}.{key}" if path else key, "FieldValueRequired", "Required value")


def _property(spot: _Spot, key: str) -> tuple[Obj, Node | None] | None:
    if spot.node is not None:
        child = spot.node.child(key)
        return None if child is None else (child.raw, child)
    raw = (spot.rule.get("properties") or {}).get(key, spot.rule.get("additionalProperties"))
    return (raw, None) if isinstance(raw, dict) else None


def _branch_faults(spot: _Spot) -> Iterator[Cause]:
    rule, name = spot.rule, quote(spot.path)
    if rule.get("anyOf"):
        tried = _try_all(spot, rule["anyOf"])
        if all(tried):
            yield _nowhere(f"{name} must validate at least one schema (anyOf)")
            yield from _closest(tried)
    if rule.get("oneOf"):
        yield from _one_of_faults(name, _try_all(spot, rule["oneOf"]))
    if rule.get("allOf"):
        tried = _try_all(spot, rule["allOf"])
        yield from (fault for faults in tried for fault in faults)
        if any(tried):
            message = ". None validated" if all(tried) else ""
            yield _nowhere(f"{name} must validate all the schemas (allOf){message}")
    if rule.get("not") is not None and not any(_try_all(spot, [rule["not"]])[0]):
        yield _nowhere(f"{name} must not validate the schema (not)")


def _try_all(spot: _Spot, branches: Sequence[Obj]) -> list[list[Cause]]:
    return [list(_faults(_Spot(spot.path, spot.value, Old.NONE, branch, None))) for branch in branches]


def _closest(tried: list[list[Cause]]) -> list[Cause]:
    """Give the faults of the branch that came nearest: the first of those with the fewest."""
    return min(tried, key=len)


def _one_of_faults(name: str, tried: list[list[Cause]]) -> Iterator[Cause]:
    matched = sum(not faults for faults in tried)
    if matched != 1:
        message = f"Found {matched} valid alternatives" if matched else "Found none valid"
        yield _nowhere(f"{name} must validate one and only one schema (oneOf). {message}")
        if not matched:
            yield from _closest(tried)
