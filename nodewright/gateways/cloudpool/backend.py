"""The cloudpool that a proxy stands in front of, asked for what the proxy itself needs of it."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

import aiohttp
import orjson
from yarl import URL

from controllers.cloudpool.messages import MessageError, PoolMachine, PoolSize, read_pool, read_size

_MOST_BYTES = 64 * 1024 * 1024
_QUOTED = 300
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """``url`` without a trailing slash; ``timeout``: seconds for a request. ``tls`` None: as the system trusts.

    ``login``: the value of the header Authorization, "" for none.
    """

    url: str
    timeout: float = 300.0
    tls: ssl.SSLContext | None = None
    login: str = field(default="", repr=False)


class BackendError(Exception):
    """``code`` 0: no answer, and then it is not known whether it acted."""

    def __init__(self, why: str, code: int = 0) -> None:
        super().__init__(why)
        self.code = code


class Backend:
    """An async context manager. Its methods raise BackendError."""

    def __init__(self, options: BackendOptions) -> None:
        self.options = options
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Backend:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self.options.tls or True, limit=0),
            timeout=aiohttp.ClientTimeout(total=self.options.timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    @property
    def session(self) -> aiohttp.ClientSession:
        """For requests that are passed on; nothing is added to them."""
        if self._session is None:
            raise RuntimeError("Backend is used outside of its `async with`")
        return self._session

    def url_of(self, target: str) -> URL:
        """``target``: path and query in their normal form. The login goes to the configured host only.

        Raises ValueError if the result would be on another host.
        """
        base = URL(self.options.url)
        found = URL(self.options.url.rstrip("/") + target, encoded=True)
        if not target.startswith("/") or found.origin() != base.origin() or found.user is not None:
            raise ValueError("the request is not for the backend's host")
        return found

    async def pool(self) -> tuple[PoolMachine, ...]:
        return await self._read("/pool", read_pool)

    async def trouble(self, within: float) -> str:
        """Why nobody could be asked now, "" if it answers as a pool does."""
        try:
            async with asyncio.timeout(within):
                await self.size()
        except TimeoutError:
            return f"GET /pool/size: no answer within {within:g} s"
        except BackendError as error:
            return str(error)
        return ""

    async def size(self) -> PoolSize:
        return await self._read("/pool/size", read_size)

    async def set_size(self, desired: int) -> None:
        await self._ask("POST", "/pool/size", {"desiredSize": desired})

    async def terminate(self, machine: str, decrement: bool) -> None:
        await self._ask("POST", "/pool/terminate", {"machineId": machine, "decrementDesiredSize": decrement})

    async def _read(self, path: str, reader: Callable[[Any], _T]) -> _T:
        body = await self._ask("GET", path)
        try:
            return reader(orjson.loads(body))
        except (orjson.JSONDecodeError, MessageError) as error:
            raise BackendError(f"GET {path}: the answer can't be read: {error}", 200) from error

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
        headers = {"Accept": "application/json"}
        if self.options.login:
            headers["Authorization"] = self.options.login
        if body is not None:
            headers["Content-Type"] = "application/json"
        data = orjson.dumps(body) if body is not None else None
        request = self.session.request(method, self.url_of(path), data=data, headers=headers, allow_redirects=False)
        try:
            async with request as response:
                content = await _content(response, f"{method} {path}")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise BackendError(f"{method} {path}: {described(error, self.options.timeout)}") from error
        if response.status // 100 != 2:
            text = content[:_QUOTED].decode("utf-8", "replace").strip()
            raise BackendError(f"{method} {path}: it answered {response.status}: {text}", response.status)
        return bytes(content)


async def _content(response: aiohttp.ClientResponse, title: str) -> bytearray:
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > _MOST_BYTES:
            raise BackendError(f"{title}: the answer is larger than {_MOST_BYTES} bytes", 200)
    return content


def described(error: Exception, timeout: float) -> str:
    """Why there was no answer, for people."""
    if isinstance(error, asyncio.TimeoutError):
        return f"no answer within {timeout:g} s"
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
        number = error.os_error.errno or 0
        why = os.strerror(number) if number > 0 else error.os_error.strerror or str(error.os_error)
        return f"can't connect to {error.host}:{error.port}: {why}"
    return str(error) or type(error).__name__
