"""A stream of bytes, encrypted with age for the holders of some keys, without ever being whole in memory.

pyrage reads and writes by itself, so it does in a thread of its own; that waits for this loop at each part.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

_T = TypeVar("_T")
_QUEUED = 4
"""Parts of 64 KiB that may wait for whoever takes them."""


class SealingError(Exception):
    """A key is none of age's, or encryption failed."""


def recipients_of(texts: Sequence[str]) -> list[Any]:
    """Public keys (``age1...``). Raises SealingError naming the one that is none."""
    import pyrage  # noqa: PLC0415  (needed by few)

    found = []
    for text in texts:
        try:
            found.append(pyrage.x25519.Recipient.from_str(text))
        except pyrage.RecipientError:
            raise SealingError(f"{text[:70]!r} is no public key of age (age1...)") from None
    return found


async def sealed(parts: AsyncIterator[bytes], recipients: Sequence[Any]) -> AsyncIterator[bytes]:
    """An age file (age-encryption.org/v1). What ``parts`` raises is raised here; nothing counts then."""
    import pyrage  # noqa: PLC0415

    bridge = _Bridge(parts, asyncio.get_running_loop())

    def run() -> None:
        try:
            pyrage.encrypt_io(bridge, bridge, list(recipients))
        finally:
            bridge.end()

    task = asyncio.create_task(asyncio.to_thread(run))
    try:
        while (part := await bridge.next()) is not None:
            yield part
        with contextlib.suppress(Exception):
            await task
        if bridge.failed is not None:
            raise bridge.failed
        if error := task.exception():
            raise SealingError(f"it could not be encrypted: {type(error).__name__}")
    finally:
        bridge.stop()
        with contextlib.suppress(Exception):
            await task


class _Bridge:
    """File for the thread: ``read`` takes from ``parts``, ``write`` hands over to ``next``."""

    def __init__(self, parts: AsyncIterator[bytes], loop: asyncio.AbstractEventLoop) -> None:
        self._parts = parts
        self._loop = loop
        self._rest = b""
        self._ready: asyncio.Queue[bytes | None] = asyncio.Queue(_QUEUED)
        self._under_way: Future[Any] | None = None
        self._stopped = False
        self.failed: Exception | None = None

    # -- in the loop

    async def next(self) -> bytes | None:
        """What was encrypted; None at the end."""
        return await self._ready.get()

    def stop(self) -> None:
        """Nobody takes any more: the thread ends at its next part."""
        self._stopped = True
        if self._under_way is not None:
            self._under_way.cancel()

    async def _take(self) -> bytes:
        try:
            return await anext(self._parts, b"")
        except Exception as error:
            self.failed = error
            raise

    # -- in the thread

    def read(self, size: int = -1) -> bytes:
        if not self._rest:
            self._rest = self._wait(self._take())
        size = len(self._rest) if size < 0 else size
        given, self._rest = self._rest[:size], self._rest[size:]
        return given

    def write(self, content: bytes) -> int:
        self._wait(self._ready.put(bytes(content)))
        return len(content)

    def flush(self) -> None:
        """Nothing is kept back."""

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._wait(self._ready.put(None))

    def _wait(self, what: Coroutine[Any, Any, _T]) -> _T:
        if self._stopped:
            what.close()
            raise OSError("nobody takes it any more")
        waited: Future[_T] = asyncio.run_coroutine_threadsafe(what, self._loop)
        self._under_way = waited
        if self._stopped:
            waited.cancel()
        try:
            return waited.result()
        except BaseException as error:
            raise OSError(type(error).__name__) from None
