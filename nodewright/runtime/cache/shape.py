"""The JSON types that an object's fields may have: a quick check, and a repair for what does not pass it.

A shape is made from a structural schema (own kinds) or from the table of built-in types. Only types are checked, not
values: an API server has checked those, unless it is older, newer or hostile. A field that no shape knows may hold any
JSON that is not nested deeper than DEEPEST.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

DEEPEST = 64
"""Levels of lists and objects in a value of unknown shape. Python compares and copies by recursion, and gives up at
about 1000; no schema in use comes near."""
MOST_ITEMS = 4096
"""Items of a list, and fields or keys of an object, whose type is known. Each costs a reader some microseconds (a
requirement of a selector 4): 36,000 of them, which fit into 1 MB, would keep all others waiting for 140 ms."""
_TOO_MANY = f"must not have more than {MOST_ITEMS} items"
_MOST_FAULTS = 5
"""Faults named for one object."""
_MOST_NAMED = 80
"""Characters of a field name of others that are repeated."""
_INT64 = 2**63


class _Gone:
    """The value that stands for "left out"."""


GONE = _Gone()


class Shape:
    """``fits`` is the quick check. ``repair`` gives the value without what does not fit, or GONE, and adds a fault
    (``path: must be ...``) for each part that was left out. Null is left out without a fault: it means "absent"."""

    wanted = "anything"

    def fits(self, value: Any) -> bool:
        return (type(value) is not dict and type(value) is not list) or _is_shallow(value)

    def repair(self, value: Any, path: str, faults: list[str]) -> Any:
        return (
            value if self.fits(value) else _left_out(path, f"must not be nested deeper than {DEEPEST} levels", faults)
        )


ANY = Shape()


class Scalar(Shape):
    """A string, number or boolean."""

    def __init__(self, wanted: str, *types: type) -> None:
        self.wanted = wanted
        self._types = frozenset(types)

    def fits(self, value: Any) -> bool:
        type_ = type(value)
        return type_ in self._types and (type_ is not int or -_INT64 <= value < _INT64)

    def repair(self, value: Any, path: str, faults: list[str]) -> Any:
        if value is None or self.fits(value):
            return GONE if value is None else value
        if self is BOOLEAN and path.endswith(".paused"):
            faults.append(f"{path}: must be {self.wanted}")
            return True  # what somebody wanted to be left alone is left alone
        return _left_out(path, f"must be {self.wanted}", faults)


STRING = Scalar("a string", str)
INTEGER = Scalar("an integer of 64 bits", int)
NUMBER = Scalar("a number", int, float)
BOOLEAN = Scalar("true or false", bool)
INT_OR_STRING = Scalar("an integer or a string", int, str)
QUANTITY = Scalar("a quantity", int, float, str)


@dataclass(frozen=True, slots=True)
class List(Shape):
    items: Shape

    def fits(self, value: Any) -> bool:
        if type(value) is not list or len(value) > MOST_ITEMS:
            return False
        fits = self.items.fits
        return all(map(fits, value))

    def repair(self, value: Any, path: str, faults: list[str]) -> Any:
        if value is None:
            return GONE
        if not isinstance(value, list):
            return _left_out(path, "must be a list", faults)
        if len(value) > MOST_ITEMS:
            return _left_out(path, _TOO_MANY, faults)
        repaired = [
            self.items.repair(each, f"{path}[{index}]", faults) if each is not None else _null_item(path, index, faults)
            for index, each in enumerate(value)
        ]
        return [each for each in repaired if each is not GONE]


@dataclass(frozen=True, slots=True)
class Map(Shape):
    values: Shape

    def fits(self, value: Any) -> bool:
        if type(value) is not dict or len(value) > MOST_ITEMS:
            return False
        fits = self.values.fits
        return all(map(fits, value.values()))

    def repair(self, value: Any, path: str, faults: list[str]) -> Any:
        if value is None:
            return GONE
        if not isinstance(value, dict):
            return _left_out(path, "must be an object", faults)
        if len(value) > MOST_ITEMS:
            return _left_out(path, _TOO_MANY, faults)
        repaired = {
            name: self.values.repair(each, f"{path}[{name[:_MOST_NAMED]}]", faults) for name, each in value.items()
        }
        return {name: each for name, each in repaired.items() if each is not GONE}


class Fields(Shape):
    """An object with known fields; of one with too many only these are kept. ``find`` gives them when they are first
    needed: few types are ever read."""

    def __init__(self, find: Callable[[], Mapping[str, Shape]]) -> None:
        self._find = find
        self._found: Mapping[str, Shape] | None = None

    @property
    def fields(self) -> Mapping[str, Shape]:
        if self._found is None:
            self._found = self._find()
        return self._found

    def fits(self, value: Any) -> bool:
        if type(value) is not dict or len(value) > MOST_ITEMS:
            return False
        wanted = self.fields.get
        for name, each in value.items():  # noqa: SIM110  (all() of a generator takes half as long again)
            if not wanted(name, ANY).fits(each):
                return False
        return True

    def repair(self, value: Any, path: str, faults: list[str]) -> Any:
        if value is None:
            return GONE
        if not isinstance(value, dict):
            return _left_out(path, "must be an object", faults)
        prefix, fields = f"{path}." if path else "", self.fields
        if len(value) > MOST_ITEMS:
            _left_out(path, _TOO_MANY, faults)
            value = {name: each for name, each in value.items() if name in fields}
        repaired = {
            name: fields.get(name, ANY).repair(each, f"{prefix}{name[:_MOST_NAMED]}", faults)
            for name, each in value.items()
        }
        return {name: each for name, each in repaired.items() if each is not GONE}


def shape_of_schema(schema: Mapping[str, Any]) -> Shape:
    """The shape of an ``openAPIV3Schema``. A schema without a type allows anything."""
    if schema.get("x-kubernetes-int-or-string"):
        return INT_OR_STRING
    match schema.get("type"):
        case "object":
            return _object(schema)
        case "array":
            items = schema.get("items")
            return List(shape_of_schema(items) if isinstance(items, Mapping) else ANY)
        case "string":
            return STRING
        case "integer":
            return INTEGER
        case "number":
            return NUMBER
        case "boolean":
            return BOOLEAN
    return ANY


def _object(schema: Mapping[str, Any]) -> Shape:
    properties, more = schema.get("properties"), schema.get("additionalProperties")
    if not properties and isinstance(more, Mapping):
        return Map(shape_of_schema(more))
    return Fields(lambda: {name: shape_of_schema(each) for name, each in (properties or {}).items()})


def _null_item(path: str, index: int, faults: list[str]) -> Any:
    return _left_out(f"{path}[{index}]", "must not be null", faults)


def _left_out(path: str, why: str, faults: list[str]) -> Any:
    if len(faults) < _MOST_FAULTS:
        faults.append(f"{path or 'object'}: {why}")
    return GONE


def _is_shallow(value: Any) -> bool:
    """Level by level, not by recursion."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            each
            for parent in level
            for each in (parent.values() if type(parent) is dict else parent)
            if (type(each) is dict or type(each) is list) and each
        ]
        if not level:
            return True
    return False
