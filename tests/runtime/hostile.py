"""An HTTP server that answers in bytes of the test's choice, whatever HTTP says about them."""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson

Answer = Callable[[str], Iterable[bytes]]
"""From the request's target to the bytes of the answer; the connection is cut after the last."""
SECRET_WORDS = "internal-admin-password-hunter2"
MIB = 1 << 20


def head(status: int = 200, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Word", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def says(body: bytes, status: int = 200, *headers: str) -> Answer:
    return lambda _: [head(status, f"Content-Length: {len(body)}", *headers), body]


def json(found: object, status: int = 200) -> Answer:
    return says(orjson.dumps(found), status, "Content-Type: application/json")


def endless(first: bytes, then: bytes, *headers: str, most: int = 2 << 30) -> Answer:
    """``first``, and ``then`` again and again up to ``most`` bytes."""

    def answer(_: str) -> Iterator[bytes]:
        yield head(200, "Content-Type: application/json", *headers) + first
        for _number in range(most // len(then)):
            yield then

    return answer


def gzip_bomb(size: int) -> bytes:
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [squeeze.compress(b"[" * MIB) for _ in range(size // MIB)]
    return b"".join((*parts, squeeze.flush()))


async def _turns() -> None:
    """asyncio takes and closes connections in several turns of the loop, without an event to wait for."""
    for _ in range(20):
        await asyncio.sleep(0)


@dataclass
class Hostile:
    """``answer`` is asked for each request; ``asked`` are the targets."""

    answer: Answer
    asked: list[str] = field(default_factory=list)
    pause: float = 0.0
    """Seconds after each part."""
    sent: int = 0
    url: str = ""

    _serving: dict[asyncio.Task[None], asyncio.StreamWriter] = field(default_factory=dict)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving[task] = writer
        try:
            await self._answer(reader, writer)
        finally:
            self._serving.pop(task)
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            request = await reader.readuntil(b"\r\n\r\n")
            target = request.split(b" ")[1].decode()
            self.asked.append(target)
            for part in self.answer(target):
                writer.write(part)
                self.sent += len(part)
                await writer.drain()
                await asyncio.sleep(self.pause)
            writer.close()
            await writer.wait_closed()

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Hostile]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            await _turns()  # what the kernel has taken for the server is taken by it
            server.close()
            await _turns()  # connections that were just taken begin to be served
            while self._serving:
                for writer in self._serving.values():
                    writer.transport.abort()
                await asyncio.wait(self._serving)
            await _turns()  # aborted transports close
