"""A TCP proxy in front of a host's sshd that does something once, when so many bytes have gone to the host.

A command goes to the host as one stream of bytes: what happens after N of them, for N from the handshake to the last
command, happens at every step.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

Deed = Callable[[], Awaitable[None]]


class Proxy:
    """For the sshd at ``address``. ``sent``: bytes that have gone to it since ``arm`` was called."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._after = -1
        self._deed: Deed | None = None
        self.sent = 0
        self.done = False

    async def up(self) -> None:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def arm(self, after: int, deed: Deed | None = None) -> None:
        """``after`` bytes from now all connections are cut, after ``deed`` was done. -1: only count."""
        self._after, self._deed, self.sent, self.done = after, deed, 0, False

    def cut(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def down(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            host_reader, host_writer = await asyncio.open_connection(self._address, 22)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, host_writer}
        for task in (
            asyncio.create_task(self._to_host(reader, host_writer)),
            asyncio.create_task(self._back(host_reader, writer)),
        ):
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _to_host(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                left = self._after - self.sent
                self.sent += len(data)
                if not self.done and 0 <= self._after <= self.sent:
                    self.done = True
                    writer.write(data[: max(left, 0)])
                    await writer.drain()
                    if self._deed is not None:
                        await self._deed()
                    self.cut()
                    return
                writer.write(data)
                await writer.drain()
        self._leave(writer)

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        self._leave(writer)

    def _leave(self, writer: asyncio.StreamWriter) -> None:
        self._open.discard(writer)
        writer.close()
