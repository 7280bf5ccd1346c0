"""Clients that send a part of a request and then nothing: they are answered or closed, and keep nobody out."""

from __future__ import annotations

import asyncio
import contextlib
from urllib.parse import urlsplit

import pytest

from hack.cloudpool.scene import Scene
from nodewright.gateways.cloudpool.listener import ListenerOptions
from tests.gateways.cloudpool.test_server import served
from tests.runtime.town import Town


async def test_half_sent_heads_are_closed_and_do_not_keep_others_out(stage: Scene) -> None:
    proxy = await stage.start(listener=ListenerOptions(port=0, header_timeout=2.0))
    host, port = proxy.url.removeprefix("http://").split(":")
    slow = [await asyncio.open_connection(host, int(port)) for _ in range(50)]
    for _, writer in slow:
        writer.write(b"POST /pool/size HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    assert (await stage.ask("GET", "/pool"))[0] == 200
    async with asyncio.timeout(60.0):
        for reader, writer in slow:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()


async def asked_once(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which one request was answered. Where this process is starved, the time of a head may be over
    before its first byte is read: then another connection is tried."""
    address = urlsplit(url)
    while True:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            writer.write(b"GET /pool HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            return reader, writer
        writer.close()


async def closed_in_a_second_head(url: str) -> None:
    """Ask once, then begin a second request on the same connection: it is closed."""
    async with asyncio.timeout(60.0):
        reader, writer = await asked_once(url)
        with contextlib.suppress(ConnectionError):
            writer.write(b"POST /pool/size HTTP/1.1\r\nHost: ")
            while await reader.read(65536):
                pass
    writer.close()


async def test_the_proxy_closes_a_half_sent_second_request(stage: Scene) -> None:
    await closed_in_a_second_head((await stage.start(listener=ListenerOptions(port=0, header_timeout=0.2))).url)


async def test_the_gateway_closes_a_half_sent_second_request(town: Town) -> None:
    await town.machine_set("workers", 0)
    async with served(town, header_timeout=0.2) as client:
        await closed_in_a_second_head(client.url)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'Content-Length: 60\r\n\r\n{"machineId": "a"', 408),
        (b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel", 408),
        (b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello", 400),
    ],
)
async def test_a_body_that_does_not_arrive_is_no_fault_of_the_backend(stage: Scene, body: bytes, code: int) -> None:
    proxy = await stage.start(listener=ListenerOptions(port=0, read_timeout=0.2))
    address = urlsplit(proxy.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(b"POST /pool/attach HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n" + body)
    async with asyncio.timeout(60.0):
        assert int((await reader.readline()).split()[1]) == code
    writer.close()
