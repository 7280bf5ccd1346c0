"""What kind of object does a body hold? Four magic bytes, then a runtime.Unknown around the object itself.

Source: k8s.io/apimachinery/pkg/runtime/serializer/protobuf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nodewright.apiserver.openapi import builtins
from nodewright.apiserver.protobuf import messages, scalars
from nodewright.apiserver.protobuf.wire import Malformed
from nodewright.apiserver.values import ApiError, Obj

_MAGIC = b"k8s\x00"
_JSON = "application/json"
_OF_EVERY_GROUP = {"DeleteOptions": "meta.v1.DeleteOptions"}
"""Kinds that clients send under the group and version of the resource they are about."""


def decode(body: bytes) -> Obj:
    """Give the object in a body, apiVersion and kind first. Raises ApiError 400."""
    if not body.startswith(_MAGIC):
        shown = "expected prefix [107 56 115 0]"
        raise _unrecognized(f"provided data does not appear to be a protobuf message, {shown}")
    try:
        unknown = _Unknown.read(memoryview(body)[len(_MAGIC) :])
    except Malformed as error:
        raise _unrecognized(str(error)) from None
    try:
        return _object(unknown)
    except Malformed as error:
        handled = f'{unknown.kind} in version "{unknown.api_version}" cannot be handled as a {unknown.kind}'
        raise ApiError.bad_request(f"{handled}: {error}") from None


def _unrecognized(why: str) -> ApiError:
    return ApiError.bad_request(f"the object provided is unrecognized: {why}")


@dataclass(frozen=True, slots=True)
class _Unknown:
    """A runtime.Unknown: an object still in bytes, and what it is."""

    api_version: str
    kind: str
    raw: memoryview
    content_encoding: str
    content_type: str

    @classmethod
    def read(cls, data: memoryview) -> _Unknown:
        members = scalars.parts(data)
        head = scalars.parts(_bytes(members, 1))
        api_version, kind = scalars.text(_bytes(head, 1)), scalars.text(_bytes(head, 2))
        if not api_version or not kind:
            raise Malformed("the envelope names no apiVersion and kind")
        encoding, content_type = scalars.text(_bytes(members, 3)), scalars.text(_bytes(members, 4))
        return cls(api_version, kind, _bytes(members, 2), encoding, content_type)


def _object(unknown: _Unknown) -> Obj:
    if unknown.content_encoding:
        raise Malformed(f'contentEncoding "{unknown.content_encoding}" is not supported')
    if unknown.content_type == _JSON:
        value = scalars.json_value(unknown.raw)
        if not isinstance(value, dict):
            raise Malformed("the embedded JSON is not an object")
        return value
    if unknown.content_type:
        raise Malformed(f'contentType "{unknown.content_type}" is not supported')
    content = messages.read(_type_name(unknown), unknown.raw)
    return {"apiVersion": unknown.api_version, "kind": unknown.kind, **content}


def _bytes(members: dict[int, Any], number: int) -> memoryview:
    found = members.get(number, memoryview(b""))
    if not isinstance(found, memoryview):
        raise Malformed(f"wrong wireType for field {number} of the envelope")
    return found


def _type_name(unknown: _Unknown) -> str:
    group, _, version = unknown.api_version.rpartition("/")
    found = builtins.find(group, version, unknown.kind)
    name = found.name if found is not None else _OF_EVERY_GROUP.get(unknown.kind)
    if name is None:
        raise Malformed(f'no kind "{unknown.kind}" is registered for version "{unknown.api_version}"')
    return name
