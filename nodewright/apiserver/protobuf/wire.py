"""Protocol Buffers on the wire: tags, varints and length-delimited fields. Knows nothing of Kubernetes.

Source: the encoding of proto2 messages. Groups (wire types 3 and 4) are refused: no Kubernetes type has any.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

_FIXED_SIZES = {FIXED64: 8, FIXED32: 4}
_VARINT_BYTES = 10
_MAX_FIELD_NUMBER = (1 << 29) - 1


class Malformed(ValueError):
    """Bytes that are not what they claim to be; the text says how."""


def fields(data: memoryview) -> Iterator[tuple[int, int, int, memoryview]]:
    """Give each field of a message: its number, wire type, value if it is a varint, else its bytes.

    Raises Malformed.
    """
    at, end = 0, len(data)
    nothing = data[:0]
    while at < end:
        tag, at = varint(data, at)
        number, kind = tag >> 3, tag & 7
        if not 0 < number <= _MAX_FIELD_NUMBER:
            raise Malformed(f"illegal tag {number} (wire type {kind})")
        if kind == VARINT:
            value, at = varint(data, at)
            yield number, kind, value, nothing
            continue
        if kind == BYTES:
            size, at = varint(data, at)
        elif kind in _FIXED_SIZES:
            size = _FIXED_SIZES[kind]
        else:
            raise Malformed(f"illegal wireType {kind}")
        if size > end - at:
            raise Malformed("unexpected EOF")
        yield number, kind, 0, data[at : at + size]
        at += size


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """Read the unsigned 64 bit integer at a place; give it and the place behind it. Raises Malformed."""
    value = shift = 0
    end = len(data)
    while True:
        if at >= end:
            raise Malformed("unexpected EOF")
        if shift >= 7 * _VARINT_BYTES:
            raise Malformed("integer overflow")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7


def signed64(value: int) -> int:
    """Read an unsigned varint as the int64 it stands for."""
    return value - (1 << 64) if value >> 63 else value


def signed32(value: int) -> int:
    """Read an unsigned varint as the int32 it stands for: its lower half, as Go does."""
    low = value & 0xFFFF_FFFF
    return low - (1 << 32) if low >> 31 else low
