"""A client that sends any bytes over TLS: what no HTTP library would let a test send."""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import urlsplit

from nodewright.apiserver.app import APIServer

READ_SECONDS = 30.0
"""The time after which a test gives up; nothing waits for it."""


class RawConnection:
    """One connection. `receive` reads until the server closes it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, content: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(content)
        await self.writer.drain()

    async def receive(self) -> bytes:
        """Give all that comes until the end of the connection, also if that is a reset."""
        found = b""
        async with asyncio.timeout(READ_SECONDS):
            try:
                while part := await self.reader.read(65536):
                    found += part
            except (ConnectionError, ssl.SSLError):
                pass
        return found

    def close(self) -> None:
        """Hang up."""
        self.writer.transport.abort()


async def connect(plane: APIServer) -> RawConnection:
    """Open a connection and finish its TLS handshake."""
    context = ssl.create_default_context(cafile=str(plane.ca_path))
    address = urlsplit(plane.url)
    return RawConnection(*await asyncio.open_connection(address.hostname, address.port, ssl=context))


async def ask(plane: APIServer, request: bytes) -> tuple[int, bytes]:
    """Send a request on a connection of its own; gives the status code (0: none came) and the body."""
    connection = await connect(plane)
    try:
        await connection.send(request)
        head, _, body = (await connection.receive()).partition(b"\r\n\r\n")
    finally:
        connection.close()
    words = head.split()
    return (int(words[1]) if len(words) > 1 else 0), body


def request(plane: APIServer, method: str, path: bytes, body: bytes = b"", **headers: bytes) -> bytes:
    """Write a request of the administrator that closes its connection; headers are given with _ for -."""
    named = {"Host": b"localhost", "Connection": b"close", "Authorization": f"Bearer {plane.token}".encode()}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    if body:
        named["Content-Length"] = str(len(body)).encode()
    lines = [method.encode() + b" " + path + b" HTTP/1.1", *(k.encode() + b": " + v for k, v in named.items())]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
