"""Which objects does a selector select? Label and field selectors in their query-string and object forms.

Grammar and matching are those of apimachinery's `labels` and `fields`: a missing key satisfies `!=`, `notin`
and `!key`, and a missing field is the empty string.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from api.remembered import remembered
from nodewright.apiserver.store.names import label_value_faults, qualified_name_faults
from nodewright.apiserver.values import ApiError, Obj

Labels = Mapping[str, str]
LabelMatch = Callable[[Labels], bool]
"""Takes an object's labels and says whether they are selected."""

MAX_SELECTOR_LENGTH = 64 * 1024

_INTEGER = re.compile(r"[-+]?[0-9]{1,19}").fullmatch
_TOKEN = re.compile(r"==|!=|[=!<>(),]|[^\s=!<>(),]+")
_OPERATORS = {"in": "in", "=": "in", "==": "in", "notin": "notin", "!=": "notin", ">": "gt", "<": "lt"}


class Requirement(NamedTuple):
    """One clause: `operator` is one of in, notin, exists, !exists, gt, lt; `in` with one value is equality."""

    key: str
    operator: str
    values: frozenset[str]

    def matches(self, labels: Labels) -> bool:
        """Say whether these labels satisfy the clause."""
        value = labels.get(self.key)
        if self.operator == "in":
            return value in self.values
        if self.operator == "notin":
            return value not in self.values
        if self.operator == "exists":
            return value is not None
        if self.operator == "!exists":
            return value is None
        return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        (bound,) = self.values
        if not _INTEGER(value):
            return False
        return int(value) > int(bound) if self.operator == "gt" else int(value) < int(bound)


class FieldRequirement(NamedTuple):
    """One clause of a field selector: `field` is a dotted path such as "spec.nodeName"."""

    field: str
    equal: bool
    value: str


@remembered(4096)
def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Parse `a=b,c!=d,e in (x,y),!f,g>3`.

    Raises ApiError 400, in the words of the real server, for a text that is no selector.
    """
    if len(text) > MAX_SELECTOR_LENGTH:
        raise ApiError.bad_request("unable to parse requirement: selector is too long")
    return tuple(_LabelParser(text).parse())


class _LabelParser:
    """A recursive-descent parser over the tokens of a label selector; "" is the end of the text."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [*_TOKEN.findall(text), ""]
        self._next = 0

    def parse(self) -> list[Requirement]:
        found: list[Requirement] = []
        if self._peek() == "":
            return found
        if self._peek() != "!" and not _is_word(self._peek()):
            raise ApiError.bad_request(f"found '{self._peek()}', expected: !, identifier, or 'end of string'")
        while True:
            try:
                found.append(self._requirement())
            except ValueError as error:
                raise ApiError.bad_request(f"unable to parse requirement: {error}") from error
            sign = self._take()
            if sign == "":
                return found
            if sign != ",":
                raise ApiError.bad_request(f"found '{sign}', expected: ',' or 'end of string'")
            if self._peek() != "!" and not _is_word(self._peek()):
                raise ApiError.bad_request(f"found '{self._peek()}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        negated = self._peek() == "!"
        if negated:
            self._take()
        key = self._take()
        if not _is_word(key):
            raise ValueError(f"found '{key}', expected: identifier")
        if faults := qualified_name_faults(key):
            raise ValueError(f'<nil>: Invalid value: "{key}": {"; ".join(faults)}')
        if negated:
            return Requirement(key, "!exists", frozenset())
        if self._peek() in ("", ","):
            return Requirement(key, "exists", frozenset())
        sign = self._take()
        operator = _OPERATORS.get(sign)
        if operator is None:
            raise ValueError(f"found '{sign}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._set() if sign in ("in", "notin") else [self._exact()]
        return Requirement(key, operator, frozenset(_checked_value(key, operator, value) for value in values))

    def _exact(self) -> str:
        if self._peek() in ("", ","):
            return ""
        value = self._take()
        if not _is_word(value):
            raise ValueError(f"found '{value}', expected: identifier")
        return value

    def _set(self) -> list[str]:
        opening = self._take()
        if opening != "(":
            raise ValueError(f"found '{opening}' expected: '('")
        values = []
        while True:
            values.append(self._take() if _is_word(self._peek()) else "")
            sign = self._take()
            if sign == ")":
                return values
            if sign != ",":
                raise ValueError(f"found '{sign}', expected: ',' or ')'")

    def _peek(self) -> str:
        return self._tokens[self._next]

    def _take(self) -> str:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token


def _is_word(token: str) -> bool:
    return bool(token) and token[0] not in "=!<>(),"


def _checked_value(key: str, operator: str, value: str) -> str:
    if operator in ("gt", "lt") and not _INTEGER(value):
        message = "for 'Gt', 'Lt' operators, the value must be an integer"
        raise ValueError(f'values[0]: Invalid value: "{value}": {message}')
    if faults := label_value_faults(value):
        raise ValueError(f'values[0][{key}]: Invalid value: "{value}": {"; ".join(faults)}')
    return value


@remembered(4096)
def label_match(text: str) -> LabelMatch | None:
    """Give the test for a query-string selector, or None if it selects everything."""
    requirements = parse_labels(text)
    return _all_of(requirements) if requirements else None


def _all_of(requirements: tuple[Requirement, ...]) -> LabelMatch:
    if len(requirements) == 1:
        return requirements[0].matches
    return lambda labels: all(requirement.matches(labels) for requirement in requirements)


def object_selector_match(selector: Obj | None) -> LabelMatch:
    """Give the test for a `metav1.LabelSelector`: None selects nothing, an empty one everything."""
    if selector is None:
        return lambda labels: False
    requirements = [
        Requirement(key, "in", frozenset((value,))) for key, value in (selector.get("matchLabels") or {}).items()
    ]
    operators = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!exists"}
    for expression in selector.get("matchExpressions") or ():
        operator = operators.get(expression.get("operator", ""))
        if operator is None:
            return lambda labels: False
        requirements.append(Requirement(expression.get("key", ""), operator, frozenset(expression.get("values") or ())))
    return _all_of(tuple(requirements))


@remembered(4096)
def parse_fields(text: str) -> tuple[FieldRequirement, ...]:
    """Parse `metadata.name=x,spec.nodeName!=y`; commas and equal signs in values are escaped by a backslash.

    Raises ApiError 400 for a text that is no selector.
    """
    if len(text) > MAX_SELECTOR_LENGTH:
        raise ApiError.bad_request("invalid selector: it is too long")
    return tuple(_field_requirement(part, text) for part in re.split(r"(?<!\\),", text) if part)


def _field_requirement(part: str, text: str) -> FieldRequirement:
    """Parse one `field=value` of a selector."""
    match = re.match(r"^([^=!]+)(==|=|!=)(.*)$", part, re.DOTALL)
    if match is None:
        raise ApiError.bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
    field, sign, value = match.groups()
    if unescaped := re.search(r"(?<!\\)[=]", value):
        raise ApiError.bad_request(f"invalid field selector: unescaped character in value: {ord(unescaped.group())}")
    return FieldRequirement(field.strip(), sign != "!=", re.sub(r"\\(.)", r"\1", value))


def field_value(obj: Obj, path: tuple[str, ...]) -> str:
    """Read a field as selectors see it: text, with "" for what is missing and "true"/"false" for booleans."""
    value: Any = obj
    for step in path:
        if not isinstance(value, dict):
            return ""
        value = value.get(step)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
