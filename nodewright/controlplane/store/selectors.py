"""Which objects does a selector select? Label and field selectors in their query-string and object forms.

Grammar and matching are those of apimachinery's `labels` and `fields`: a missing key satisfies `!=`, `notin`
and `!key`, and a missing field is the empty string.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from nodewright.controlplane.values import ApiError, Obj

Labels = Mapping[str, str]
LabelMatch = Callable[[Labels], bool]
"""Takes an object's labels and says whether they are selected."""

MAX_SELECTOR_LENGTH = 64 * 1024

_KEY = re.compile(r"^([A-Za-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")
_INTEGER = re.compile(r"[-+]?[0-9]{1,19}").fullmatch
_SET = re.compile(r"^\s*(\S+?)\s+(in|notin)\s*\(([^()]*)\)\s*$")
_COMPARE = re.compile(r"^\s*([^\s=!<>]+)\s*(==|=|!=|<|>)\s*([^\s=!<>]*)\s*$")
_EXISTS = re.compile(r"^\s*(!?)\s*([^\s=!<>(),]+)\s*$")
_OUTSIDE_PARENTHESES = re.compile(r",(?![^(]*\))")


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


@lru_cache(maxsize=4096)
def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Parse `a=b,c!=d,e in (x,y),!f,g>3`.

    Raises ApiError 400 for a text that is no selector.
    """
    if len(text) > MAX_SELECTOR_LENGTH:
        raise ApiError.bad_request("unable to parse requirement: selector is too long")
    if not text.strip():
        return ()
    return tuple(_requirement(part) for part in _OUTSIDE_PARENTHESES.split(text))


def _requirement(part: str) -> Requirement:
    if found := _SET.match(part):
        key, operator, inner = found.groups()
        values = frozenset(value.strip() for value in inner.split(","))
        return _checked(Requirement(key, operator, values))
    if found := _COMPARE.match(part):
        key, sign, value = found.groups()
        operator = {"=": "in", "==": "in", "!=": "notin", ">": "gt", "<": "lt"}[sign]
        return _checked(Requirement(key, operator, frozenset((value,))))
    if found := _EXISTS.match(part):
        negation, key = found.groups()
        return _checked(Requirement(key, f"{negation}exists", frozenset()))
    raise ApiError.bad_request(f"unable to parse requirement: {part.strip()!r} is not a label requirement")


def _checked(requirement: Requirement) -> Requirement:
    if not _KEY.match(requirement.key):
        raise ApiError.bad_request(
            f'unable to parse requirement: <nil>: Invalid value: "{requirement.key}": not a valid label key'
        )
    for value in requirement.values:
        if requirement.operator in ("gt", "lt") and not _INTEGER(value):
            raise ApiError.bad_request(
                f"unable to parse requirement: values[0][{requirement.key}]: Invalid value: "
                f"\"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
            )
        if not _VALUE.match(value):
            raise ApiError.bad_request(
                f"unable to parse requirement: values[0][{requirement.key}]: Invalid value: "
                f'"{value}": not a valid label value'
            )
    return requirement


@lru_cache(maxsize=4096)
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
        requirements.append(Requirement(expression["key"], operator, frozenset(expression.get("values") or ())))
    return _all_of(tuple(requirements))


@lru_cache(maxsize=4096)
def parse_fields(text: str) -> tuple[FieldRequirement, ...]:
    """Parse `metadata.name=x,spec.nodeName!=y`; commas and equal signs in values are escaped by a backslash.

    Raises ApiError 400 for a text that is no selector.
    """
    if len(text) > MAX_SELECTOR_LENGTH:
        raise ApiError.bad_request("invalid selector: it is too long")
    found = []
    for part in re.split(r"(?<!\\),", text):
        if not part:
            continue
        match = re.match(r"^([^=!]+)(==|=|!=)(.*)$", part, re.DOTALL)
        if match is None:
            raise ApiError.bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        field, sign, value = match.groups()
        found.append(FieldRequirement(field.strip(), sign != "!=", re.sub(r"\\(.)", r"\1", value)))
    return tuple(found)


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
