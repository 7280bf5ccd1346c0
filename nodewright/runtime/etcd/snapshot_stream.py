"""etcd's snapshot as its JSON gateway streams it: lines with parts of the database, then the SHA-256 of all before.

    {"result": {"remaining_bytes": "4096", "blob": "<base64>"}}

Sources: ``Maintenance.Snapshot`` of etcd's ``rpc.proto`` and ``snapshot.go`` (3.5 to 3.7): the database is made of
pages of 512 bytes or multiples of it, and the checksum follows it. ``etcdutl snapshot restore`` wants both.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import AsyncIterator, Iterator, Mapping

from nodewright.runtime.etcd.gateway import GatewayError

MOST_OF_A_LINE = 4 << 20
"""Bytes. etcd sends parts of 32 KiB."""
MOST_BYTES = 16 << 30
"""etcd's own limit of a database is 8 GiB."""
_PAGE = 512
_SUM = 32


class SnapshotReader:
    """Iterate over ``parts`` once: what is yielded counts only if it ends without GatewayError. ``size``: bytes so far,
    the checksum among them. No more than a line is kept."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._sum = hashlib.sha256()
        self._tail = b""
        self.size = 0

    async def parts(self) -> AsyncIterator[bytes]:
        rest = bytearray()
        async for chunk in self._chunks:
            rest += chunk
            for line in _lines(rest):
                if part := _part(line):
                    self._add(part)
                    yield part
            if len(rest) > MOST_OF_A_LINE:
                raise GatewayError("a part of its snapshot is too long")
        if rest.strip() and (part := _part(bytes(rest))):
            self._add(part)
            yield part
        self._check()

    def _add(self, part: bytes) -> None:
        self.size += len(part)
        if self.size > MOST_BYTES:
            raise GatewayError("its snapshot is too large")
        known = self._tail + part
        self._sum.update(known[:-_SUM])
        self._tail = known[-_SUM:]

    def _check(self) -> None:
        if self.size <= _SUM or self.size % _PAGE != _SUM:
            raise GatewayError(f"its snapshot is cut off: it has {self.size} bytes")
        if self._sum.digest() != self._tail:
            raise GatewayError("its snapshot is damaged: its SHA-256 is another one than etcd says")


def _lines(rest: bytearray) -> Iterator[bytes]:
    """Whole lines, which are taken out of ``rest``."""
    while (end := rest.find(b"\n")) >= 0:
        line = bytes(rest[:end])
        del rest[: end + 1]
        if line.strip():
            yield line


def _part(line: bytes) -> bytes:
    if len(line) > MOST_OF_A_LINE:
        raise GatewayError("a part of its snapshot is too long")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise GatewayError("its snapshot is no JSON") from None
    result = found.get("result") if isinstance(found, Mapping) else None
    if not isinstance(result, Mapping):
        error = found.get("error") if isinstance(found, Mapping) else None
        why = error.get("message") if isinstance(error, Mapping) else ""
        why = "".join(each for each in why[:200] if each.isprintable()) if isinstance(why, str) else ""
        raise GatewayError(f"it broke its snapshot off: {why or 'it does not say why'}")
    blob = result.get("blob") or ""
    try:
        return base64.b64decode(blob, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise GatewayError("a part of its snapshot is no base64") from None
