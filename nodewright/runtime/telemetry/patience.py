"""HTTP servers that close connections on which a request's head does not arrive in time, the second and later ones too.

aiohttp (3.14) has no timeout for the head of a request: between two requests of a connection only its keep-alive
timeout holds, half-sent heads included, and that is long, since an idle connection costs little and opening one costs
much. Here an idle connection is kept, and one that has begun a request is not (slow HTTP requests, CWE-400).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

HEAD_SECONDS = 10.0
"""Seconds for the head of a request, where nothing else is said."""
KEEP_ALIVE = 75.0
"""Seconds for which a connection is kept between two requests."""
LINGER_SECONDS = 10.0
"""Seconds for the rest of a body that nobody reads, as in aiohttp; then the connection is closed."""
_END = b"\r\n\r\n"
_LAST_CHUNK = b"0" + _END


class _Quiet(logging.Filter):
    """Leaves out what clients did wrong: for aiohttp a request that is none is an error with a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and type(error).__module__.startswith(("aiohttp.", "asyncio.")):
            return False
        return not isinstance(error, ConnectionError | ssl.SSLError)


def quiet_logger(name: str) -> logging.Logger:
    """A logger for aiohttp that nobody out there can fill."""
    logger = logging.getLogger(name)
    if not any(isinstance(each, _Quiet) for each in logger.filters):
        logger.addFilter(_Quiet())
    return logger


class PatientHandler(RequestHandler):
    """One connection. ``_timer`` runs while bytes of a head are there, or none has come yet, and it is not whole."""

    __slots__ = ("_body", "_last", "_timer", "_within")

    def __init__(self, *args: Any, head_seconds: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._within = head_seconds
        self._timer: asyncio.TimerHandle | None = None
        self._last = b""
        self._body: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The time for the first head begins: nobody connects to say nothing."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._head_is_whole()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        requests, body = self._request_count, self._body
        had, open_ = (body.total_bytes, not body.is_eof()) if body is not None else (0, False)
        super().data_received(data)
        joined = self._last + data
        self._last = joined[-len(_END) :]
        if self._request_count != requests:
            self._body = self._messages[-1][1] if self._messages else None
            begun = self._body is not None and self._body.is_eof() and not _ends_with(joined, self._body.total_bytes)
            self._head_is_whole()
        elif open_:
            begun = body.is_eof() and body.total_bytes - had < len(data) and not joined.endswith(_LAST_CHUNK)
        else:
            begun = bool(data.strip(b"\r\n"))
        if begun:
            self._await_head()

    def _await_head(self) -> None:
        """From the first byte on: later ones give no more time."""
        if self._timer is None:
            self._timer = self._loop.call_later(self._within, self._give_up)

    def _head_is_whole(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        """While an earlier request of the connection is answered the next one can't be taken: it has its time later."""
        self._timer = None
        if self._waiter is None:
            self._await_head()
            return
        self._hang_up()

    async def start(self) -> None:
        """Hang up where aiohttp (3.14) fails before there is a request, as over ``CONNECT`` without a target."""
        try:
            await super().start()
        except Exception as error:
            self.logger.debug("a request could not be made", exc_info=error)
            self._hang_up()

    def _hang_up(self) -> None:
        transport = self.transport
        self.force_close()
        if isinstance(transport, asyncio.Transport):
            transport.abort()


class PatientServer(web.Server):
    """The protocol factory; ``head_seconds``: for the head of each request."""

    def __init__(self, handler: Any, *, head_seconds: float, **options: Any) -> None:
        options.setdefault("keepalive_timeout", KEEP_ALIVE)
        super().__init__(handler, **{"lingering_time": LINGER_SECONDS, **options})
        self._head_seconds = head_seconds

    def __call__(self) -> PatientHandler:
        return PatientHandler(self, loop=self._loop, head_seconds=self._head_seconds, **self._kwargs)


class PatientRunner(web.AppRunner):
    """An AppRunner with a PatientServer, whose log no client can fill."""

    __slots__ = ("_head_seconds",)

    def __init__(self, app: web.Application, *, head_seconds: float | None = None, **options: Any) -> None:
        logger = quiet_logger("nodewright.http")
        super().__init__(app, handle_signals=False, access_log=None, logger=logger, **options)
        self._head_seconds = HEAD_SECONDS if head_seconds is None else head_seconds

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return PatientServer(
            made.request_handler,
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
            head_seconds=self._head_seconds,
            **made._kwargs,
        )


def _ends_with(received: bytes, body_bytes: int) -> bool:
    """Whether nothing is behind a request with a body of so many bytes, as far as the bytes tell.

    A wrong no costs a client that is idle afterwards its connection, a wrong yes the time until keep-alive ends.
    """
    head = received[: len(received) - body_bytes]
    return head.endswith(_END) or received.endswith(_LAST_CHUNK)
