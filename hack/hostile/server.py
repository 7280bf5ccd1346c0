"""A server that a kubeconfig Secret of a tenant names: redirects, bodies without an end, bombs, wrong types."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import zlib
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

_MIB = 1 << 20
_PARTS = 512
"""Parts of 1 MiB in a body that is called endless: more than any reader may take."""


def _head(status: int, *headers: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status} Word", "Connection: close", *headers)).encode() + b"\r\n\r\n"


def _endless(_port: int) -> Iterator[bytes]:
    yield _head(200, "Content-Type: application/json") + b'{"items":['
    for _ in range(_PARTS):
        yield b"{}," * (_MIB // 3)


def _redirect(port: int) -> Iterator[bytes]:
    yield _head(302, f"Location: http://127.0.0.1:{port}/endless/", "Content-Length: 0")


def _bomb(_port: int) -> Iterator[bytes]:
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    yield _head(200, "Content-Type: application/json", "Content-Encoding: gzip")
    for _ in range(_PARTS):
        yield squeeze.compress(b"[" * _MIB)
    yield squeeze.flush()


def _wrong_types(_port: int) -> Iterator[bytes]:
    body = b'{"metadata":{"resourceVersion":"1"},"items":[5,{"metadata":{"name":[],"labels":"x"},"spec":[1]},null]}'
    yield _head(200, "Content-Type: application/json", f"Content-Length: {len(body)}") + body


ANSWERS = {"endless": _endless, "redirect": _redirect, "bomb": _bomb, "types": _wrong_types}
"""By the first part of the path that a kubeconfig names."""


@dataclass
class HostileServer:
    """``asked`` counts requests by the answer that they got."""

    url: str = ""
    asked: Counter[str] = field(default_factory=Counter)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            request = await reader.readuntil(b"\r\n\r\n")
            name = request.split(b"/")[1].decode(errors="replace")
            print(name, flush=True)
            for part in ANSWERS.get(name, _wrong_types)(writer.get_extra_info("sockname")[1]):
                writer.write(part)
                await writer.drain()
    finally:
        writer.transport.abort()


async def _serve() -> None:
    """Print the address, then the name of each answer that is given; until killed."""
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


@asynccontextmanager
async def hostile_server() -> AsyncIterator[HostileServer]:
    """On a port of loopback; the first part of a request's path, one of ``ANSWERS``, chooses the answer.

    In a process of its own: what its answers cost would else be taken for the slowness of those who measure.
    """
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "hack.hostile.server", stdout=PIPE)
    assert process.stdout is not None
    found = HostileServer((await process.stdout.readline()).decode().strip())
    counting = asyncio.create_task(_count(process.stdout, found.asked))
    try:
        yield found
    finally:
        process.kill()
        await process.wait()
        await counting


async def _count(lines: asyncio.StreamReader, asked: Counter[str]) -> None:
    async for line in lines:
        asked[line.decode().strip()] += 1


if __name__ == "__main__":
    asyncio.run(_serve())
