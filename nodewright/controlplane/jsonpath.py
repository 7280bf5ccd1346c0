"""JSONPath as kubectl and CustomResourceDefinitions write it: `.status.conditions[?(@.type=="Ready")].status`.

Fields, quoted fields (`['a.b']`), escaped dots (`a\\.b`), indices and slices (also negative), `[*]`, `..name`, unions
(`['a','b']`, `[0,2]`) and filters (comparisons and existence). Braces around the whole path are accepted. A path into
what is not there finds nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

MAX_LENGTH: Final = 4096
"""Characters of a path; longer ones are refused."""

_FIELD: Final = re.compile(r"(?:\\.|[^\\.\[\]\s])+")
_QUOTED: Final = re.compile(r"'((?:\\.|[^'\\])*)'|\"((?:\\.|[^\"\\])*)\"")
_FILTER: Final = re.compile(r"\s*(.+?)\s*(==|!=|<=|>=|<|>)\s*(.+?)\s*$|\s*(.+?)\s*$", re.DOTALL)
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?$")

Step = Callable[[Any], Iterator[Any]]


class JSONPathError(ValueError):
    """The path cannot be read; the message says where."""


@dataclass(frozen=True, slots=True)
class Path:
    """A compiled path."""

    text: str
    steps: tuple[Step, ...]

    def find(self, obj: Any) -> list[Any]:
        """Give all values that the path leads to, in order."""
        found = [obj]
        for step in self.steps:
            found = [value for item in found for value in step(item)]
            if not found:
                break
        return found


def find(path: str, obj: Any) -> list[Any]:
    """Give all values that a path leads to. Raises JSONPathError for a path that cannot be read."""
    return compile_path(path).find(obj)


@lru_cache(maxsize=2048)
def compile_path(text: str) -> Path:
    """Compile a path. Raises JSONPathError."""
    if len(text) > MAX_LENGTH:
        raise JSONPathError(f"path of {len(text)} characters is longer than {MAX_LENGTH}")
    body = text.strip()
    if body.startswith("{") and body.endswith("}"):
        body = body[1:-1].strip()
    return Path(text, tuple(_parse(body.removeprefix("$").removeprefix("@"))))


def _parse(body: str) -> Iterator[Step]:
    at = 0
    while at < len(body):
        if body.startswith("..", at):
            at += 2
            yield _everything_below
            if at < len(body) and body[at] != "[":
                at, name = _read_field(body, at)
                yield _field(name)
        elif body[at] == "[":
            end = _closing(body, at)
            yield _bracket(body[at + 1 : end].strip())
            at = end + 1
        else:
            at += body[at] == "."
            if at >= len(body):
                return
            if body[at] != "[":
                at, name = _read_field(body, at)
                yield _wildcard if name == "*" else _field(name)


def _read_field(body: str, at: int) -> tuple[int, str]:
    match = _FIELD.match(body, at)
    if match is None:
        raise JSONPathError(f"{body!r}: no field name at character {at}")
    return match.end(), re.sub(r"\\(.)", r"\1", match.group())


def _closing(body: str, at: int) -> int:
    depth, place = 0, at
    while place < len(body):
        quoted = _QUOTED.match(body, place)
        if quoted:
            place = quoted.end()
            continue
        depth += (body[place] == "[") - (body[place] == "]")
        if depth == 0:
            return place
        place += 1
    raise JSONPathError(f"{body!r}: unterminated array")


def _bracket(inside: str) -> Step:
    if inside == "*":
        return _wildcard
    if inside.startswith("?"):
        condition = inside[1:].strip()
        if not (condition.startswith("(") and condition.endswith(")")):
            raise JSONPathError(f"[{inside}]: a filter is written [?(…)]")
        return _filter(condition[1:-1])
    parts = _split(inside)
    steps = [_selector(part.strip()) for part in parts]
    return steps[0] if len(steps) == 1 else _union(steps)


def _split(inside: str) -> list[str]:
    parts, start, place = [], 0, 0
    while place < len(inside):
        quoted = _QUOTED.match(inside, place)
        if quoted:
            place = quoted.end()
            continue
        if inside[place] == ",":
            parts.append(inside[start:place])
            start = place + 1
        place += 1
    return [*parts, inside[start:]]


def _selector(part: str) -> Step:
    quoted = _QUOTED.fullmatch(part)
    if quoted:
        return _field(_unquote(quoted))
    if re.fullmatch(r"-?\d+", part):
        return _index(int(part))
    if re.fullmatch(r"(-?\d+)?:(-?\d+)?(:(-?\d+)?)?", part):
        return _slice(slice(*(int(bound) if bound else None for bound in part.split(":"))))
    raise JSONPathError(f"[{part}]: neither an index, a slice nor a quoted name")


def _unquote(match: re.Match[str]) -> str:
    text = match.group(1) if match.group(1) is not None else match.group(2)
    return re.sub(r"\\(.)", r"\1", text)


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(place: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= place < len(value):
            yield value[place]

    return step


def _slice(bounds: slice) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and bounds.step != 0:
            yield from value[bounds]

    return step


def _union(steps: list[Step]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for each in steps:
            yield from each(value)

    return step


def _wildcard(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _everything_below(value: Any) -> Iterator[Any]:
    yield value
    for child in _wildcard(value):
        if isinstance(child, (dict, list)):
            yield from _everything_below(child)


def _filter(condition: str) -> Step:
    match = _FILTER.fullmatch(condition)
    if match is None:
        raise JSONPathError(f"?({condition}): cannot be read")
    if match.group(2) is None:
        operand = _operand(match.group(4))
        return _where(lambda item: bool(operand(item)))
    left, operator, right = _operand(match.group(1)), match.group(2), _operand(match.group(3))
    return _where(lambda item: any(_holds(a, operator, b) for a in left(item) for b in right(item)))


def _where(holds: Callable[[Any], bool]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from (item for item in value if holds(item))

    return step


def _operand(text: str) -> Callable[[Any], list[Any]]:
    if text.startswith(("@", "$", ".")):
        return compile_path(text).find
    quoted = _QUOTED.fullmatch(text)
    constant: Any
    if quoted:
        constant = _unquote(quoted)
    elif text in ("true", "false", "null") or _NUMBER.match(text):
        constant = json.loads(text)
    else:
        raise JSONPathError(f"?({text}): neither a path nor a constant")
    return lambda _: [constant]


def _holds(left: Any, operator: str, right: Any) -> bool:
    if isinstance(left, bool) != isinstance(right, bool):
        return operator == "!="
    match operator:
        case "==":
            return bool(left == right)
        case "!=":
            return bool(left != right)
    numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
    if not numbers and not (isinstance(left, str) and isinstance(right, str)):
        return False
    match operator:
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case _:
            return bool(left >= right)
