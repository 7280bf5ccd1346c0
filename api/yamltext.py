"""The one loader for YAML and JSON that somebody else wrote: Secrets, ConfigMaps, configurations, requests, manifests.

A text is bounded in size, and read as events first: aliases, anchors, merge keys, foreign tags, depth and the number of
values are judged before anything is built. What comes out is JSON: maps with text as keys, lists, text, finite numbers
of 64 bits, booleans and null. An error says what is wrong and in which line; it never quotes a value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, get_args

from api.limits import MAX_TEXT_BYTES, MAX_TEXT_DEPTH, MAX_TEXT_VALUES
from api.visible import visible

if TYPE_CHECKING:
    import yaml

Numbers = Literal["yaml", "kubernetes", "none"]
"""How plain scalars resolve. ``yaml``: as PyYAML's safe loader has them; ``kubernetes``: as sigs.k8s.io/yaml, which
kubectl uses; ``none``: all are text. Times stay text in all three."""
_BRACKETS: Final = frozenset('{["')
_DIGITS: Final = frozenset("-0123456789")
_JSON_BEGINS: Final = {"yaml": _BRACKETS | _DIGITS, "kubernetes": _BRACKETS | _DIGITS, "none": _BRACKETS}
"""The first characters of what is tried as JSON first. YAML 1.1 has ``1e-05`` as text, JSON has it as a number."""
_CORE: Final = frozenset({"str", "int", "float", "bool", "null", "seq", "map"})
_PREFIX: Final = "tag:yaml.org,2002:"
_LONGEST_NUMBER: Final = 64
_LONGEST_PROBLEM: Final = 160
_LONGEST_KEY: Final = 40
NO_ALIASES: Final = "anchors and aliases are not allowed; write the value out"
NO_MERGE_KEYS: Final = "merge keys (<<) are not allowed; write the fields out"
_LEAST, _MOST = -(2**63), 2**64 - 1
_INT = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|(0|[1-9][0-9_]*))\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_TRUE: Final = frozenset({"yes", "true", "on"})


class TextError(ValueError):
    """A text that is refused. ``line`` counts from 1, 0 if it is not known; ``column`` likewise."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        problem = visible(" ".join(problem.split()))[:_LONGEST_PROBLEM]
        super().__init__(f"line {line}: {problem}" if line else problem)
        self.problem = problem
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Bounds:
    """``size`` is in bytes of UTF-8."""

    size: int = MAX_TEXT_BYTES
    depth: int = MAX_TEXT_DEPTH
    values: int = MAX_TEXT_VALUES
    numbers: Numbers = "yaml"


DEFAULT: Final = Bounds()


def load(text: str | bytes, bounds: Bounds = DEFAULT) -> Any:
    """The value of one document, None for an empty one. Raises TextError, and nothing else."""
    content = _text(text, bounds)
    if content.lstrip()[:1] in _JSON_BEGINS[bounds.numbers]:
        found, value = _json(content, bounds)
        if found:
            return value
    node = compose(content, bounds)
    return None if node is None else _Builder(bounds).value(node)


def dump(value: Any) -> str:
    """The YAML of a value that ``load`` gave, with its maps in their order."""
    import yaml  # noqa: PLC0415 - most of what is written is JSON

    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    return text


def load_parser() -> None:
    """Load what reads YAML now: that takes as long as many reconciles, and would else fall to the first text."""
    for numbers in get_args(Numbers):
        _loader(numbers)


def compose(text: str | bytes, bounds: Bounds = DEFAULT) -> yaml.Node | None:
    """The tree of one document, with a place for each node; its events were judged. Raises TextError."""
    import yaml  # noqa: PLC0415 - most of what is read is JSON

    content = _text(text, bounds)
    loader_class = _loader(bounds.numbers)
    try:
        _judge(content, bounds, loader_class)
        loader = loader_class(content)
        try:
            node: yaml.Node | None = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        _refuse(error)
    return node


def check(value: Any, bounds: Bounds = DEFAULT) -> str:
    """Why a value that was read elsewhere would be refused, "" if it would not: depth, number of values, types."""
    count, waiting = 0, [(value, 1)]
    while waiting:
        found, depth = waiting.pop()
        count += 1
        if count > bounds.values:
            return f"has more than {bounds.values} values"
        if isinstance(found, dict | list):
            if depth > bounds.depth:
                return f"is nested more than {bounds.depth} levels deep"
            if isinstance(found, dict) and not all(isinstance(key, str) for key in found):
                return "has a key that is not text"
            if count + len(waiting) + len(found) > bounds.values:
                return f"has more than {bounds.values} values"
            waiting.extend((one, depth + 1) for one in (found.values() if isinstance(found, dict) else found))
        elif fault := _scalar_fault(found):
            return fault
    return ""


def shown(value: object) -> str:
    """A value of others for a message: in one line, short, and with nothing that steers a terminal."""
    text = " ".join(visible(value if isinstance(value, str) else repr(value)).split())
    return text if len(text) <= _LONGEST_KEY else f"{text[:_LONGEST_KEY]}…"


def _scalar_fault(value: Any) -> str:
    if value is None or isinstance(value, str | bool):
        return ""
    if isinstance(value, int):
        return "" if _LEAST <= value <= _MOST else "has an integer of more than 64 bits"
    if isinstance(value, float):
        return "" if math.isfinite(value) else "has a number that is not finite"
    return f"has a value of the type {type(value).__name__}, which JSON has not"


def _text(text: str | bytes, bounds: Bounds) -> str:
    if len(text) > bounds.size:
        raise TextError(f"has more than {bounds.size} bytes")
    try:
        encoded = text.encode() if isinstance(text, str) else text
        decoded = text if isinstance(text, str) else text.decode()
    except UnicodeError:
        raise TextError("is not text in UTF-8") from None
    if len(encoded) > bounds.size:
        raise TextError(f"has more than {bounds.size} bytes")
    return decoded.removeprefix("\ufeff")


# --- JSON -----------------------------------------------------------------------------------------------------------


def _json(text: str, bounds: Bounds) -> tuple[bool, Any]:
    """Whether it is JSON, and the value. What is no JSON may be YAML that begins with a bracket."""
    try:
        value = json.loads(
            text, object_pairs_hook=_pairs, parse_int=_integer_of_json, parse_float=_float, parse_constant=_constant
        )
    except RecursionError:
        raise TextError(f"is nested more than {bounds.depth} levels deep") from None
    except json.JSONDecodeError:
        return False, None
    if fault := check(value, bounds):
        raise TextError(fault)
    return True, _as_text(value) if bounds.numbers == "none" else value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _doubled(key)
            seen.add(key)
    return found


def _as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_text(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_as_text(one) for one in value]
    return value if isinstance(value, str) else json.dumps(value)


def _integer_of_json(text: str) -> int:
    return _in_range(int(_short(text)))


def _float(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise TextError("a number is not finite")
    return found


def _constant(_: str) -> NoReturn:
    raise TextError("a number is not finite")


# --- YAML -----------------------------------------------------------------------------------------------------------


@cache
def _loader(numbers: Numbers) -> Any:
    """A loader class whose plain scalars resolve in that way; its parser is libyaml's where PyYAML has it."""
    import yaml  # noqa: PLC0415

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader = type("_Loader", (base,), {"yaml_implicit_resolvers": {}})
    if numbers == "none":
        return loader
    kept = ("bool", "null", "merge", *(("int", "float") if numbers == "yaml" else ()))
    loader.yaml_implicit_resolvers = {  # type: ignore[attr-defined]
        first: [(tag, rule) for tag, rule in rules if tag.removeprefix(_PREFIX) in kept]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    if numbers == "kubernetes":
        loader.add_implicit_resolver(f"{_PREFIX}int", _INT, list("-+0123456789"))  # type: ignore[attr-defined]
        loader.add_implicit_resolver(f"{_PREFIX}float", _FLOAT, list("-+.0123456789"))  # type: ignore[attr-defined]
    return loader


def _judge(text: str, bounds: Bounds, loader: Any) -> None:
    """Refuse by events alone. Nothing of the text is built, and parsing stops at the first fault."""
    import yaml  # noqa: PLC0415

    depth = count = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        count += 1
        if event.anchor is not None:
            raise _at(event.start_mark, NO_ALIASES)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        if depth > bounds.depth:
            raise _at(event.start_mark, f"nested more than {bounds.depth} levels deep")
        if count > bounds.values:
            raise _at(event.start_mark, f"more than {bounds.values} values")


class _Builder:
    """Turns a tree without aliases into values."""

    def __init__(self, bounds: Bounds) -> None:
        self._untyped = bounds.numbers == "none"

    def value(self, node: Any) -> Any:
        kind = kind_of(node)
        if kind == "map":
            return dict(self._members(node))
        if kind == "seq":
            return [self.value(one) for one in node.value]
        return node.value if self._untyped else scalar(node)

    def _members(self, node: Any) -> Iterator[tuple[str, Any]]:
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key.value, str):
                raise _at(key.start_mark, "keys must be text")
            if key.tag == f"{_PREFIX}merge":
                raise _at(key.start_mark, NO_MERGE_KEYS)
            if key.value in seen:
                raise _doubled(key.value, key.start_mark)
            seen.add(key.value)
            yield key.value, self.value(value)


def kind_of(node: Any) -> str:
    """One of str, int, float, bool, null, seq and map. Raises TextError for any other tag, or one of another shape."""
    kind = "str" if node.tag == "!" else str(node.tag).removeprefix(_PREFIX)
    collection = isinstance(node.value, list)
    if kind not in _CORE or collection != (kind in ("seq", "map")) or getattr(node, "id", "") == _OTHER.get(kind):
        raise _at(node.start_mark, f"tag {shown(str(node.tag).replace(_PREFIX, '!!'))} has no meaning here")
    return kind


_OTHER: Final = {"seq": "mapping", "map": "sequence"}


def scalar(node: Any) -> Any:
    """The value of a scalar node. Raises TextError for a number that JSON, or 64 bits, can't hold."""
    kind, text = kind_of(node), str(node.value)
    if kind == "str":
        return text
    if kind == "null":
        return None
    if kind == "bool":
        if text.lower() not in _TRUE and text.lower() not in ("no", "false", "off"):
            raise _at(node.start_mark, "not a boolean")
        return text.lower() in _TRUE
    try:
        return number(text, kind)
    except TextError as error:
        raise _at(node.start_mark, error.problem) from None
    except (ValueError, IndexError, OverflowError):
        raise _at(node.start_mark, "not a number") from None


def number(text: str, kind: str) -> int | float:
    """A number in one of YAML's ways of writing it, base 60 included. Raises ValueError, TextError for the size."""
    plain = _short(text).replace("_", "").lower()
    sign, digits = (-1, plain[1:]) if plain.startswith("-") else (1, plain.removeprefix("+"))
    if kind == "float":
        if digits in (".inf", ".nan"):
            raise TextError("a number is not finite")
        return sign * (_float(digits) if ":" not in digits else _base_60(digits, float))
    if ":" in digits:
        return _in_range(sign * int(_base_60(digits, int)))
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return _in_range(sign * int(digits, 8))
    return _in_range(sign * int(digits, 0))


def _base_60(digits: str, one: type[int] | type[float]) -> int | float:
    found: int | float = 0
    for part in digits.split(":"):
        found = found * 60 + one(part)
    return found


def _short(text: str) -> str:
    if len(text) > _LONGEST_NUMBER:
        raise TextError(f"a number of more than {_LONGEST_NUMBER} digits")
    return text


def _in_range(value: int) -> int:
    if not _LEAST <= value <= _MOST:
        raise TextError("an integer of more than 64 bits")
    return value


def _doubled(key: str, mark: Any = None) -> TextError:
    text = f'key "{key[:_LONGEST_KEY]}" already set in map'
    return _at(mark, text) if mark is not None else TextError(text)


def _at(mark: Any, problem: str) -> TextError:
    return TextError(problem, mark.line + 1, mark.column + 1)


def _refuse(error: Exception) -> NoReturn:
    """What the parser says, without the text that it quotes."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    parts = [getattr(error, part, None) for part in ("context", "problem")]
    problem = ", ".join(str(part) for part in parts if part) or "not text that YAML allows"
    raise TextError(problem, mark.line + 1 if mark else 0, mark.column + 1 if mark else 0) from None
