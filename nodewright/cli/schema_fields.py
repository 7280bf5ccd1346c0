"""The fields that a JSON Schema (draft 2020-12) describes, for people. Total over any JSON: providers are of others.

Only references within the schema are followed (``#/$defs/NAME``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

DEEPEST = 8
"""Levels of fields in fields; a schema may name itself."""
MOST_FIELDS = 500
_MOST_ALTERNATIVES = 8
_MOST_LOOKED_AT = 64
"""Schemas that one field is followed through: references may go in circles."""
_LIMITS: Final = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
    "minLength": "characters at least",
    "maxLength": "characters at most",
    "minItems": "items at least",
    "maxItems": "items at most",
    "pattern": "matches",
}
_OBVIOUS: Final = frozenset({("minLength", 1)})


@dataclass(frozen=True, slots=True)
class SchemaField:
    """``path``: from the top of the configuration, like ``ports.fixedIPs``. ``default`` is JSON; None: there is none.

    ``limits``: like ``at least 1``. ``nested``: it has fields of its own.
    """

    path: str
    type: str
    required: bool = False
    default: Any = None
    description: str = ""
    values: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    nested: bool = False


class Fields:
    """What ``schema`` describes."""

    def __init__(self, schema: Any) -> None:
        self._root = _mapping(schema)

    @property
    def description(self) -> str:
        return _words(self._root.get("description"))

    def at(self, path: tuple[str, ...]) -> SchemaField | None:
        """The field there; None if there is none."""
        parent = self._root
        for name in path[:-1]:
            parent = self._below(parent).get(name) or {}
        found = self._below(parent)
        return self._field(parent, path, found[path[-1]]) if path and path[-1] in found else None

    def below(self, path: tuple[str, ...] = ()) -> list[SchemaField]:
        """The fields of the field there, required ones first; [] if it has none."""
        schema: Any = self._root
        for name in path:
            schema = self._below(schema).get(name) or {}
        fields = [self._field(schema, (*path, name), each) for name, each in self._below(schema).items()]
        return sorted(fields[:MOST_FIELDS], key=lambda one: not one.required)

    def all_below(self, path: tuple[str, ...] = ()) -> list[SchemaField]:
        """Those of every level."""
        found: list[SchemaField] = []
        for each in self._every(path, DEEPEST):
            if len(found) == MOST_FIELDS:
                break
            found.append(each)
        return found

    def _every(self, path: tuple[str, ...], levels: int) -> Iterator[SchemaField]:
        if levels:
            for each in self.below(path):
                yield each
                if each.nested:
                    yield from self._every((*path, each.path.rpartition(".")[2]), levels - 1)

    def _field(self, parent: Any, path: tuple[str, ...], schema: Any) -> SchemaField:
        branches = self._branches(schema)
        description = _words(_mapping(schema).get("description"))
        description = description or next((text for each in branches if (text := _words(each.get("description")))), "")
        required = any(path[-1] in _list(each.get("required")) for each in self._inner(parent))
        values = tuple(str(value) for each in branches for value in _list(each.get("enum")))
        values += tuple(str(each["const"]) for each in branches if "const" in each)
        return SchemaField(
            path=".".join(path),
            type=" or ".join(dict.fromkeys(self._type(each, DEEPEST) for each in branches)) or "anything",
            required=required,
            default=_mapping(schema).get("default"),
            description=description,
            values=values,
            limits=tuple(dict.fromkeys(text for each in branches for text in _limits(each))),
            nested=bool(self._below(schema)),
        )

    def _type(self, schema: Mapping[str, Any], levels: int) -> str:
        types = [str(one) for one in _list(schema.get("type")) or [schema.get("type")] if one and one != "null"]
        if "array" in types:
            return f"list of {self._joined(schema.get('items'), levels)}"
        if "object" in types and (values := _values_of_map(schema)) is not None:
            return f"map of {self._joined(values, levels)}"
        if not types and ("enum" in schema or "const" in schema):
            return "string"
        return " or ".join(types) or "anything"

    def _joined(self, schema: Any, levels: int) -> str:
        if not levels:
            return "anything"
        found = dict.fromkeys(self._type(each, levels - 1) for each in self._branches(schema))
        return " or ".join(found) or "anything"

    def _below(self, schema: Any) -> dict[str, Any]:
        """Name to schema of the fields of an object, of a list's items, of a map's values."""
        found: dict[str, Any] = {}
        for each in self._inner(schema):
            found.update({name: field for name, field in _mapping(each.get("properties")).items() if name not in found})
        return found

    def _inner(self, schema: Any) -> list[Mapping[str, Any]]:
        """The alternatives of a schema, those of what a list or map holds in their place."""
        found, levels = self._branches(schema), DEEPEST
        while levels and any(held := [inside for each in found if (inside := _held(each)) is not None]):
            found = [each for each in found if _held(each) is None]
            found += [branch for inside in held for branch in self._branches(inside)]
            found = found[:_MOST_ALTERNATIVES]
            levels -= 1
        return found

    def _branches(self, schema: Any) -> list[Mapping[str, Any]]:
        """References followed, alternatives side by side; "null" goes without saying."""
        found: list[Mapping[str, Any]] = []
        waiting = [schema]
        for _ in range(_MOST_LOOKED_AT):
            if not waiting or len(found) == _MOST_ALTERNATIVES:
                break
            one = _mapping(waiting.pop(0))
            inner = [each for name in ("anyOf", "oneOf", "allOf") for each in _list(one.get(name))]
            if isinstance(reference := one.get("$ref"), str):
                waiting.insert(0, self._referred(reference))
            elif inner:
                waiting[:0] = inner
            elif one and one.get("type") != "null":
                found.append(one)
        return found

    def _referred(self, reference: str) -> Any:
        found: Any = self._root
        for part in filter(None, reference.removeprefix("#").split("/")[:DEEPEST]):
            found = _mapping(found).get(part)
        return found


def path_of(text: str) -> tuple[str, ...]:
    """``ports[0].fixedIPs`` and ``ports.fixedIPs`` name the same field."""
    return tuple(part for part in re.sub(r"\[[^\]]*\]", "", text).split(".") if part)


def _held(schema: Mapping[str, Any]) -> Any:
    """Schema of a list's items or of a map's values; None for what is neither."""
    if isinstance(schema.get("items"), Mapping):
        return schema["items"]
    return _values_of_map(schema)


def _values_of_map(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """None for an object with fields of its own, and for one of which nothing is said."""
    if schema.get("properties"):
        return None
    candidates = [schema.get("additionalProperties"), *_mapping(schema.get("patternProperties")).values()]
    return next((each for each in candidates if isinstance(each, Mapping)), None)


def _limits(schema: Mapping[str, Any]) -> Iterator[str]:
    for name, words in _LIMITS.items():
        value = schema.get(name)
        if isinstance(value, int | float | str) and (name, value) not in _OBVIOUS:
            yield f"{words} {value}"


def _words(text: Any) -> str:
    return " ".join(text.split()) if isinstance(text, str) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
