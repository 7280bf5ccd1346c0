"""Requests to an API server as bytes: connections, credentials, slots, what is sent again, and how answers fail.

What is sent again without asking: reads after any passing failure; writes only when the server certainly did not act on
them (429, a connection that could not be made). All else is raised to the caller, who knows whether a repeat is safe.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import aiohttp
from yarl import URL

from nodewright import __version__
from nodewright.runtime.kube.answers import decoded, read_body
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.errors import (
    ApiError,
    MalformedAnswerError,
    NoAnswer,
    NotLeadingError,
    SilenceError,
    error_from_answer,
)
from nodewright.runtime.kube.lines import LONGEST_LINE, LineSplitter, LineTooLongError
from nodewright.runtime.kube.slots import Slots
from nodewright.runtime.telemetry import metrics

_JSON = "application/json"
LARGEST_STATUS = 64 << 10
"""Bytes read of a refusal."""
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError, EOFError, ValueError)
"""What the HTTP library raises. ValueError: a host name or header that can't be sent, UnicodeError among it."""
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """``in_flight``: requests at a time (watches not counted); ``share_of_namespace``: of these, those on behalf of one
    namespace. A third of all keeps an API server busy that is no further away than 20 ms, and leaves it free to answer
    others soon. Times in seconds.

    ``retry_after_at_most`` bounds a wait that the server asks for; ``watch_silence`` is how long a watch may say
    nothing at all (API servers send a bookmark about once a minute). ``keep_alive``: an idle connection waits so long
    for the next burst, since opening one costs more than a request (API servers close theirs after 90 s, proxies 60).
    ``largest_answer``: bytes of one answer; ``longest_line``: of one event of a watch; ``heaviest_answer``: bytes of
    memory that either may take once it is parsed. ``lists_in_flight``: pages of lists that are read at a time.
    """

    in_flight: int = 50
    connect_timeout: float = 5.0
    keep_alive: float = 45.0
    request_timeout: float = 30.0
    attempts: int = 4
    backoff: float = 0.2
    retry_after_at_most: float = 30.0
    watch_silence: float = 100.0
    largest_answer: int = 256 << 20
    longest_line: int = LONGEST_LINE
    heaviest_answer: int = 4 << 30
    lists_in_flight: int = 50

    @property
    def share_of_namespace(self) -> int:
        return max(1, self.in_flight // 3)


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``verb`` and ``resource`` are for people and metrics; ``path`` may have a query."""

    verb: str
    method: str
    path: str
    resource: str
    body: bytes | None = None
    content_type: str = _JSON

    @property
    def reads(self) -> bool:
        return self.method == "GET"

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}".strip()


class Transport:
    """One API server, seen by one controller. An async context manager; safe for many tasks of one event loop.

    All methods raise ApiError (the server said no) and NoAnswer (it said nothing).
    """

    def __init__(self, connection: Connection, controller: str, limits: ClientLimits | None = None) -> None:
        self.controller = controller
        self._agent = f"nodewright/{__version__} ({controller})"
        self._connection = connection
        self._limits = limits or ClientLimits()
        self._slots = Slots(self._limits.in_flight, self._limits.share_of_namespace)
        self._lists = asyncio.Semaphore(self._limits.lists_in_flight)
        self._stack = AsyncExitStack()
        self._requests: aiohttp.ClientSession | None = None
        self._watches: aiohttp.ClientSession | None = None
        self._random = random.Random()  # noqa: S311  (jitter)
        self._may_write: Callable[[], bool] | None = None
        self._extras: dict[str, Any] = {}
        if connection.server_name:
            self._extras["server_hostname"] = connection.server_name
        self._extras["allow_redirects"] = False
        if connection.proxy:
            self._extras["proxy"] = connection.proxy

    async def __aenter__(self) -> Self:
        context = self._connection.ssl_context()
        self._requests = await self._stack.enter_async_context(self._session(context, self._limits.in_flight))
        self._watches = await self._stack.enter_async_context(self._session(context, 0))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def connection(self) -> Connection:
        """Where the API server is. Holds secrets."""
        return self._connection

    def named(self, controller: str, agent: str = "") -> Self:
        """The same connections and limits under another name: API servers tell clients apart by their User-Agent.

        Usable as long as this client is open; not to be entered itself.
        """
        other = copy.copy(self)
        other.controller = controller
        other._agent = agent or f"nodewright/{__version__} ({controller})"
        return other

    def fenced(self, may_write: Callable[[], bool]) -> Self:
        """The same client, whose writes are refused (NotLeadingError) unless ``may_write`` at the moment of sending."""
        other = copy.copy(self)
        other._may_write = may_write
        return other

    def _session(self, context: Any, limit: int) -> aiohttp.ClientSession:
        """Watches have a session of their own: they would use up the connections of a shared one."""
        connector = aiohttp.TCPConnector(
            ssl=context if context is not None else True,
            limit=limit,
            limit_per_host=limit,
            keepalive_timeout=self._limits.keep_alive,
            socket_factory=self._connection.sockets,
        )
        timeout = aiohttp.ClientTimeout(total=self._limits.request_timeout, sock_connect=self._limits.connect_timeout)
        return aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            headers={"Accept": _JSON, "Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,  # a compressed answer can be a thousand times what it seems
        )

    async def object_of(self, call: Call) -> dict[str, Any]:
        return decoded(await self.answer(call), str(call), self._limits.heaviest_answer)

    async def answer(self, call: Call) -> bytes:
        """Send, again where that is safe."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._once(call)
            except (ApiError, NoAnswer) as error:
                wait = self._wait_before_retry(call, error, attempt)
                if wait is None:
                    raise
                why = error.reason if isinstance(error, ApiError) else "NoAnswer"
                metrics.of(metrics.KUBE_RETRIES, call.verb, why).inc()
                await asyncio.sleep(wait)

    def _wait_before_retry(self, call: Call, error: ApiError | NoAnswer, attempt: int) -> float | None:
        """Seconds to wait, or None: don't."""
        if attempt >= self._limits.attempts:
            return None
        backoff: float = self._limits.backoff * 2 ** (attempt - 1) * self._random.uniform(0.5, 1.5)
        if isinstance(error, MalformedAnswerError):
            return None
        if isinstance(error, NoAnswer):
            return backoff if call.reads or not error.ambiguous else None
        if error.code == 401 and attempt == 1 and self._connection.tokens is not None:
            self._connection.tokens.reject()
            return 0.0
        if error.code == 429:
            if call.verb == "evict":
                return None
        elif not (call.reads and error.code >= 500):
            return None
        if error.retry_after is None:
            return backoff
        if error.retry_after > self._limits.retry_after_at_most:
            return None
        return error.retry_after * self._random.uniform(1.0, 1.1)

    async def _once(self, call: Call) -> bytes:
        session = _open(self._requests)
        headers = await self._headers()
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        async with self._slots.one():
            if self._may_write is not None and not call.reads and not self._may_write():
                raise NotLeadingError(f"{call}: this process does not lead")
            if session.closed:
                raise NoAnswer(f"{call}: the connection was given up", sent=False)
            started = asyncio.get_running_loop().time()
            try:
                async with session.request(
                    call.method, self._url(call), data=call.body, headers=headers, **self._extras
                ) as response:
                    self._count(call, response.status)
                    if not 200 <= response.status < 300:
                        raise await self._refusal(call, response)
                    body = await read_body(response, self._limits.largest_answer, str(call))
            except _BROKEN as error:
                self._count(call, 0)
                sent = not isinstance(error, _NOT_SENT)
                raise NoAnswer(f"{call}: {_describe(error)}", sent=sent) from error
            metrics.of(metrics.KUBE_SECONDS, call.verb).observe(asyncio.get_running_loop().time() - started)
        return body

    async def lines(self, call: Call, seconds: int) -> AsyncGenerator[list[bytes]]:
        """Whole lines of a watch as they arrive; the first batch is empty: the server has accepted the watch.

        Ends when the server ends it, ``seconds`` at most and ``watch_silence`` on top. Raises ApiError if the watch is
        refused, NoAnswer if the connection breaks, SilenceError if nothing is heard for ``watch_silence``.
        """
        timeout = aiohttp.ClientTimeout(
            total=seconds + self._limits.watch_silence,  # a server that ends no watch, or drips, is cut off
            sock_connect=self._limits.connect_timeout,
            sock_read=self._limits.watch_silence,
        )
        session = _open(self._watches)
        accepted = False
        try:
            async with session.request(
                "GET", self._url(call), headers=await self._headers(), timeout=timeout, **self._extras
            ) as response:
                self._count(call, response.status)
                if response.status != 200:
                    raise await self._refusal(call, response)
                _must_be_plain(response, call)
                accepted, splitter = True, LineSplitter(self._limits.longest_line)
                yield []
                async for chunk in response.content.iter_any():
                    lines = splitter.feed(chunk)
                    if lines:
                        yield lines
        except (*_BROKEN, LineTooLongError) as error:
            if accepted and isinstance(error, aiohttp.SocketTimeoutError):
                raise SilenceError(f"watch of {call.resource}: silence", sent=True) from error
            raise NoAnswer(f"watch of {call.resource}: {_describe(error)}", sent=True) from error

    def _url(self, call: Call) -> URL:
        return URL(self._connection.server + call.path, encoded=True)

    async def _headers(self) -> dict[str, str]:
        headers = {"User-Agent": self._agent}
        if self._connection.tokens is not None:
            headers["Authorization"] = f"Bearer {await self._connection.tokens.token()}"
        return headers

    async def _refusal(self, call: Call, response: aiohttp.ClientResponse) -> ApiError:
        """From an answer that is none of 2xx; of a larger body than a Status has only the code counts."""
        try:
            body = await read_body(response, LARGEST_STATUS, str(call))
        except MalformedAnswerError:
            body = b""
        error = error_from_answer(response.status, body, response.headers.get("Retry-After"))
        error.asked = str(call)
        return error

    def _count(self, call: Call, code: int) -> None:
        metrics.of(metrics.KUBE_REQUESTS, self.controller, call.verb, call.resource, str(code)).inc()


def _open(session: aiohttp.ClientSession | None) -> aiohttp.ClientSession:
    if session is None:
        raise RuntimeError("KubeClient is used outside of its `async with`")
    return session


def _must_be_plain(response: aiohttp.ClientResponse, call: Call) -> None:
    if response.headers.get("Content-Encoding", "identity").strip().lower() not in {"", "identity"}:
        raise MalformedAnswerError(f"{call}: the answer is compressed, though that was not asked for")


def _describe(error: Exception) -> str:
    """In words of ours, of the system and of OpenSSL; aiohttp's about an answer would quote it."""
    if isinstance(error, aiohttp.ClientConnectorError | TimeoutError | LineTooLongError):
        return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "ServerDisconnectedError: the server cut the connection"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "ClientPayloadError: the answer ended too early or is not HTTP"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"{type(error).__name__}: the answer is not HTTP"
    if isinstance(error, OSError) and error.strerror:
        return f"{type(error).__name__}: {error.strerror}"
    return type(error).__name__
