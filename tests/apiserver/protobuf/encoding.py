"""A little protobuf writer, so that tests say field by field what is on the wire."""

from __future__ import annotations


def varint(value: int) -> bytes:
    """Write an integer; a negative one as its 64 bit complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: int | str | bytes) -> bytes:
    """Write one field: integers as varints, the rest with its length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(api_version: str, kind: str, content: bytes, *more: bytes) -> bytes:
    """Write a request's body; `more` are further fields of the envelope."""
    head = field(1, api_version) + field(2, kind)
    return b"k8s\x00" + field(1, head) + field(2, content) + b"".join(more)
