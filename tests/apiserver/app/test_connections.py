"""Connections that send nothing, half of it or too slowly are closed; there is a bound on how many there are."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from urllib.parse import urlsplit

import aiohttp
import pytest

from nodewright.apiserver.app import APIServer, Limits
from nodewright.apiserver.app.connections import most_connections
from tests.apiserver.app.client import Client, client_of
from tests.apiserver.app.raw import READ_SECONDS, RawConnection, ask, connect, request

MAPS = b"/api/v1/namespaces/default/configmaps"


@pytest.fixture
def limits() -> Limits:
    return Limits(header_seconds=0.3, body_seconds=0.3, idle_seconds=0.5, connections=20)


@pytest.mark.parametrize("half", [b"", b"GET /api", b"GET /api HTTP/1.1\r\nHost: x\r\nX-A: "])
async def test_a_connection_without_a_whole_request_is_closed(plane: APIServer, half: bytes) -> None:
    connection = await connect(plane)
    await connection.send(half)
    assert await connection.receive() == b""
    connection.close()


async def test_a_connection_that_never_begins_its_handshake_is_closed(plane: APIServer) -> None:
    address = urlsplit(plane.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    async with asyncio.timeout(READ_SECONDS):
        assert await reader.read() == b""
    writer.close()


async def test_a_half_sent_second_request_is_closed(plane: APIServer) -> None:
    connection = await connect(plane)
    whole = request(plane, "GET", MAPS).replace(b"Connection: close\r\n", b"")
    await connection.send(whole + b"GET /api HTTP/1.1\r\nHost")
    found = await connection.receive()
    connection.close()
    assert found.startswith(b"HTTP/1.1 200")


async def test_a_body_that_does_not_come_is_a_408(plane: APIServer) -> None:
    sent = request(plane, "POST", MAPS, b"{}", Content_Type=b"application/json")
    code, body = await ask(plane, sent.replace(b"Content-Length: 2", b"Content-Length: 1000"))
    assert code == 408, body


async def test_a_compressed_body_is_refused_unread(api: Client) -> None:
    answer = await api("POST", MAPS.decode(), b"\x1f\x8b\x08\x00", Content_Encoding="gzip")
    assert (answer.status, answer.json["reason"]) == (415, "UnsupportedMediaType")


async def test_there_is_a_bound_on_connections_and_those_that_go_make_room(plane: APIServer) -> None:
    open_: list[RawConnection] = []
    sent = request(plane, "GET", MAPS + b"?watch=1&timeoutSeconds=600").replace(b"Connection: close\r\n", b"")
    for _ in range(20):
        connection = await connect(plane)
        await connection.send(sent)
        assert (await connection.reader.readline()).startswith(b"HTTP/1.1 200")
        open_.append(connection)
    more = await connect(plane)
    assert await more.receive() == b""
    more.close()
    for connection in open_:
        connection.close()
    async with asyncio.timeout(READ_SECONDS), client_of(plane) as api:
        while True:
            with suppress(aiohttp.ClientError):
                if (await api("GET", MAPS.decode())).status == 200:
                    break
            await asyncio.sleep(0.01)


async def test_a_connection_holds_little_memory(plane: APIServer) -> None:
    connection = await connect(plane)
    await connection.send(request(plane, "GET", MAPS + b"?watch=1").replace(b"Connection: close\r\n", b""))
    assert (await connection.reader.readline()).startswith(b"HTTP/1.1 200")
    transports = [t for t in _tls_protocols() if t._server_side]
    assert transports
    assert all(len(t._ssl_buffer) <= 16 * 1024 for t in transports)
    connection.close()


def _tls_protocols() -> list[asyncio.sslproto.SSLProtocol]:
    return [o for o in gc.get_objects() if isinstance(o, asyncio.sslproto.SSLProtocol) and o._app_transport is not None]


def test_connections_leave_file_descriptors_to_the_rest_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 4096))
    assert most_connections(5000) == 896
    assert most_connections(100) == 100
    monkeypatch.setattr("resource.getrlimit", lambda _: (20, 20))
    assert most_connections(5000) == 10
