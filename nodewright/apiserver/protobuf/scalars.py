"""The leaves of Kubernetes objects: numbers, texts, and the small messages that are one value in JSON.

Times, quantities, IntOrStrings and raw JSON are messages on the wire; k8s.io/apimachinery's generated.proto files and
their hand-written marshallers say how. A decoder gives ABSENT for what Go's JSON leaves out as a zero.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from nodewright.apiserver.protobuf import wire
from nodewright.apiserver.protobuf.wire import Malformed

ABSENT: Final = object()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOS = 1_000_000_000

Varint = Callable[[int], Any]
Bytes = Callable[[memoryview], Any]


def text(data: memoryview) -> str:
    """Read a string. Raises Malformed unless it is UTF-8."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        raise Malformed("string field contains invalid UTF-8") from None


def parts(data: memoryview) -> dict[int, Any]:
    """Give the fields of a small message by number: integers unsigned, the rest as bytes; the last one counts."""
    return {number: value if kind == wire.VARINT else content for number, kind, value, content in wire.fields(data)}


def _member(data: memoryview, number: int, kind: type) -> Any:
    found = parts(data).get(number)
    if found is not None and not isinstance(found, kind):
        raise Malformed(f"wrong wireType for field {number}")
    return found


def _base64(data: memoryview) -> str:
    return base64.b64encode(data).decode("ascii")


def _double(data: memoryview) -> float:
    if len(data) != 8:
        raise Malformed("wrong wireType for a double")
    value: float = struct.unpack("<d", data)[0]
    # JSON knows no 3.0: a whole number is written without a fraction.
    return int(value) if value.is_integer() and abs(value) < 1 << 53 else value


def _moment(data: memoryview) -> tuple[str, int] | None:
    """Read seconds and nanoseconds since 1970, as the text up to the second and the nanoseconds; None for no time."""
    if not data:
        return None
    members = parts(data)
    seconds, nanos = members.get(1, 0), members.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanos, int):
        raise Malformed("wrong wireType in a timestamp")
    if not 0 <= wire.signed32(nanos) < _NANOS:
        raise Malformed(f"timestamp: nanos {wire.signed32(nanos)} out of range")
    try:
        moment = _EPOCH + timedelta(seconds=wire.signed64(seconds))
    except OverflowError:
        raise Malformed(f"timestamp: seconds {wire.signed64(seconds)} out of range") from None
    return f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0"), wire.signed32(nanos)


def _time(data: memoryview) -> Any:
    moment = _moment(data)
    return ABSENT if moment is None else f"{moment[0]}Z"


def _micro_time(data: memoryview) -> Any:
    moment = _moment(data)
    return ABSENT if moment is None else f"{moment[0]}.{moment[1] // 1000:06d}Z"


def _quantity(data: memoryview) -> Any:
    found = _member(data, 1, memoryview)
    return text(found) if found else ABSENT


def int_or_string(data: memoryview) -> int | str:
    """Read an IntOrString: type 0 is the integer in field 2, type 1 the text in field 3. Raises Malformed."""
    members = parts(data)
    chosen, number, words = members.get(1, 0), members.get(2, 0), members.get(3, b"")
    if not isinstance(chosen, int) or not isinstance(number, int) or isinstance(words, int):
        raise Malformed("wrong wireType in an IntOrString")
    if chosen not in (0, 1):
        raise Malformed(f"IntOrString of unknown type {chosen}")
    return wire.signed32(number) if chosen == 0 else text(memoryview(words))


def _json(data: memoryview) -> Any:
    raw = _member(data, 1, memoryview)
    return json_value(raw) if raw else ABSENT


def json_value(raw: memoryview) -> Any:
    """Read JSON text. Raises Malformed."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"embedded JSON: {error}") from None


def _texts(data: memoryview) -> list[str]:
    """Read an ExtraValue: a message whose field 1 is a list of strings."""
    return [text(content) for number, kind, _, content in wire.fields(data) if (number, kind) == (1, wire.BYTES)]


VARINTS: Mapping[str, Varint] = {"bool": bool, "int32": wire.signed32, "int64": wire.signed64}
"""Decoders of what is a varint on the wire."""

OTHERS: Mapping[str, tuple[int, Bytes]] = {
    "string": (wire.BYTES, text),
    "bytes": (wire.BYTES, _base64),
    "double": (wire.FIXED64, _double),
    "time": (wire.BYTES, _time),
    "microtime": (wire.BYTES, _micro_time),
    "quantity": (wire.BYTES, _quantity),
    "intstr": (wire.BYTES, int_or_string),
    "raw": (wire.BYTES, _json),
    "fieldsv1": (wire.BYTES, _json),
    "json": (wire.BYTES, _json),
    "extra": (wire.BYTES, _texts),
}
"""Decoders of all others, each with its wire type."""
