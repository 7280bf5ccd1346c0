"""Does a body fit the URL it was sent to? apiVersion, kind, name, namespace and the shape of metadata."""

from __future__ import annotations

import json
from typing import Any

from nodewright.apiserver.values import ApiError, Cause, Obj, Resource

_STRINGS = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "selfLink",
)
_STRING_MAPS = ("labels", "annotations")
_LISTS: tuple[tuple[str, type, str], ...] = (
    ("finalizers", str, "string"),
    ("ownerReferences", dict, "v1.OwnerReference"),
    ("managedFields", dict, "v1.ManagedFieldsEntry"),
)
MAX_SHOWN = 200
"""Characters of a body that an error repeats."""


def check_envelope(resource: Resource, namespace: str, name: str, body: Any) -> None:
    """Refuse a body that is no object of this resource, or contradicts the URL. `name` is "" on create.

    Adds nothing and changes nothing. Raises ApiError 400 (422 for the kind of a custom resource), in the words of
    the real server.
    """
    if not isinstance(body, dict):
        raise _unrecognized(resource, f"couldn't get version/kind; json parse error: {_go_kind(body)} is no object")
    if not body.get("kind"):
        raise _unrecognized(resource, f"Object 'Kind' is missing in '{_shown(body)}'")
    check_version(resource.api_version, body)
    if body["kind"] != resource.kind:
        raise _wrong_kind(resource, body)
    metadata = body.get("metadata")
    if metadata is not None:
        _check_metadata(resource, metadata)
        _check_place(resource, namespace, name, metadata)
    if name and not (metadata and metadata.get("name")):
        why = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise ApiError.bad_request(why)


def part(body: Obj, field: str) -> Obj:
    """Give the object in a field of a body, {} if there is none. Raises ApiError 400 for anything else."""
    found = body.get(field)
    if found is not None and not isinstance(found, dict):
        raise ApiError.bad_request(f"json: cannot unmarshal {_go_kind(found)} into field {field}: it must be an object")
    return found or {}


def check_patched(resource: Resource, namespace: str, name: str, body: Any) -> None:
    """Refuse a patch that made the object into something else. As `check_envelope`, but for custom resources'
    apiVersion, which is a 422 here."""
    version = body.get("apiVersion") if isinstance(body, dict) else None
    if isinstance(version, str) and version != resource.api_version and not resource.builtin:
        cause = Cause("apiVersion", "FieldValueInvalid", f'Invalid value: "{version}": must be {resource.api_version}')
        raise ApiError.invalid(resource.kind, name, [cause])
    check_envelope(resource, namespace, name, body)


def check_version(expected: str, body: Obj) -> None:
    """Refuse a body of another version than the URL's: ApiError 400."""
    if body.get("apiVersion") != expected:
        raise ApiError.bad_request(
            f"the API version in the data ({body.get('apiVersion') or ''}) does not match the expected API version "
            f"({expected})"
        )


def _wrong_kind(resource: Resource, body: Obj) -> ApiError:
    kind, wanted = body["kind"], resource.kind
    if resource.builtin:
        return ApiError.bad_request(
            f'{kind} in version "{resource.version}" cannot be handled as a {wanted}: '
            f"converting ({kind}) to ({wanted}): unknown conversion"
        )
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    cause = Cause("kind", "FieldValueInvalid", f'Invalid value: "{kind}": must be {wanted}')
    return ApiError.invalid(f"{kind}.{resource.group}", str(name or ""), [cause])


def _unrecognized(resource: Resource, why: str) -> ApiError:
    return ApiError.bad_request(f"the object provided is unrecognized (must be of type {resource.kind}): {why}")


def _check_place(resource: Resource, namespace: str, name: str, metadata: Obj) -> None:
    stated = metadata.get("namespace") or ""
    if resource.namespaced and stated and stated != namespace:
        raise ApiError.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if name and metadata.get("name") and metadata["name"] != name:
        raise ApiError.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        )


def _shown(body: Obj) -> str:
    text = json.dumps(body)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} ..."


def _check_metadata(resource: Resource, metadata: Any) -> None:
    if not isinstance(metadata, dict):
        raise _wrong_type(resource, metadata, "Go value of type v1.ObjectMeta")
    for field in _STRINGS:
        value = metadata.get(field)
        if value is not None and not isinstance(value, str):
            raise _wrong_field(resource, field, value, "string")
    for field in _STRING_MAPS:
        _check_string_map(resource, field, metadata.get(field))
    for field, member, go_type in _LISTS:
        value = metadata.get(field)
        if value is not None and not isinstance(value, list):
            raise _wrong_field(resource, field, value, f"[]{go_type}")
        for entry in value or ():
            if not isinstance(entry, member):
                raise _wrong_field(resource, field, entry, go_type)


def _check_string_map(resource: Resource, field: str, value: Any) -> None:
    if value is not None and not isinstance(value, dict):
        raise _wrong_field(resource, field, value, "map[string]string")
    for entry in (value or {}).values():
        if not isinstance(entry, str):
            raise _wrong_field(resource, field, entry, "string")


def _wrong_field(resource: Resource, field: str, value: Any, wanted: str) -> ApiError:
    return _wrong_type(resource, value, f"Go struct field ObjectMeta.{field} of type {wanted}")


def _wrong_type(resource: Resource, value: Any, wanted: str) -> ApiError:
    return ApiError.bad_request(
        f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
        f"json: cannot unmarshal {_go_kind(value)} into {wanted}"
    )


def _go_kind(value: Any) -> str:
    """Name a JSON value as Go's decoder does."""
    names: tuple[tuple[Any, str], ...] = (
        (bool, "bool"),
        (int | float, "number"),
        (str, "string"),
        (list, "array"),
        (dict, "object"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "null")
