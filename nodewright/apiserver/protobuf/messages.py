"""Messages to objects, led by the table of built-in types.

On the wire Go's marshaller writes every plain field, set or not, and a pointer only if it is set. In JSON a plain zero
is left out while a pointer to zero stays: `replicas: 0` is not the same as no replicas. The wire doesn't tell which are
pointers; the table of types does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from nodewright.apiserver.openapi import builtins
from nodewright.apiserver.openapi.builtins import Field, TypeRef
from nodewright.apiserver.protobuf import scalars, unions, wire
from nodewright.apiserver.protobuf.scalars import ABSENT
from nodewright.apiserver.protobuf.wire import Malformed
from nodewright.apiserver.values import Obj

_MAX_DEPTH = 100
_ALWAYS_SHOWN: Mapping[str, tuple[str, ...]] = {
    "apps.v1.StatefulSetOrdinals": ("start",),
    "apps.v1.StatefulSetSpec": ("serviceName",),
    "apps.v1.StatefulSetStatus": ("availableReplicas",),
    "core.v1.Event": ("reportingComponent", "reportingInstance"),
    "core.v1.NodeRuntimeHandler": ("name",),
    "policy.v1.PodDisruptionBudgetStatus": (
        "disruptionsAllowed",
        "currentHealthy",
        "desiredHealthy",
        "expectedPods",
    ),
    "rbac.v1.RoleRef": ("apiGroup",),
    "scheduling.v1.PriorityClass": ("value",),
}
"""Plain fields that Go writes even when they are zero, though none is required (no `omitempty`)."""
_Take = Callable[[Obj, int, int, memoryview, int], None]
"""Puts one field into the object: (object, wire type, integer, bytes, depth)."""
_Read = Callable[[int, int, memoryview, int], Any]
"""Reads one element of a list or a map: (wire type, integer, bytes, depth)."""


@dataclass(frozen=True, slots=True)
class _Message:
    """How to read a type; an inlined struct is a message of its own on the wire and none in JSON."""

    name: str
    takers: Mapping[int, _Take]

    def read(self, into: Obj, data: memoryview, depth: int) -> None:
        """Put the fields of `data` into an object; a field that is unknown is skipped, as in Go."""
        if depth > _MAX_DEPTH:
            raise Malformed(f"{self.name}: nested more than {_MAX_DEPTH} deep")
        for number, kind, value, content in wire.fields(data):
            take = self.takers.get(number)
            if take is not None:
                take(into, kind, value, content, depth)


def read(type_name: str, data: memoryview) -> Obj:
    """Read a message of a type such as "apps.v1.Deployment". Raises Malformed."""
    found: Obj = {}
    _message(type_name).read(found, data, 0)
    return found


@cache
def _message(type_name: str) -> _Message:
    fields = builtins.get(type_name).fields.values()
    takers: dict[int, _Take] = {}
    inlined: dict[int, dict[int, _Take]] = {}
    for field in fields:
        take = _taker(type_name, field)
        place = takers
        if len(field.number) > 1:
            place = inlined.setdefault(field.number[0], {})
        place[field.number[-1]] = take
    for number, below in inlined.items():
        takers[number] = _inline(_Message(type_name, below))
    return _Message(type_name, takers)


def _inline(message: _Message) -> _Take:
    def take(into: Obj, kind: int, value: int, content: memoryview, depth: int) -> None:
        _expect(message.name, kind, wire.BYTES)
        message.read(into, content, depth + 1)

    return take


def _taker(type_name: str, field: Field) -> _Take:
    ref, name = field.type, field.name
    where = f"{type_name}.{name}"
    if type_name == unions.SCHEMA and name in unions.FIELDS:
        return _union_taker(where, field)
    if ref.shape == "map":
        return _map_taker(where, name, _value(where, _element(ref)), _zero(_element(ref)))
    if ref.shape == "list":
        return _list_taker(where, name, _element(ref))
    if ref.shape == "message":
        return _message_taker(where, name, ref.name)
    always = name in _ALWAYS_SHOWN.get(type_name, ())
    return _scalar_taker(where, name, ref.name, field.pointer or field.required or always)


def _message_taker(where: str, name: str, type_name: str) -> _Take:
    def take(into: Obj, kind: int, value: int, content: memoryview, depth: int) -> None:
        _expect(where, kind, wire.BYTES)
        _message(type_name).read(into.setdefault(name, {}), content, depth + 1)

    return take


def _scalar_taker(where: str, name: str, scalar: str, keep_zero: bool) -> _Take:
    read_one = _scalar(where, scalar)

    def take(into: Obj, kind: int, value: int, content: memoryview, depth: int) -> None:
        read = read_one(kind, value, content)
        if read is not ABSENT and (keep_zero or _is_set(read)):
            into[name] = read
        else:
            into.pop(name, None)

    return take


def _is_set(value: Any) -> bool:
    return isinstance(value, dict | list) or bool(value)


def _list_taker(where: str, name: str, element: TypeRef) -> _Take:
    convert = scalars.VARINTS.get(element.name) if element.shape == "scalar" else None
    read_one = _value(where, element)

    def take(into: Obj, kind: int, value: int, content: memoryview, depth: int) -> None:
        items = into.setdefault(name, [])
        if convert is not None and kind == wire.BYTES:
            items.extend(_packed(convert, content))
            return
        read = read_one(kind, value, content, depth)
        items.append(None if read is ABSENT else read)

    return take


def _packed(convert: scalars.Varint, content: memoryview) -> list[Any]:
    items, at = [], 0
    while at < len(content):
        value, at = wire.varint(content, at)
        items.append(convert(value))
    return items


def _union_taker(where: str, field: Field) -> _Take:
    """Make the taker of a field that is a schema or something else."""
    name, read_union = field.name, unions.FIELDS[field.name]

    def read_one(kind: int, value: int, content: memoryview, depth: int) -> Any:
        _expect(where, kind, wire.BYTES)

        def read_schema(data: memoryview) -> Obj:
            found: Obj = {}
            _message(unions.SCHEMA).read(found, data, depth + 1)
            return found

        return read_union(content, read_schema)

    def take(into: Obj, kind: int, value: int, content: memoryview, depth: int) -> None:
        into[name] = read_one(kind, value, content, depth)

    return take if field.type.shape == "scalar" else _map_taker(where, name, read_one, dict)


def _map_taker(where: str, name: str, read_one: _Read, missing: Callable[[], Any]) -> _Take:
    def take(into: Obj, kind: int, value: int, content: memoryview, depth: int) -> None:
        _expect(where, kind, wire.BYTES)
        key, read = "", missing()
        for number, inner_kind, inner_value, inner_content in wire.fields(content):
            if number == 1:
                _expect(where, inner_kind, wire.BYTES)
                key = scalars.text(inner_content)
            elif number == 2:
                read = read_one(inner_kind, inner_value, inner_content, depth)
        into.setdefault(name, {})[key] = missing() if read is ABSENT else read

    return take


def _zero(element: TypeRef) -> Callable[[], Any]:
    """Give the maker of a map's value that is not on the wire."""
    if element.shape == "message":
        return dict
    zero = {"string": "", "bytes": "", "quantity": "0", "int32": 0, "int64": 0, "bool": False, "double": 0}
    return list if element.name == "extra" else lambda: zero.get(element.name)


def _value(where: str, ref: TypeRef) -> _Read:
    """Give the reader of one element of a list or a map."""
    if ref.shape == "message":

        def read_message(kind: int, value: int, content: memoryview, depth: int) -> Any:
            _expect(where, kind, wire.BYTES)
            found: Obj = {}
            _message(ref.name).read(found, content, depth + 1)
            return found

        return read_message
    read_one = _scalar(where, ref.name)
    return lambda kind, value, content, depth: read_one(kind, value, content)


def _scalar(where: str, name: str) -> Callable[[int, int, memoryview], Any]:
    convert = scalars.VARINTS.get(name)
    if convert is not None:
        to_value = convert

        def read_integer(kind: int, value: int, content: memoryview) -> Any:
            _expect(where, kind, wire.VARINT)
            return to_value(value)

        return read_integer
    wanted, read_bytes = scalars.OTHERS[name]

    def read(kind: int, value: int, content: memoryview) -> Any:
        _expect(where, kind, wanted)
        return read_bytes(content)

    return read


def _expect(where: str, kind: int, wanted: int) -> None:
    if kind != wanted:
        raise Malformed(f"wrong wireType = {kind} for field {where}")


def _element(ref: TypeRef) -> TypeRef:
    assert ref.element is not None, "lists and maps have an element"
    return ref.element
