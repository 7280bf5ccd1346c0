"""Does a body fit the URL it was sent to? apiVersion, kind, name, namespace and the shape of metadata."""

from __future__ import annotations

from typing import Any

from nodewright.controlplane.values import ApiError, Obj, Resource

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
_LISTS = ("finalizers", "ownerReferences", "managedFields")


def check_envelope(resource: Resource, namespace: str, name: str, body: Any) -> None:
    """Refuse a body that is no object of this resource, or contradicts the URL. `name` is "" on create.

    Adds nothing and changes nothing. Raises ApiError 400 with the words of the real server.
    """
    if not isinstance(body, dict):
        raise ApiError.bad_request("the request body must be a JSON object")
    if not body.get("kind"):
        raise ApiError.bad_request("Object 'Kind' is missing in the body of the request")
    if not body.get("apiVersion"):
        raise ApiError.bad_request("Object 'apiVersion' is missing in the body of the request")
    if body["apiVersion"] != resource.api_version:
        raise ApiError.bad_request(
            f"the API version in the data ({body['apiVersion']}) does not match the expected API version "
            f"({resource.api_version})"
        )
    if body["kind"] != resource.kind:
        raise ApiError.bad_request(
            f"the kind in the data ({body['kind']}) does not match the expected kind ({resource.kind})"
        )
    metadata = body.get("metadata")
    if metadata is not None:
        _check_metadata(resource, metadata)
        _check_place(resource, namespace, name, metadata)


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


def _check_metadata(resource: Resource, metadata: Any) -> None:
    if not isinstance(metadata, dict):
        raise _wrong_type(resource, "metadata", "object")
    for field in _STRINGS:
        value = metadata.get(field)
        if value is not None and not isinstance(value, str):
            raise _wrong_type(resource, f"metadata.{field}", "string")
    for field in _STRING_MAPS:
        value = metadata.get(field)
        if value is None:
            continue
        if not isinstance(value, dict):
            raise _wrong_type(resource, f"metadata.{field}", "map of string")
        if not all(isinstance(entry, str) for entry in value.values()):
            raise _wrong_type(resource, f"metadata.{field}", "map of string")
    for field in _LISTS:
        value = metadata.get(field)
        if value is not None and not isinstance(value, list):
            raise _wrong_type(resource, f"metadata.{field}", "array")
    if not all(isinstance(entry, str) for entry in metadata.get("finalizers") or ()):
        raise _wrong_type(resource, "metadata.finalizers", "array of string")
    if not all(isinstance(entry, dict) for entry in metadata.get("ownerReferences") or ()):
        raise _wrong_type(resource, "metadata.ownerReferences", "array of object")


def _wrong_type(resource: Resource, field: str, wanted: str) -> ApiError:
    return ApiError.bad_request(
        f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
        f"json: cannot unmarshal into Go struct field {resource.kind}.{field} of type {wanted}"
    )
