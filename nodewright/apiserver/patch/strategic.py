"""Strategic merge patch: what kubectl sends for built-in kinds (apply, edit, label, cordon, taint, set).

Lists of the built-in kinds merge by a key, as the type table says (`openapi/builtins.py`); a patch may also carry
directives: `$patch` (replace, delete), `$retainKeys`, `$deleteFromPrimitiveList/<field>`, `$setElementOrder/<field>`.
Where the real server answers 500 to a malformed directive, this one answers 400 with the same words.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from nodewright.apiserver.openapi import builtins
from nodewright.apiserver.patch.merge import json_kind
from nodewright.apiserver.patch.operations import same_json
from nodewright.apiserver.validation.gotext import go_value
from nodewright.apiserver.values import ApiError, Obj, Resource

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"
_MEDIA_TYPES: Final = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
_NO_SCHEMA: Final[Obj] = {}


def apply_strategic(resource: Resource, current: Obj, patch: Any) -> Obj:
    """Give the object after the patch.

    Raises ApiError 400 for a malformed patch, and 415 for a custom resource, as the real server does.
    """
    schema = builtins.schema(resource.group, resource.version, resource.kind)
    if schema is None:
        text = "the body of the request was in an unknown format - accepted media types include: "
        raise ApiError.unsupported_media_type(text + _MEDIA_TYPES)
    if not isinstance(patch, dict):
        kind = json_kind(patch)
        text = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        raise ApiError.bad_request(text)
    return _merge_map(current, patch, schema)


def _merge_map(current: Obj, patch: Obj, schema: Obj) -> Obj:
    directive = patch.get(_PATCH)
    if directive is not None:
        return _whole_map(patch, directive)
    result = _retain(current, patch)
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_field(result, key, value, schema)
    for key, value in patch.items():
        if key.startswith(_DELETE):
            _delete_primitives(result, key.removeprefix(_DELETE), value)
    for key, value in patch.items():
        if key.startswith(_ORDER):
            field = key.removeprefix(_ORDER)
            _reorder_field(result, field, value, (current, patch, _child(schema, field)))
    return result


def _whole_map(patch: Obj, directive: Any) -> Obj:
    if directive == "replace":
        return {k: v for k, v in patch.items() if k != _PATCH}
    if directive == "delete":
        return {}
    raise ApiError.bad_request(f"unknown patch type: {directive} in map: {go_value(patch)}")


def _retain(current: Obj, patch: Obj) -> Obj:
    """Give a copy of the object, with only the keys that `$retainKeys` names if there is such a directive."""
    keep = patch.get(_RETAIN)
    if _RETAIN not in patch:
        return dict(current)
    named = set(keep) if isinstance(keep, list) and all(isinstance(k, str) for k in keep) else None
    others = {k for k, v in patch.items() if v is not None and not k.startswith("$")}
    if named is None or not others <= named:
        raise ApiError.bad_request("invalid patch format of retainKeys")
    return {k: v for k, v in current.items() if k in named}


def _merge_field(result: Obj, key: str, value: Any, schema: Obj) -> None:
    if value is None:
        result.pop(key, None)
        return
    before = result.get(key)
    child = _child(schema, key)
    strategy = str(child.get("x-kubernetes-patch-strategy", "")).split(",")
    if isinstance(value, dict) and isinstance(before, dict):
        replace = "replace" in strategy
        merged: Any = value if replace else _merge_map(before, value, child)
    elif isinstance(value, list) and isinstance(before, list) and "merge" in strategy:
        merged = _merge_list(before, value, child)
    else:
        merged = _without_directives(value)
    if merged is _DROPPED:
        result.pop(key, None)
    else:
        result[key] = merged


def _child(schema: Obj, key: str) -> Obj:
    properties = schema.get("properties") or _NO_SCHEMA
    found = properties.get(key) or schema.get("additionalProperties") or _NO_SCHEMA
    return found if isinstance(found, dict) else _NO_SCHEMA


def _merge_list(before: list[Any], patch: list[Any], schema: Obj) -> list[Any]:
    items = [*before, *patch]
    maps = [isinstance(item, dict) for item in items]
    if any(maps) and not all(maps):
        raise ApiError.bad_request(f"list element types are not identical: {go_value(items)}")
    if not any(maps):
        merged = _unique(items)
        return _order(merged, patch, before, _identity)
    key = str(schema.get("x-kubernetes-patch-merge-key", ""))
    merged, plain = _merge_elements(before, patch, key, schema.get("items") or _NO_SCHEMA)
    return _order(merged, plain, before, lambda item: _key_of(item, key))


def _merge_elements(before: list[Any], patch: list[Any], key: str, schema: Obj) -> tuple[list[Any], list[Any]]:
    """Give the merged list, and the elements of the patch that are no directives."""
    plain = [item for item in patch if _PATCH not in item]
    gone = set()
    for item in patch:
        match item.get(_PATCH):
            case None | "replace":
                pass
            case "delete":
                gone.add(_hashable(_required_key(item, key)))
            case other:
                raise ApiError.bad_request(f"unknown patch type: {other} in map: {go_value(item)}")
    merged = [m for m in before if _hashable(m.get(key)) not in gone]
    if any(item.get(_PATCH) == "replace" for item in patch):
        return plain, plain
    places: dict[Any, int] = {}
    for place, known in enumerate(merged):
        places.setdefault(_hashable(known.get(key)), place)
    for item in plain:
        at = places.setdefault(_hashable(_required_key(item, key)), len(merged))
        if at == len(merged):
            merged.append(_without_markers(item))
        else:
            merged[at] = _merge_map(merged[at], item, schema)
    return merged, plain


def _required_key(item: Obj, key: str) -> Any:
    if key not in item:
        raise ApiError.bad_request(f"map: {go_value(item)} does not contain declared merge key: {key}")
    return item[key]


def _delete_primitives(result: Obj, field: str, gone: Any) -> None:
    before = result.get(field)
    if isinstance(before, list) and isinstance(gone, list):
        unwanted = {_hashable(item) for item in gone}
        result[field] = [item for item in before if _hashable(item) not in unwanted]


def _reorder_field(result: Obj, field: str, wanted: Any, context: tuple[Obj, Obj, Obj]) -> None:
    """Put a list in the order that the client asked for; elements that only the server knows keep their places."""
    if not isinstance(wanted, list):
        raise ApiError.bad_request(f"expected a []interface {{}}, but received a {json_kind(wanted)}")
    current, patch, schema = context
    key = str(schema.get("x-kubernetes-patch-merge-key", ""))
    identify: Callable[[Any], Any] = (lambda item: _key_of(item, key)) if key else _identity
    mentioned = patch.get(field)
    if isinstance(mentioned, list):
        _check_order(mentioned, wanted, identify)
    merged, before = result.get(field), current.get(field)
    if isinstance(merged, list):
        result[field] = _order(merged, wanted, before if isinstance(before, list) else [], identify)


def _check_order(mentioned: list[Any], wanted: list[Any], identify: Callable[[Any], Any]) -> None:
    order = iter(wanted)
    for item in mentioned:
        if isinstance(item, dict) and _PATCH in item:
            continue
        if wanted and not any(same_json(identify(item), identify(w)) for w in order):
            text = f"The order in patch list:\n{go_value(mentioned)}\n doesn't match $setElementOrder list:\n"
            raise ApiError.bad_request(text + f"{go_value(wanted)}\n")


def _order(merged: list[Any], wanted: list[Any], before: list[Any], identify: Callable[[Any], Any]) -> list[Any]:
    """Merge two orders: elements that `wanted` names in its order, the rest in the order they had before.

    An element of the rest stays in front of a wanted one only if it was there before.
    """
    ranks = _Ranks(wanted, identify)
    old = _Ranks(before, identify)
    named = deque(sorted((m for m in merged if ranks.of(m) is not None), key=lambda m: ranks.of(m) or 0))
    rest = deque(sorted((m for m in merged if ranks.of(m) is None), key=lambda m: old.of(m) or 0))
    result: list[Any] = []
    while named and rest:
        mine, theirs = old.of(rest[0]), old.of(named[0])
        in_front = mine is not None and theirs is not None and mine < theirs
        result.append(rest.popleft() if in_front else named.popleft())
    return [*result, *named, *rest]


class _Ranks:
    """The place of each element of a list, found by its identity."""

    def __init__(self, items: Iterable[Any], identify: Callable[[Any], Any]) -> None:
        self._identify = identify
        self._places: dict[Any, int] = {}
        for place, item in enumerate(items):
            self._places.setdefault(_hashable(identify(item)), place)

    def of(self, item: Any) -> int | None:
        return self._places.get(_hashable(self._identify(item)))


def _hashable(value: Any) -> Any:
    return (type(value) is bool, value) if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def _identity(item: Any) -> Any:
    return item


def _key_of(item: Any, key: str) -> Any:
    return item.get(key) if isinstance(item, dict) else item


def _unique(items: list[Any]) -> list[Any]:
    return list({_hashable(item): item for item in reversed(items)}.values())[::-1] if items else []


_DROPPED: Final = object()


def _without_directives(value: Any) -> Any:
    """Give a value of the patch that nothing is merged with: directives in it go, with what they stand on."""
    if isinstance(value, dict):
        if _PATCH in value:
            return _DROPPED
        children = {k: _without_directives(v) for k, v in value.items() if not k.startswith("$") and v is not None}
        return {k: v for k, v in children.items() if v is not _DROPPED}
    if isinstance(value, list):
        return [v for v in map(_without_directives, value) if v is not _DROPPED]
    return value


def _without_markers(value: Any) -> Any:
    """Give a new element of a merged list: markers in it mean nothing, what they stand on is kept (so upstream)."""
    if isinstance(value, dict):
        return {k: _without_markers(v) for k, v in value.items() if not k.startswith("$") and v is not None}
    return [_without_markers(v) for v in value] if isinstance(value, list) else value
