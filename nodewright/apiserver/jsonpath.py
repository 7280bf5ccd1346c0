"""JSONPath as Kubernetes speaks it: printer columns, scale paths, selectable fields.

Follows k8s.io/client-go/util/jsonpath, its oddities included: a dot within `['a.b']` parts two fields unless it is
escaped (`['a\\.b']`), `[*]` is for lists and `.*` for lists and maps, values of different types can't be compared, and
an index out of bounds ends the search where a missing field doesn't. Paths are compiled once and kept.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from api.remembered import remembered

Finder = Callable[[Any], list[Any]]
_Step = Callable[[list[Any]], list[Any]]

_MAX_LENGTH = 4096
_MAX_DEPTH = 32
_FIELD = re.compile(r"(?:\\.|[^\\\s.,\[\]$@{}])+", re.DOTALL)
_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?", re.ASCII)
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?", re.ASCII)
_WORD = re.compile(r"\w")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_COMPARABLE = frozenset({bool, int, float, str})
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class JSONPathError(ValueError):
    """What is no JSONPath. The text names the path."""


class _NoAnswer(Exception):
    """The path can't be followed in this object: an index out of bounds, a filter on what is no list."""


def find(path: str, obj: Any) -> list[Any]:
    """Give all that `path` (as in `.status.conditions[?(@.type=="Ready")].status`) leads to in `obj`, in order.

    A missing field, an index out of bounds or a type that doesn't fit gives an empty list.
    Raises JSONPathError for a path that can't be read.
    """
    return compile_path(path)(obj)


@remembered(4096)
def compile_path(path: str) -> Finder:
    """Give the function that follows `path` as `find` does. Raises JSONPathError."""
    if len(path) > _MAX_LENGTH:
        raise JSONPathError(f"JSONPath of {len(path)} characters is too long; at most {_MAX_LENGTH} are allowed")
    steps = _Reader(path, path if path[:1] in (".", "[", "$", "@") else f".{path}").steps()
    names = [step.name for step in steps if isinstance(step, _Member)]
    return _fields(names) if len(names) == len(steps) else _walk(steps)


def _fields(names: list[str]) -> Finder:
    def follow(obj: Any) -> list[Any]:
        value = obj
        for name in names:
            if type(value) is not dict or name not in value:
                return []
            value = value[name]
        return [value]

    return follow


def _walk(steps: list[_Step]) -> Finder:
    def follow(obj: Any) -> list[Any]:
        try:
            return _take(steps, [obj])
        except _NoAnswer:
            return []

    return follow


def _take(steps: list[_Step], values: list[Any]) -> list[Any]:
    for step in steps:
        if not values:
            break
        values = step(values)
    return values


class _Member:
    """`.name`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, values: list[Any]) -> list[Any]:
        name = self.name
        return [value[name] for value in values if type(value) is dict and name in value]


def _every(values: list[Any]) -> list[Any]:
    """`.*`."""
    return [child for value in values for child in _children(value)]


def _below(values: list[Any]) -> list[Any]:
    """`..`: the lists and maps themselves, and those within them."""
    found: list[Any] = []
    for value in values:
        if children := _children(value):
            found.append(value)
            found.extend(_below(children))
    return found


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _index(at: int) -> _Step:
    def take(values: list[Any]) -> list[Any]:
        found = []
        for value in _lists(values):
            place = at + len(value) if at < 0 else at
            if not 0 <= place < len(value):
                raise _NoAnswer
            found.append(value[place])
        return found

    return take


def _slice(start: int, end: int | None, step: int) -> _Step:
    def take(values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for value in _lists(values):
            length = len(value)
            first = start + length if start < 0 else start
            last = length if end is None else end + length if end < 0 else end
            if first == last:
                continue
            if step <= 0 or not 0 <= first < last <= length:
                raise _NoAnswer
            found.extend(value[first:last:step])
        return found

    return take


def _lists(values: list[Any]) -> list[list[Any]]:
    for value in values:
        if type(value) is not list:
            return _lists_but_nulls(values)
    return values


def _lists_but_nulls(values: list[Any]) -> list[list[Any]]:
    lists = [value for value in values if value is not None]
    if not all(isinstance(value, list) for value in lists):
        raise _NoAnswer
    return lists


def _union(branches: list[list[_Step]]) -> _Step:
    return lambda values: [found for steps in branches for found in _take(steps, values)]


class _Constant:
    """`"Ready"`."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, values: list[Any]) -> list[Any]:
        return [self.value]


def _dead_end(values: list[Any]) -> list[Any]:
    raise _NoAnswer


def _filter(left: list[_Step], compare: str, right: list[_Step]) -> _Step:
    """`[?(left compare right)]`; without a comparison, whether there is a left."""
    if len(left) == len(right) == 1 and isinstance(left[0], _Member) and isinstance(right[0], _Constant):
        return _filter_member(left[0].name, compare, right[0].value)

    def passes(item: Any) -> bool:
        lefts = _take(left, [item])
        if not compare:
            return bool(lefts)
        rights = _take(right, [item])
        if not lefts or not rights:
            return False
        if len(lefts) > 1 or len(rights) > 1:
            raise _NoAnswer
        return _compare(compare, lefts[0], rights[0])

    return lambda values: [item for value in _lists(values) for item in value if passes(item)]


def _filter_member(name: str, compare: str, value: Any) -> _Step:
    """`[?(@.name compare value)]`, which is what nearly all filters are: the same as `_filter`, in less time."""

    def take(values: list[Any]) -> list[Any]:
        found = []
        for items in _lists(values):
            for item in items:
                if type(item) is dict and name in item and _compare(compare, item[name], value):
                    found.append(item)
        return found

    return take


def _compare(name: str, left: Any, right: Any) -> bool:
    # Go compares values of one basic kind only: a number is never equal to its text, nor 1 to 1.0.
    kind = type(left)
    if kind is not type(right) or kind not in _COMPARABLE or name not in _COMPARE:
        raise _NoAnswer
    if kind is bool and name not in ("==", "!="):
        raise _NoAnswer
    return _COMPARE[name](left, right)


class _Reader:
    """Reads a path into steps."""

    def __init__(self, path: str, text: str, depth: int = 0) -> None:
        self._path = path
        self._text = text
        self._at = 0
        self._depth = depth

    def steps(self) -> list[_Step]:
        """Give the steps of the whole path."""
        found: list[_Step] = []
        while self._at < len(self._text):
            found.extend(self._next())
        return found

    def _next(self) -> list[_Step]:
        text, at = self._text, self._at
        if text.startswith("..", at):
            return self._read_descent()
        if text.startswith("[?(", at):
            return [self._read_filter()]
        char = text[at]
        self._at += 1
        if char in "$@ ":
            return []
        if char == ".":
            return self._read_field()
        if char == "[":
            return self._read_brackets()
        raise self._fault(f"unexpected {char!r}")

    def _read_descent(self) -> list[_Step]:
        self._at += len("..")
        rest = self._text[self._at : self._at + 2]
        if rest == "..":
            raise self._fault("invalid multiple recursive descent")
        return [_below, *(self._read_field() if _WORD.match(rest) else [])]

    def _read_field(self) -> list[_Step]:
        match = _FIELD.match(self._text, self._at)
        if match is None:
            return [_Member("")]
        self._at = match.end()
        name = match.group()
        return [_every] if name == "*" else [_Member(name.replace("\\", ""))]

    def _read_brackets(self) -> list[_Step]:
        end = self._text.find("]", self._at)
        if end < 0:
            raise self._fault("unterminated array")
        content = self._text[self._at : end]
        self._at = end + 1
        parts = content.split(",")
        if len(parts) > 1:
            return [_union([self._inner(f"[{part.strip()}]") for part in parts])]
        if (key := _KEY.fullmatch(content)) is not None:
            return self._inner(f".{key.group(1)}")
        return [self._read_slice(content)]

    def _read_slice(self, content: str) -> _Step:
        match = _SLICE.fullmatch(":" if content == "*" else content)
        if match is None:
            raise self._fault(f"invalid array index {content}")
        first, last, step = ((group or "").lstrip(":") for group in match.groups())
        try:
            if match.group(2) is None:
                return _index(int(first or 0))
            return _slice(int(first or 0), int(last) if last else None, int(step) if step else 1)
        except ValueError:
            raise self._fault(f"invalid array index {content}") from None

    def _read_filter(self) -> _Step:
        start = self._at + len("[?(")
        end = self._filter_end(start)
        self._at = end + len(")]")
        content = self._text[start:end]
        match = _COMPARISON.fullmatch(content)
        if match is None:
            return _filter(self._inner(content.strip()), "", [])
        left, compare, right = (group.strip() for group in match.groups())
        return _filter(self._operand(left), compare, self._operand(right))

    def _filter_end(self, start: int) -> int:
        quote, open_ = "", 1
        for place in range(start, len(self._text)):
            char = self._text[place]
            if quote:
                quote = "" if char == quote and self._text[place - 1] != "\\" else quote
            elif char in "'\"":
                quote = char
            elif char == "(":
                open_ += 1
            elif char == ")":
                open_ -= 1
                if not open_:
                    if not self._text.startswith(")]", place):
                        raise self._fault("unclosed array, expect ]")
                    return place
        raise self._fault("unterminated filter")

    def _operand(self, text: str) -> list[_Step]:
        if len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
            return [_Constant(_ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1]))]
        if (number := _NUMBER.fullmatch(text)) is not None:
            return [_Constant(float(text) if number.group(1) else int(text))]
        if text in ("true", "false"):
            return [_Constant(text == "true")]
        # A bare word is an identifier, which means nothing here; a search that comes to it ends.
        return [_dead_end] if _WORD.match(text) else self._inner(text)

    def _inner(self, text: str) -> list[_Step]:
        if not text:
            raise self._fault("a filter or a bracket is empty")
        if self._depth >= _MAX_DEPTH:
            raise self._fault(f"nested more than {_MAX_DEPTH} deep")
        return _Reader(self._path, text, self._depth + 1).steps()

    def _fault(self, why: str) -> JSONPathError:
        return JSONPathError(f'JSONPath "{self._path}": {why}')
