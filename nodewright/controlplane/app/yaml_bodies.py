"""Reading YAML from a client: bounded in depth and size, without aliases, and nothing that JSON does not have.

The parser's events are read one by one. PyYAML's composer is not used: it recurses in C for each level of nesting, so
that a small body overflows the stack, and it constructs values (bytes, sets, times, integers of any size) that can be
neither stored nor sent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import yaml

MAX_DEPTH = 200
"""Levels of nesting, as for bodies of JSON."""
MAX_NODES = 50_000
"""Scalars, lists and maps of one body."""
_MAX_DIGITS = 400
"""Characters of a number: no finite double has more digits before its point than 309."""
_INT64_MIN, _UINT64_MAX = -(1 << 63), (1 << 64) - 1

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_RESOLVERS: Mapping[str | None, list[tuple[str, Any]]] = _BASE.yaml_implicit_resolvers
_TRUE, _FALSE = frozenset({"yes", "true", "on"}), frozenset({"no", "false", "off"})


def load(content: bytes) -> Any:
    """Read one document; None for an empty one. Raises ValueError with a text that says what is wrong, and where."""
    try:
        loader = _BASE(content)
        try:
            return _Builder().read(loader)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None


class _Builder:
    """Makes JSON values of events, with a stack of its own."""

    def __init__(self) -> None:
        self._root: Any = None
        self._documents = 0
        self._nodes = 0
        self._open: list[Any] = []
        """The lists and maps around the present place, outermost first."""
        self._keys: list[str | None] = []
        """For each of them the key that waits for its value."""

    def read(self, loader: Any) -> Any:
        """Read all events of a loader."""
        while (event := loader.get_event()) is not None:
            if isinstance(event, yaml.ScalarEvent):
                self._scalar(event)
            elif isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
                self._begin(event)
            elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
                self._open.pop()
                self._keys.pop()
            elif isinstance(event, yaml.AliasEvent):
                raise _at(event, "aliases are not allowed")
            elif isinstance(event, yaml.DocumentStartEvent):
                self._documents += 1
                if self._documents > 1:
                    raise _at(event, "expected a single document")
            elif isinstance(event, yaml.StreamEndEvent):
                break
        return self._root

    def _scalar(self, event: Any) -> None:
        if self._wants_key():
            if event.value in self._open[-1]:
                raise _at(event, f'key "{event.value[:100]}" already set in map')
            self._keys[-1] = event.value
            return
        try:
            value = _value(event)
        except ValueError as error:
            raise _at(event, str(error)) from None
        self._place(event, value)

    def _begin(self, event: Any) -> None:
        if self._wants_key():
            raise _at(event, "keys must be text")
        is_list = isinstance(event, yaml.SequenceStartEvent)
        if event.tag not in (None, "!", f"{_TAG}{'seq' if is_list else 'map'}"):
            raise _at(event, f"the tag {event.tag[:100]} is not allowed")
        if len(self._open) >= MAX_DEPTH:
            raise _at(event, f"nested more than {MAX_DEPTH} levels deep")
        value: Any = [] if is_list else {}
        self._place(event, value)
        self._open.append(value)
        self._keys.append(None)

    def _wants_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1], dict) and self._keys[-1] is None

    def _place(self, event: Any, value: Any) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _at(event, f"more than {MAX_NODES} values")
        if not self._open:
            self._root = value
        elif isinstance(self._open[-1], list):
            self._open[-1].append(value)
        else:
            self._open[-1][self._keys[-1]] = value
            self._keys[-1] = None


def _at(event: Any, why: str) -> ValueError:
    return ValueError(f"line {event.start_mark.line + 1}: {why}")


def _value(event: Any) -> Any:
    """Give the value of a scalar. Raises ValueError for one that JSON does not have."""
    text: str = event.value
    if event.tag in (None, "!"):
        if not event.implicit[0]:
            return text
        kind = _resolved(text)
    else:
        kind = event.tag.removeprefix(_TAG)
    read = _READERS.get(kind)
    if read is None:
        raise ValueError(f"the tag {event.tag[:100]} is not allowed")
    return read(text)


def _resolved(text: str) -> str:
    """Give the tag of a plain scalar by the rules of YAML 1.1; times, `=` and `<<` stay text."""
    for tag, pattern in (*_RESOLVERS.get(text[:1], ()), *_RESOLVERS.get(None, ())):
        if pattern.match(text):
            kind = tag.removeprefix(_TAG)
            return kind if kind in ("null", "bool", "int", "float") else "str"
    return "str"


def _null(text: str) -> None:
    del text


def _bool(text: str) -> bool:
    lower = text.lower()
    if lower not in _TRUE and lower not in _FALSE:
        raise ValueError(f'"{text[:100]}" is no bool')
    return lower in _TRUE


def _int(text: str) -> int | float | str:
    """Read an integer; one beyond 64 bits becomes a double, as in a JSON body."""
    if ":" in text:
        return text  # Go's YAML knows no numbers to the base of 60
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(text)} characters is too long")
    digits = text.replace("_", "").lstrip("+-").lower()
    prefixes = {"0b": 2, "0x": 16, "0o": 8}
    base = prefixes.get(digits[:2], 8 if digits[:1] == "0" and len(digits) > 1 else 10)
    number = int(digits, base)
    number = -number if text.startswith("-") else number
    return number if _INT64_MIN <= number <= _UINT64_MAX else _finite(float, number)


def _float(text: str) -> float | str:
    if ":" in text:
        return text
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(text)} characters is too long")
    return _finite(float, text.replace("_", ""))


def _finite(convert: Callable[[Any], float], value: Any) -> float:
    try:
        number = convert(value)
    except (OverflowError, ValueError):  # `.inf` and `.nan` too
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("a number is too large, or none: JSON has no infinity and no NaN")
    return number


_READERS: Mapping[str, Callable[[str], Any]] = {
    "null": _null,
    "bool": _bool,
    "int": _int,
    "float": _float,
    "str": str,
    "timestamp": str,
}
