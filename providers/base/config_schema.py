"""Check a provider's config against its JSON Schema, and say what is wrong with the field named.

Used at admission, by the command line and by the controllers; nothing here asks a provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from api.secrets import is_secret_name
from providers.base.contract import Problem

MOST_PROBLEMS = 20
"""Problems reported for one config; one screen is as much as anybody reads, and a condition has to stay small."""

_LOOKED_AT = 5 * MOST_PROBLEMS
"""Problems after which nobody looks for more: a hostile config has one for every few bytes, and each is slow."""
_LONGEST_VALUE = 60
_PLAIN_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_-]*$")

_TYPE_NAMES = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


def problems_of(config: Any, schema: Mapping[str, Any]) -> tuple[Problem, ...]:
    """What is wrong with ``config`` by ``schema`` (draft 2020-12), sorted by path; empty if nothing is.

    ``path`` is relative to the config: ``disks[0].size``; for a missing or unknown field it is that field's own path.
    Values of fields marked ``writeOnly`` or ``format: password``, or named like a secret, are never repeated.
    """
    all_of_it = (
        problem for error in Draft202012Validator(dict(schema)).iter_errors(config) for problem in _problems(error)
    )
    found = set(islice(all_of_it, _LOOKED_AT))
    return tuple(sorted(found, key=lambda problem: (problem.path, problem.message))[:MOST_PROBLEMS])


def _problems(error: ValidationError) -> Iterator[Problem]:
    if error.validator in {"anyOf", "oneOf"} and error.context:
        if types := _types_of_all_branches(error.context):
            names = " or ".join(_TYPE_NAMES.get(name, name) for name in types)
            yield Problem(_path(error.absolute_path), f"must be {names}, is {_shown(error)}")
            return
        for inner in _most_telling_branch(error.context):
            yield from _problems(inner)
        return
    path = _path(error.absolute_path)
    if error.validator == "required":
        for name in _value(error):
            if isinstance(error.instance, Mapping) and name not in error.instance:
                yield Problem(_join(path, name), "is required")
    elif error.validator in {"additionalProperties", "unevaluatedProperties"} and isinstance(error.instance, Mapping):
        yield from _unknown_fields(error, path)
    else:
        yield Problem(path, _sentence(error))


def _unknown_fields(error: ValidationError, path: str) -> Iterator[Problem]:
    known = list((error.schema.get("properties") or {}) if isinstance(error.schema, Mapping) else {})
    patterns = list((error.schema.get("patternProperties") or {}) if isinstance(error.schema, Mapping) else {})
    for name in error.instance if isinstance(error.instance, Mapping) else ():
        if name in known or any(re.search(pattern, str(name)) for pattern in patterns):
            continue
        near = get_close_matches(str(name), known, n=1) if len(str(name)) <= _LONGEST_VALUE else []
        hint = f"; did you mean {near[0]!r}?" if near else ""
        yield Problem(_join(path, str(name)), f"is not a known field{hint}")


def _types_of_all_branches(errors: Iterable[ValidationError]) -> list[str]:
    """The types that the alternatives ask for, if the value has none of them; "null" goes without saying."""
    types: dict[str, None] = {}
    for error in errors:
        if error.validator != "type" or error.relative_path:
            return []
        want = _value(error)
        types.update(dict.fromkeys([want] if isinstance(want, str) else want))
    return [name for name in types if name != "null"]


def _most_telling_branch(errors: Iterable[ValidationError]) -> list[ValidationError]:
    """The errors of that alternative that the value came nearest to: no type mismatch at the top, then the fewest."""
    branches: dict[Any, list[ValidationError]] = {}
    for error in errors:
        branches.setdefault(error.relative_schema_path[0], []).append(error)

    def distance(branch: list[ValidationError]) -> tuple[bool, bool, int]:
        at_top = [error for error in branch if not error.relative_path and error.validator == "type"]
        return bool(at_top), any(_value(error) == "null" for error in at_top), len(branch)

    return min(branches.values(), key=distance)


def _sentence(error: ValidationError) -> str:
    want, have = _value(error), _shown(error)
    match error.validator:
        case "type":
            names = [want] if isinstance(want, str) else list(want)
            return f"must be {' or '.join(_TYPE_NAMES.get(name, name) for name in names)}, is {have}"
        case "enum":
            return f"must be one of {', '.join(str(value) for value in want)}, is {have}"
        case "const":
            return f"must be {want!r}, is {have}"
        case "minimum":
            return f"must be at least {want}, is {have}"
        case "exclusiveMinimum":
            return f"must be above {want}, is {have}"
        case "maximum":
            return f"must be at most {want}, is {have}"
        case "exclusiveMaximum":
            return f"must be below {want}, is {have}"
        case "minLength" | "minItems" | "minProperties":
            return f"must hold at least {want}, is {have}"
        case "maxLength" | "maxItems" | "maxProperties":
            return f"must hold at most {want}"
        case "pattern":
            return f"must match {want}, is {have}"
        case _:
            return f"breaks the rule {error.validator!r} of its schema"


def _value(error: ValidationError) -> Any:
    """What the broken keyword of the schema asks for."""
    return error.validator_value


def _shown(error: ValidationError) -> str:
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    named = any(is_secret_name(str(part)) for part in error.absolute_path)
    if named or schema.get("writeOnly") or schema.get("format") == "password":
        return "hidden"
    value = error.instance
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"


def _path(parts: Iterable[str | int]) -> str:
    path = ""
    for part in parts:
        path = f"{path}[{part}]" if isinstance(part, int) else _join(path, part)
    return path


def _join(path: str, name: str) -> str:
    if not _PLAIN_NAME.match(name):
        return f"{path}[{name!r}]"
    return f"{path}.{name}" if path else name
