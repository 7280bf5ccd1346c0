"""JSON schemas within CustomResourceDefinitions: fields that are a schema, or else a list of them, or yes or no.

Each is a message of two fields on the wire; apiextensions/v1's marshal.go says what it is in JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nodewright.apiserver.protobuf import scalars, wire
from nodewright.apiserver.protobuf.wire import Malformed

Read = Callable[[memoryview], Any]
"""Reads a schema."""


def or_bool(data: memoryview, read: Read) -> Any:
    """Read a JSONSchemaPropsOrBool: field 1 is the bool, field 2 the schema, which counts if it is there."""
    members = scalars.parts(data)
    if 2 in members:
        return read(_bytes(members[2]))
    allows = members.get(1, 0)
    if not isinstance(allows, int):
        raise Malformed("wrong wireType for a bool in a JSON schema")
    return bool(allows)


def or_array(data: memoryview, read: Read) -> Any:
    """Read a JSONSchemaPropsOrArray: field 1 is one schema, field 2 many."""
    return _either(data, read, read)


def or_texts(data: memoryview, read: Read) -> Any:
    """Read a JSONSchemaPropsOrStringArray: field 1 is a schema, field 2 names."""
    return _either(data, read, scalars.text)


def _either(data: memoryview, read: Read, read_item: Read) -> Any:
    schema: Any = None
    items = []
    for number, kind, _, content in wire.fields(data):
        if kind != wire.BYTES:
            raise Malformed(f"wrong wireType = {kind} in a JSON schema")
        if number == 1:
            schema = read(content)
        elif number == 2:
            items.append(read_item(content))
    return items or schema


def _bytes(value: Any) -> memoryview:
    if not isinstance(value, memoryview):
        raise Malformed("wrong wireType for a schema in a JSON schema")
    return value


FIELDS: Mapping[str, Callable[[memoryview, Read], Any]] = {
    "items": or_array,
    "additionalProperties": or_bool,
    "additionalItems": or_bool,
    "dependencies": or_texts,
}
"""By the field's name in JSONSchemaProps."""
SCHEMA = "apiextensions.v1.JSONSchemaProps"
