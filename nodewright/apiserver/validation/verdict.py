"""The hot path: is everything in order? One call into jsonschema-rs says yes in microseconds.

A "yes" must be right, a "no" need not be: after a "no" the slow walks find out what is wrong, and if it is nothing, the
object is accepted. So the schema given to jsonschema-rs is at least as strict as the structural one, and also knows no
unknown fields: a "yes" says that there is nothing to prune either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jsonschema_rs

from nodewright.apiserver.validation import formats
from nodewright.apiserver.validation.nodes import Node
from nodewright.apiserver.validation.patterns import compile_pattern
from nodewright.apiserver.values import Obj

_COPIED: Final = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "multipleOf",
    "minProperties",
    "maxProperties",
    "required",
    "enum",
)
_SAFE_IN_NEGATION: Final = frozenset({"required", "properties", "enum", "allOf", "anyOf", "not", "description"})


def compile_verdict(root: Node) -> Callable[[Any], bool]:
    """Give the check for a whole object. Schemas that cannot be translated safely give one that always says no."""
    try:
        schema = _translate(root)
        return jsonschema_rs.Draft4Validator(schema, validate_formats=True, formats=_FORMATS).is_valid
    except (_NotTranslatableError, ValueError):
        return _never


def _never(_: Any) -> bool:
    return False


class _NotTranslatableError(Exception):
    """The schema uses something for which "at least as strict" cannot be promised."""


_FORMATS: Final = {f"nodewright-{name}": check for name, check in formats.CHECKS.items()}


def _translate(node: Node) -> Obj:
    result = _value_rules(node.raw, node.types, node.nullable)
    if node.properties or node.additional is not None or node.embedded or "object" in node.types:
        properties = {key: _translate(child) for key, child in node.properties.items()}
        if node.embedded:
            properties.setdefault("apiVersion", {"type": "string", "minLength": 1})
            properties.setdefault("kind", {"type": "string", "minLength": 1})
            properties["metadata"] = _NOTHING_INSIDE
            result["required"] = sorted({*result.get("required", ()), "apiVersion", "kind"})
        result["properties"] = properties
        if node.additional is not None:
            result["additionalProperties"] = _translate(node.additional)
        elif not node.preserve:
            result["additionalProperties"] = False
    if node.items is not None:
        result["items"] = _translate(node.items)
    elif "array" in node.types and not node.preserve:
        result["maxItems"] = 0
    return result


_NOTHING_INSIDE: Final[Obj] = {"type": "object", "additionalProperties": False}


def _value_rules(raw: Obj, types: tuple[str, ...], nullable: bool) -> Obj:
    result: Obj = {key: raw[key] for key in _COPIED if key in raw}
    if isinstance(raw.get("pattern"), str):
        result["pattern"] = compile_pattern(raw["pattern"]).portable
    if types:
        result["type"] = [*types, "null"] if nullable else list(types)
    wanted = formats.normal_name(raw, types)
    if wanted in formats.CHECKS:
        result["format"] = f"nodewright-{wanted}"
    bounds = formats.INTEGER_BOUNDS.get(raw.get("format", "") if "integer" in types else "")
    if "integer" in types:
        low, high = bounds or formats.INTEGER_BOUNDS["int64"]
        result["minimum"] = max(result.get("minimum", low), low)
        result["maximum"] = min(result.get("maximum", high), high)
    return result | _combinations(raw)


def _combinations(raw: Obj) -> Obj:
    """Give allOf, anyOf, oneOf and not."""
    result: Obj = {key: [_branch(b) for b in raw[key]] for key in ("allOf", "anyOf") if raw.get(key)}
    if raw.get("oneOf"):
        result["oneOf"] = [_negatable(b) for b in raw["oneOf"]]
    if raw.get("not") is not None:
        result["not"] = _negatable(raw["not"])
    return result


def _branch(raw: Any) -> Obj:
    """Translate what stands under allOf and anyOf: only values are restricted there, nothing is closed."""
    if not isinstance(raw, dict):
        raise _NotTranslatableError
    kind = raw.get("type")
    result = _value_rules(raw, (kind,) if isinstance(kind, str) else (), bool(raw.get("nullable")))
    if isinstance(raw.get("properties"), dict):
        result["properties"] = {k: _branch(v) for k, v in raw["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(raw.get(key), dict):
            result[key] = _branch(raw[key])
    return result


def _negatable(raw: Any) -> Obj:
    """Translate what stands under oneOf and not, where stricter means looser: only what is exactly the same."""
    if not isinstance(raw, dict) or not raw.keys() <= _SAFE_IN_NEGATION:
        raise _NotTranslatableError
    result: Obj = {key: raw[key] for key in ("required", "enum") if key in raw}
    if "properties" in raw:
        result["properties"] = {k: _negatable(v) for k, v in raw["properties"].items()}
    for key in ("allOf", "anyOf"):
        if raw.get(key):
            result[key] = [_negatable(b) for b in raw[key]]
    if raw.get("not") is not None:
        result["not"] = _negatable(raw["not"])
    return result
