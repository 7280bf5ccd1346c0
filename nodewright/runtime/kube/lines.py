"""Cut a byte stream into lines of any length up to a bound.

aiohttp's own ``readline`` refuses lines above a few hundred KiB, and a watched object may be larger.
"""

from __future__ import annotations

LONGEST_LINE = 16 << 20
"""Bytes. etcd refuses objects above 1.5 MiB; JSON escapes can make a few times that of it."""


class LineTooLongError(ValueError):
    """A line exceeds ``LONGEST_LINE``: no API server writes that."""


class LineSplitter:
    """Feed chunks, get complete lines without their newline. An unfinished last line stays inside."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._longest = longest

    def feed(self, chunk: bytes) -> list[bytes]:
        """Raises LineTooLongError."""
        head, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            self._keep(chunk)
            return []
        lines = head.split(b"\n")
        if self._parts:
            lines[0] = b"".join((*self._parts, lines[0]))
            self._parts.clear()
            self._size = 0
        if rest:
            self._keep(rest)
        return [line for line in lines if line.strip()]

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._longest:
            raise LineTooLongError(f"a line of the watch is longer than {self._longest} bytes")
        self._parts.append(part)
