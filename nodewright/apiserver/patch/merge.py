"""JSON merge patch (RFC 7386): what `kubectl patch --type=merge`, scale, edit and apply of custom resources send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodewright.apiserver.values import ApiError, Obj


def apply_merge(current: Obj, patch: Any) -> Obj:
    """Give the object after the patch; null removes a key. Raises ApiError 400 if the patch is no object."""
    if patch is None:
        raise ApiError.bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        kind = json_kind(patch)
        text = f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        raise ApiError.bad_request(text)
    found: Obj = merged(current, patch)
    return found


def merged(target: Any, patch: Any) -> Any:
    """``target`` after the patch (RFC 7386): shares what stays, and ``target`` itself if nothing changes."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    changed = not isinstance(target, Mapping)
    for key, value in patch.items():
        if value is None:
            if key in result:
                del result[key]
                changed = True
            continue
        before = result.get(key)
        after = merged(before, value)
        if after is not before or key not in result:
            result[key] = after
            changed = True
    return result if changed else target


def json_kind(value: Any) -> str:
    """Name a JSON value's kind as error messages of the API do: null, bool, number, string, array or object."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
