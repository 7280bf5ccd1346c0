"""The connections of the plane: bounded in number, time and memory, whatever their clients do or leave undone."""

from __future__ import annotations

import asyncio
import resource
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from nodewright.apiserver.app.config import Limits
from nodewright.runtime.telemetry.patience import PatientServer, quiet_logger

_SPARE_DESCRIPTORS = 128
"""File descriptors that connections leave to the rest of the process: the journal, logs, the controllers' clients."""
_TLS_BUFFER = 16 * 1024
"""Bytes that are read from a socket at once, a TLS record's size; asyncio's own buffer has 256 KiB for each one."""
_BACKLOG = 512


_LOG: Final = quiet_logger("nodewright.apiserver.http")


class BoundedServer(PatientServer):
    """aiohttp's low-level server, which closes connections that send no request, and takes no more than it can serve.

    Needs a running loop.
    """

    def __init__(self, handler: Any, limits: Limits) -> None:
        make = partial(web.BaseRequest, loop=asyncio.get_running_loop(), client_max_size=limits.body_bytes)
        super().__init__(
            handler,
            head_seconds=limits.header_seconds,
            request_factory=make,
            handler_cancellation=True,
            access_log=None,
            logger=_LOG,
            auto_decompress=False,
            keepalive_timeout=limits.idle_seconds,
        )
        self._most = most_connections(limits.connections)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Hang up if there are too many connections."""
        super().connection_made(handler, transport)
        if len(self._connections) > self._most:
            transport.abort()
            return
        _shrink(transport)


def most_connections(wanted: int) -> int:
    """Give how many connections may be open: no more than the process has file descriptors for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, soft - min(_SPARE_DESCRIPTORS, soft // 2)))


class Site(web.TCPSite):
    """A TCP site whose TLS handshakes must end in time."""

    def __init__(
        self, runner: web.ServerRunner, address: tuple[str, int], context: ssl.SSLContext, handshake_seconds: float
    ) -> None:
        super().__init__(runner, *address, ssl_context=context, backlog=_BACKLOG)
        self._where = address
        self._seconds = handshake_seconds

    async def start(self) -> None:
        """Listen. Raises OSError."""
        await web.BaseSite.start(self)
        server: Callable[[], asyncio.BaseProtocol] | None = self._runner.server
        assert server is not None
        self._server = await asyncio.get_running_loop().create_server(
            server,
            *self._where,
            ssl=self._ssl_context,
            backlog=self._backlog,
            ssl_handshake_timeout=self._seconds,
        )


def _shrink(transport: asyncio.Transport) -> None:
    """Give a TLS connection a read buffer of one record.

    The buffer is private to asyncio; where it isn't as in CPython 3.11 to 3.14, nothing is done.
    """
    protocol = getattr(transport, "_ssl_protocol", None)
    if isinstance(getattr(protocol, "_ssl_buffer", None), bytearray) and hasattr(protocol, "_ssl_buffer_view"):
        buffer = bytearray(_TLS_BUFFER)
        protocol.max_size = _TLS_BUFFER  # type: ignore[union-attr]
        protocol._ssl_buffer = buffer  # type: ignore[union-attr]
        protocol._ssl_buffer_view = memoryview(buffer)  # type: ignore[union-attr]
