"""Half-sent heads, seen through sockets: the first request of a connection and every later one have their time."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from nodewright.runtime.telemetry.observability import ObservabilityServer
from nodewright.runtime.telemetry.patience import PatientRunner

GIVE_UP = 300.0
"""Seconds after which a test fails; nothing waits for them."""
KEEP_ALIVE = 3600.0
GET = b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
HALF = b"GET /echo HTTP/1.1\r\nHost: x\r\nX-A: "


class Scene:
    """An echo whose answers to ``/slow`` wait for ``go``."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.asked = asyncio.Event()
        self.port = 0

    async def echo(self, request: web.Request) -> web.Response:
        return web.Response(body=await request.read() or b"empty")

    async def slow(self, _: web.Request) -> web.Response:
        self.asked.set()
        await self.go.wait()
        return web.Response(body=b"late")

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    found, app = Scene(), web.Application()
    app.router.add_route("*", "/echo", found.echo)
    app.router.add_get("/slow", found.slow)
    runner = PatientRunner(app, head_seconds=0.2, keepalive_timeout=KEEP_ALIVE, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.port = runner.addresses[0][1]
    yield found
    found.go.set()
    await runner.cleanup()


async def rest(reader: asyncio.StreamReader) -> bytes:
    """All until the server closes, also by a reset."""
    found = b""
    async with asyncio.timeout(GIVE_UP):
        with contextlib.suppress(ConnectionError):
            while part := await reader.read(65536):
                found += part
    return found


async def answer(reader: asyncio.StreamReader) -> bytes:
    """The body of the next answer."""
    async with asyncio.timeout(GIVE_UP):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
        return await reader.readexactly(int(length.partition(b":")[2]))


@pytest.mark.parametrize("sent", [b"", b"G", HALF, GET[:-1]])
async def test_a_first_request_that_does_not_arrive_is_closed(scene: Scene, sent: bytes) -> None:
    reader, writer = await scene.connect()
    writer.write(sent)
    assert await rest(reader) == b""
    writer.close()


@pytest.mark.parametrize("whole", [GET, POST, CHUNKED])
@pytest.mark.parametrize("half", [b"G", HALF, b"\r\n\r\nGET"])
async def test_a_later_request_that_is_begun_is_closed_long_before_keep_alive_ends(
    scene: Scene, whole: bytes, half: bytes
) -> None:
    reader, writer = await scene.connect()
    for _ in range(2):
        writer.write(whole)
        assert await answer(reader) in (b"empty", b"hello")
    writer.write(half)
    assert await rest(reader) == b""
    writer.close()


@pytest.mark.parametrize("whole", [GET, POST, CHUNKED])
async def test_one_that_comes_in_the_same_packet_as_the_whole_one_before_it_too(scene: Scene, whole: bytes) -> None:
    reader, writer = await scene.connect()
    writer.write(whole + HALF)
    assert (await rest(reader)).startswith(b"HTTP/1.1 200")
    writer.close()


@pytest.mark.parametrize("head", [b"Content-Length: 5\r\n\r\nhe", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhe"])
async def test_one_behind_the_end_of_a_body_too(scene: Scene, head: bytes) -> None:
    reader, writer = await scene.connect()
    writer.write(b"POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n" + head)
    async with asyncio.timeout(GIVE_UP):
        assert b"100" in await reader.readuntil(b"\r\n\r\n")
    writer.write((b"llo" if b"Length" in head else b"llo\r\n0\r\n\r\n") + HALF)
    assert b"hello" in await rest(reader)
    writer.close()


async def test_a_dripped_head_gets_no_more_time(scene: Scene) -> None:
    reader, writer = await scene.connect()
    writer.write(GET)
    assert await answer(reader) == b"empty"
    writer.write(HALF)
    closed = asyncio.create_task(rest(reader))
    async with asyncio.timeout(GIVE_UP):
        while not closed.done():
            with contextlib.suppress(ConnectionError):
                writer.write(b"X")
                await writer.drain()
            await asyncio.wait([closed], timeout=0.02)
    writer.close()
    assert await closed == b""


async def test_an_idle_connection_is_kept(scene: Scene) -> None:
    idle, keeper = await scene.connect()
    for whole in (GET, POST, CHUNKED):
        keeper.write(whole)
        assert await answer(idle) in (b"empty", b"hello")
    for _ in range(3):  # each of these has a head that is never finished: a time for heads has passed when it closes
        reader, writer = await scene.connect()
        writer.write(HALF)
        assert await rest(reader) == b""
        writer.close()
    keeper.write(POST)
    assert await answer(idle) == b"hello"
    keeper.close()


async def test_the_time_of_a_request_behind_a_slow_one_begins_after_that(scene: Scene) -> None:
    reader, writer = await scene.connect()
    writer.write(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n" + HALF)
    async with asyncio.timeout(GIVE_UP):
        await scene.asked.wait()
    other, theirs = await scene.connect()
    theirs.write(HALF)
    assert await rest(other) == b""
    theirs.close()
    scene.go.set()
    assert await answer(reader) == b"late"
    assert await rest(reader) == b""
    writer.close()


async def test_the_listeners_of_metrics_and_health_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodewright.runtime.telemetry.patience.HEAD_SECONDS", 0.2)

    class Nothing:
        def readiness(self) -> dict[str, str]:
            return {}

        def families(self) -> tuple[object, ...]:
            return ()

    async with ObservabilityServer("127.0.0.1", 0, Nothing()) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
        writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" + b"GET /livez HT")
        assert (await rest(reader)).startswith(b"HTTP/1.1 200")
        writer.close()


@pytest.mark.parametrize(
    "sent", [b"\x00\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", GET[:-2] + b"A\r\n\r\n", b"\x16\x03\x01" * 9 + b"\n"]
)
async def test_what_is_no_http_writes_no_traceback(scene: Scene, sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    reader, writer = await scene.connect()
    writer.write(sent)
    assert b" 400 " in (await rest(reader)).partition(b"\r\n")[0]
    writer.close()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("sent", [b"CONNECT  \r\nHost: x\r\n\r\n", b"CONNECT  HTTP/1.1\r\nHost: x\r\n\r\n"])
async def test_a_request_that_the_library_fails_over_leaves_no_connection_open(
    scene: Scene, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await scene.connect()
    writer.write(sent)
    await rest(reader)
    writer.close()
    gc.collect()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
