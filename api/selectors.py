"""Label selectors: parse the text form and metav1.LabelSelector into requirements, and match labels. Pure.

Text grammar is kubectl's (apimachinery ``labels.Parse``): ``a=b``, ``a==b``, ``a!=b``, ``a in (x,y)``,
``a notin (x,y)``, ``a``, ``!a``, ``a>3``, ``a<3``, joined by commas (logical and).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

_MAX_TEXT = 16 * 1024
_MOST = 1_000
"""Labels, expressions, or values of one, of a metav1.LabelSelector."""
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_TOKEN = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+)")
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")


class SelectorError(ValueError):
    """A selector that can't be read. ``field`` is the path below the selector, "" for the text form."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message


class Operator(StrEnum):
    """What a requirement asks. The first four are metav1.LabelSelector's, the last two exist in text only."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


_BY_SIGN = {
    "=": Operator.IN,
    "==": Operator.IN,
    "!=": Operator.NOT_IN,
    ">": Operator.GREATER,
    "<": Operator.LESS,
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. ``values`` is sorted and free of duplicates."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """As apimachinery: NotIn holds for a missing key; Gt and Lt need an integer label."""
        present = self.key in labels
        match self.operator:
            case Operator.EXISTS:
                return present
            case Operator.DOES_NOT_EXIST:
                return not present
            case Operator.IN:
                return present and labels[self.key] in self.values
            case Operator.NOT_IN:
                return not present or labels[self.key] not in self.values
            case _:
                if not present or not _INTEGER.match(labels[self.key]):
                    return False
                value, bound = int(labels[self.key]), int(self.values[0])
                return value > bound if self.operator is Operator.GREATER else value < bound

    def __str__(self) -> str:
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.IN | Operator.NOT_IN:
                if len(self.values) == 1:
                    return f"{self.key}{'=' if self.operator is Operator.IN else '!='}{self.values[0]}"
                word = "in" if self.operator is Operator.IN else "notin"
                return f"{self.key} {word} ({','.join(self.values)})"
            case _:
                return f"{self.key}{'>' if self.operator is Operator.GREATER else '<'}{self.values[0]}"


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold. Without any it matches everything, unless ``nothing`` is set."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        return not self.nothing and all(r.matches(labels or {}) for r in self.requirements)

    @property
    def empty(self) -> bool:
        """True when it selects everything."""
        return not self.requirements and not self.nothing

    def __str__(self) -> str:
        """The canonical text, as it stands in ``status.labelSelector``; ``parse`` reads it back."""
        return ",".join(str(r) for r in self.requirements)


EVERYTHING = Selector()
NOTHING = Selector(nothing=True)


def from_label_selector(selector: Mapping[str, Any] | None) -> Selector:
    """Read a metav1.LabelSelector; None selects nothing, ``{}`` everything. Requirements come sorted by key.

    Raises SelectorError naming the field (``matchExpressions[0].operator``).
    """
    if selector is None:
        return NOTHING
    if not isinstance(selector, Mapping):
        raise SelectorError("must be an object")
    found = [*_of_labels(selector), *_of_expressions(selector)]
    return Selector(tuple(sorted(found, key=lambda r: (r.key, r.operator, r.values))))


def _of_labels(selector: Mapping[str, Any]) -> Iterator[Requirement]:
    labels = selector.get("matchLabels") or {}
    if not isinstance(labels, Mapping):
        raise SelectorError("must be a map of strings", "matchLabels")
    if len(labels) > _MOST:
        raise SelectorError(f"has more than {_MOST} labels", "matchLabels")
    for key, value in labels.items():
        yield _requirement(str(key), Operator.IN, [value], f"matchLabels[{key}]")


def _of_expressions(selector: Mapping[str, Any]) -> Iterator[Requirement]:
    expressions = selector.get("matchExpressions") or []
    if not isinstance(expressions, list):
        raise SelectorError("must be a list", "matchExpressions")
    if len(expressions) > _MOST:
        raise SelectorError(f"has more than {_MOST} expressions", "matchExpressions")
    for index, expression in enumerate(expressions):
        yield _expression(expression, f"matchExpressions[{index}]")


def parse(text: str) -> Selector:
    """Read the text form; "" selects everything. Raises SelectorError with the offending part."""
    if len(text) > _MAX_TEXT:
        raise SelectorError(f"longer than {_MAX_TEXT} characters")
    tokens = _tokens(text)
    if not tokens:
        return EVERYTHING
    found: list[Requirement] = []
    position = 0
    while True:
        requirement, position = _parse_one(tokens, position)
        found.append(requirement)
        if position == len(tokens):
            break
        if tokens[position] != ",":
            raise SelectorError(f"found {tokens[position]!r}, expected ',' or the end")
        position += 1
    return Selector(tuple(sorted(found, key=lambda r: (r.key, r.operator, r.values))))


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str] | None) -> bool:
    """Does a metav1.LabelSelector match these labels? Raises SelectorError for an unreadable selector."""
    return from_label_selector(selector).matches(labels)


def label_key_error(key: str) -> str:
    """Why this is no label key, "" if it is one (Kubernetes' qualified name)."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.match(prefix)):
        return "prefix must be a DNS subdomain of at most 253 characters"
    if not _NAME.match(name):
        return "name must be 1 to 63 characters of A-Z, a-z, 0-9, '-', '_' and '.', starting and ending alphanumeric"
    return ""


def label_value_error(value: object) -> str:
    """Why this is no label value, "" if it is one."""
    if not isinstance(value, str):
        return "must be a string"
    if value and not _NAME.match(value):
        return "must be at most 63 characters of A-Z, a-z, 0-9, '-', '_' and '.', starting and ending alphanumeric"
    return ""


def _expression(expression: Any, field: str) -> Requirement:
    if not isinstance(expression, Mapping):
        raise SelectorError("must be an object", field)
    operator = expression.get("operator")
    if operator not in (Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST):
        raise SelectorError(f"{operator!r} is none of In, NotIn, Exists, DoesNotExist", f"{field}.operator")
    values = expression.get("values") or []
    if not isinstance(values, list):
        raise SelectorError("must be a list", f"{field}.values")
    if len(values) > _MOST:
        raise SelectorError(f"has more than {_MOST} values", f"{field}.values")
    return _requirement(str(expression.get("key", "")), Operator(operator), values, field)


def _requirement(key: str, operator: Operator, values: Iterable[Any], field: str = "") -> Requirement:
    values = list(values)
    if error := label_key_error(key):
        raise SelectorError(f"label key {key!r}: {error}", field)
    if operator in (Operator.IN, Operator.NOT_IN) and not values:
        raise SelectorError(f"{operator} needs at least one value", f"{field}.values" if field else "")
    if operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST) and values:
        raise SelectorError(f"{operator} takes no values", f"{field}.values" if field else "")
    if operator in (Operator.GREATER, Operator.LESS):
        if len(values) != 1 or not _INTEGER.match(values[0]):
            raise SelectorError(f"{key}: {operator} needs one integer", field)
    else:
        for value in values:
            if error := label_value_error(value):
                raise SelectorError(f"label value {value!r}: {error}", field)
    return Requirement(key, operator, tuple(sorted(set(values))))


def _tokens(text: str) -> list[str]:
    tokens = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise SelectorError(f"can't read {text[position : position + 20]!r}")
        tokens.append(match.group(1))
        position = match.end()
    return tokens


def _parse_one(tokens: list[str], position: int) -> tuple[Requirement, int]:
    def token(offset: int) -> str:
        return tokens[position + offset] if position + offset < len(tokens) else ""

    if token(0) == "!":
        return _requirement(token(1), Operator.DOES_NOT_EXIST, ()), position + 2
    key, operator = token(0), token(1)
    match operator:
        case "" | ",":
            return _requirement(key, Operator.EXISTS, ()), position + 1
        case "=" | "==" | "!=" | ">" | "<":
            value, after = ("", position + 2) if token(2) in ("", ",") else (token(2), position + 3)
            return _requirement(key, _BY_SIGN[operator], [value]), after
        case "in" | "notin":
            values, after = _parse_values(tokens, position + 2)
            return _requirement(key, Operator.IN if operator == "in" else Operator.NOT_IN, values), after
        case _:
            raise SelectorError(f"found {operator!r} after {key!r}, expected an operator")


def _parse_values(tokens: list[str], position: int) -> tuple[list[str], int]:
    if position >= len(tokens) or tokens[position] != "(":
        raise SelectorError("expected '(' after in or notin")
    try:
        end = tokens.index(")", position)
    except ValueError:
        raise SelectorError("missing ')'") from None
    values, previous = [], ","
    for part in tokens[position + 1 : end]:
        if part == ",":
            if previous == ",":
                values.append("")
        elif previous != ",":
            raise SelectorError(f"expected ',' before {part!r}")
        else:
            values.append(part)
        previous = part
    if previous == ",":
        values.append("")
    return values, end + 1
