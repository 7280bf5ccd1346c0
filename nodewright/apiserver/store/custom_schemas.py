"""Is a CRD's schema structural? The part of apiextensions' rules that decides whether pruning and defaults work."""

from __future__ import annotations

from typing import Any

from nodewright.apiserver.values import Cause, Obj

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
MAX_DEPTH = 100
"""Levels of nested schemas that are looked at; deeper ones are refused."""


def schema_faults(path: str, schema: Any) -> list[Cause]:
    """Say what keeps the schema of a whole object from being structural; `path` is where it lies in the CRD."""
    if isinstance(schema, dict) and schema.get("type") != "object":
        if not schema.get("type"):
            return [Cause(f"{path}.type", "FieldValueRequired", "Required value: must not be empty at the root")]
        message = f'Invalid value: "{schema["type"]}": must be object at the root'
        return [Cause(f"{path}.type", "FieldValueInvalid", message)]
    return _faults(path, schema, 0)


def _faults(path: str, schema: Any, depth: int) -> list[Cause]:
    if not isinstance(schema, dict):
        return [Cause(path, "FieldValueTypeInvalid", "Invalid value: must be a schema")]
    if depth > MAX_DEPTH:
        return [Cause(path, "FieldValueForbidden", "Forbidden: schemas are nested too deeply")]
    found = _type_faults(path, schema)
    if schema.get("$ref"):
        found.append(Cause(f"{path}.$ref", "FieldValueForbidden", "Forbidden: $ref is not supported"))
    if schema.get("uniqueItems"):
        message = "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(Cause(f"{path}.uniqueItems", "FieldValueForbidden", message))
    if schema.get("properties") and isinstance(schema.get("additionalProperties"), dict):
        message = "Forbidden: additionalProperties and properties are mutual exclusive"
        found.append(Cause(f"{path}.additionalProperties", "FieldValueForbidden", message))
    if schema.get("type") == "array" and not isinstance(schema.get("items"), dict):
        found.append(Cause(f"{path}.items", "FieldValueRequired", "Required value: must be specified"))
    for inner, below in _below(schema):
        found += _faults(f"{path}.{inner}", below, depth + 1)
    return found


def _type_faults(path: str, schema: Obj) -> list[Cause]:
    kind = schema.get("type")
    if not kind:
        free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
        message = "Required value: must not be empty for specified object fields"
        return [] if free else [Cause(f"{path}.type", "FieldValueRequired", message)]
    if kind not in _TYPES:
        listed = ", ".join(f'"{name}"' for name in _TYPES)
        message = f'Unsupported value: "{kind}": supported values: {listed}'
        return [Cause(f"{path}.type", "FieldValueNotSupported", message)]
    return []


def _below(schema: Obj) -> list[tuple[str, Any]]:
    properties = schema.get("properties")
    below = [(f"properties[{name}]", inner) for name, inner in (properties or {}).items()]
    for field in ("items", "additionalProperties"):
        if isinstance(schema.get(field), dict):
            below.append((field, schema[field]))
    return below
