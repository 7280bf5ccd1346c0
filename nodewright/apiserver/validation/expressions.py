"""One CEL expression: compiled, with only those parts of an object converted that it reads.

Converting a whole object for the interpreter costs more than running most rules, so the paths behind `self` and
`oldSelf` are read off the text, and the rest of the object is left out.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from nodewright.apiserver.validation.interpreter import STDLIB_FUNCTIONS, cel
from nodewright.apiserver.validation.nodes import Node

_READ: Final = re.compile(r"\b(self|oldSelf)\b((?:\s*\.\s*[A-Za-z_]\w*)*)(\s*\()?")
_MENTIONS_OLD: Final = re.compile(r"\boldSelf\b")
_STRINGS: Final = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"")
_OPTIONAL: Final = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)((?:\.\?[A-Za-z_]\w*)+)")
_ESCAPED: Final = re.compile(r"__\w+?__")
_NATIVE_WORDS: Final = """
    size contains startsWith endsWith matches int uint double string bytes bool timestamp duration type
    dyn has value hasValue or orValue optMap optFlatMap optional.of optional.none
    optional.ofNonZeroValue max min getFullYear getMonth getDate getDayOfYear getDayOfMonth getDayOfWeek
    getHours getMinutes getSeconds getMilliseconds
"""
_NATIVE: Final = frozenset(_NATIVE_WORDS.split())


def _is_sorted(items: list[Any]) -> bool:
    return all(a <= b for a, b in pairwise(items))


def _index_of(items: Any, wanted: Any) -> int:
    if isinstance(items, str):
        return items.find(wanted)
    return items.index(wanted) if wanted in items else -1


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    return found.group() if found else ""


def _find_all(text: str, pattern: str) -> list[str]:
    return [match.group() for match in re.finditer(pattern, text)]


def _select(container: Any, path: str) -> cel.OptionalValue:
    for key in path.split("."):
        if not isinstance(container, dict) or key not in container:
            return cel.OptionalValue.none()
        container = container[key]
    return cel.OptionalValue.of(container)


_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **STDLIB_FUNCTIONS,
    "isSorted": _is_sorted,
    "indexOf": _index_of,
    "find": _find,
    "findAll": _find_all,
    "optionalField": _select,
}

Paths = dict[str, "Paths | None"]
"""The fields that an expression reads: None is all below."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression over `self` and `oldSelf`."""

    program: cel.Program
    reads: Mapping[str, Paths | None]
    functions: Mapping[str, Callable[..., Any]]
    node: Node
    converts: bool
    escapes: bool
    uses_old: bool

    def run(self, value: Any, old: Any, optional_old: bool) -> Any:
        """Evaluate for a value and its old one (None: there is none).

        Raises as the interpreter does: KeyError, IndexError, TypeError, ValueError, ArithmeticError, RuntimeError.
        """
        given: dict[str, Any] = dict(self.functions)
        if "self" in self.reads:
            given["self"] = self._prepare(value, self.reads["self"])
        if "oldSelf" in self.reads:
            before = self._prepare(old, self.reads["oldSelf"])
            if optional_old:
                before = cel.OptionalValue.none() if old is None else cel.OptionalValue.of(before)
            given["oldSelf"] = before
        return self.program.execute(given)

    def _prepare(self, value: Any, paths: Paths | None) -> Any:
        narrowed = _narrow(value, paths)
        converted = _convert(self.node, narrowed) if self.converts else narrowed
        return _escape(converted) if self.escapes else converted


def compile_expression(text: str, node: Node) -> Expression:
    """Compile an expression for values of a schema node.

    Raises ValueError if it does not parse or calls a function that is not known here (Kubernetes' `quantity`, `url`,
    `ip`, `cidr`, `format` and `semver` libraries and `cel.bind` are not).
    """
    rewritten = _OPTIONAL.sub(_rewrite_optional, text)
    try:
        program = cel.compile(rewritten)
    except ValueError as error:
        raise ValueError(f"rule {text!r}: {str(error).splitlines()[0]}") from error
    called = {name for name in program.functions() if not name.startswith(("_", "!", "-", "@"))}
    unknown = sorted(called - _NATIVE - _FUNCTIONS.keys() - {"in"})
    free = sorted(set(program.variables()) & {"cel"})
    if unknown or free:
        raise ValueError(f"rule {text!r}: unknown function {(unknown or free)[0]!r}")
    escapes = _ESCAPED.search(text) is not None
    functions = {name: _FUNCTIONS[name] for name in _needed(rewritten, called)}
    reads = {"self": None, "oldSelf": None} if escapes else _reads(rewritten)
    mentioned = _STRINGS.sub("''", text)
    return Expression(
        program=program,
        reads=reads,
        functions=functions,
        node=node,
        converts=any(_needs_conversion(node, paths) for paths in reads.values()),
        escapes=escapes,
        uses_old=_MENTIONS_OLD.search(mentioned) is not None,
    )


def _needed(text: str, called: set[str]) -> set[str]:
    dotted = {name for name in _FUNCTIONS if "." in name and name in text}
    return {name for name in called if name in _FUNCTIONS and name not in _NATIVE - {"contains", "max", "min"}} | dotted


def _rewrite_optional(match: re.Match[str]) -> str:
    path = match.group(2).replace(".?", ".").removeprefix(".")
    return f"optionalField({match.group(1)}, '{path}')"


def _reads(text: str) -> dict[str, Paths | None]:
    reads: dict[str, Paths | None] = {}
    for match in _READ.finditer(text):
        name, dotted, call = match.groups()
        steps = [step.strip() for step in dotted.split(".")[1:]]
        if call and steps == ["hasValue"]:
            reads.setdefault(name, {})
        else:
            _add(reads, [name, *(steps[:-1] if call and steps else steps)])
    return reads


def _add(paths: dict[str, Any], steps: list[str]) -> None:
    first, rest = steps[0], steps[1:]
    if not rest:
        paths[first] = None
    elif first not in paths:
        paths[first] = {}
        _add(paths[first], rest)
    elif paths[first] is not None:
        _add(paths[first], rest)


def _narrow(value: Any, paths: Paths | None) -> Any:
    if paths is None or not isinstance(value, dict):
        return value
    return {key: _narrow(value[key], below) for key, below in paths.items() if key in value}


_CONVERTED: Final = frozenset({"date-time", "datetime", "date", "duration", "byte"})


def _needs_conversion(node: Node, paths: Paths | None = None) -> bool:
    """Tell whether anything that an expression reads has a CEL type of its own."""
    if node.raw.get("format") in _CONVERTED or node.types == ("number",):
        return True
    if paths is not None and node.types == ("object",):
        read = [(node.child(key), below) for key, below in paths.items()]
        return any(child is not None and _needs_conversion(child, below) for child, below in read)
    children = [*node.properties.values(), *(c for c in (node.items, node.additional) if c is not None)]
    return any(_needs_conversion(child) for child in children)


def _convert(node: Node | None, value: Any) -> Any:
    """Give CEL's own types to what the schema declares as times, durations, bytes and floating point numbers."""
    if node is None:
        return value
    if isinstance(value, dict):
        return {key: _convert(node.child(key), child) for key, child in value.items()}
    if isinstance(value, list):
        return [_convert(node.items, item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and node.types == ("number",):
        return float(value)
    if isinstance(value, str):
        return _convert_text(str(node.raw.get("format", "")), value)
    return value


def _convert_text(form: str, text: str) -> Any:
    try:
        match form:
            case "date-time" | "datetime" | "date":
                moment = datetime.fromisoformat(text if form != "date" else f"{text}T00:00:00Z")
                return moment if moment.tzinfo else text
            case "duration":
                return _duration(text)
            case "byte":
                return base64.b64decode(text)
            case _:
                return text
    except ValueError:
        return text


_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def _duration(text: str) -> timedelta:
    parts = re.findall(r"([\d.]+)(h|ms|us|µs|ns|m|s)", text)
    seconds = sum(float(amount) * _UNITS[unit] for amount, unit in parts)
    return timedelta(seconds=-seconds if text.startswith("-") else seconds)


_RESERVED_WORDS: Final = """
    true false null in as break const continue else for function if import let loop package namespace
    return var void while
"""
_RESERVED: Final = frozenset(_RESERVED_WORDS.split())


def _escape(value: Any) -> Any:
    """Rename keys that are no CEL identifiers as Kubernetes does: `a-b` is `a__dash__b`, `if` is `__if__`."""
    if isinstance(value, dict):
        return {_escape_key(key): _escape(child) for key, child in value.items()}
    return [_escape(item) for item in value] if isinstance(value, list) else value


def _escape_key(key: str) -> str:
    if key in _RESERVED:
        return f"__{key}__"
    escaped = key.replace("__", "__underscores__")
    return escaped.replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")
