"""Pass a request on as it is, and its answer back as it is, both while they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import aiohttp
import structlog
from aiohttp import hdrs, web
from multidict import CIMultiDict

from nodewright.gateways.cloudpool.backend import Backend, described
from nodewright.gateways.cloudpool.operations import OperationError
from nodewright.gateways.cloudpool.targets import Target

_log = structlog.get_logger("nodewright.cloudpool")

_FAILED = "failed to forward request to backend: failed to complete backend cloudpool request"
_HOP_BY_HOP = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    }
)  # fmt: skip
_OVERRIDES = frozenset(
    {"x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url"}
)
"""They make some servers take a request for another one than was decided on."""
_NOT_PASSED = _HOP_BY_HOP | _OVERRIDES | {"host"}


async def forward(request: web.Request, target: Target, backend: Backend, read_timeout: float) -> web.StreamResponse:
    """Raises OperationError: 502 if the backend does not answer, 408 or 400 if the request itself does not arrive.

    Once the answer has begun, the connection breaks.
    """
    url = backend.url_of(target.encoded)
    body = _Body(request, read_timeout) if request.body_exists else None
    pending = backend.session.request(
        request.method, url, headers=_passed_on(request, backend), data=body and body.arriving(), allow_redirects=False
    )
    answer: web.StreamResponse | None = None
    try:
        async with pending as response:
            answer = web.StreamResponse(
                status=response.status, reason=response.reason, headers=_without(response.headers, _HOP_BY_HOP)
            )
            await answer.prepare(request)
            async for chunk in response.content.iter_any():
                await answer.write(chunk)
            await answer.write_eof()
    except (aiohttp.ClientError, OSError, ValueError) as error:
        why = described(error, backend.options.timeout)
        if answer is None or not answer.prepared:
            if body is not None and body.fault is not None:
                raise body.fault from error
            raise OperationError(502, _FAILED, why) from error
        _log.warning("an answer broke off", path=request.path, error=why)
        if request.transport is not None:
            request.transport.abort()
    assert answer is not None
    return answer


class _Body:
    """All of it has to arrive within that many seconds. ``fault``: what to answer the client whose body did not."""

    def __init__(self, request: web.Request, within: float) -> None:
        self._content = request.content
        self._within = within
        self.fault: OperationError | None = None

    async def arriving(self) -> AsyncIterator[bytes]:
        """Raises ConnectionError if it does not: the request to the backend is broken off."""
        until = asyncio.get_running_loop().time() + self._within
        while True:
            try:
                async with asyncio.timeout_at(until):
                    chunk = await self._content.readany()
            except TimeoutError:
                self.fault = OperationError(408, f"the request was not read within {self._within:g} s")
            except Exception as error:  # framing that is none is an error of several kinds in aiohttp
                self.fault = OperationError(400, "the body of the request can't be read", type(error).__name__)
            if self.fault is not None:
                raise ConnectionAbortedError("the body of the request did not arrive")
            if not chunk:
                return
            yield chunk


def _passed_on(request: web.Request, backend: Backend) -> CIMultiDict[str]:
    headers = _without(request.headers, _NOT_PASSED)
    if request.remote:
        came_by = headers.get(hdrs.X_FORWARDED_FOR)
        headers[hdrs.X_FORWARDED_FOR] = f"{came_by}, {request.remote}" if came_by else request.remote
    if backend.options.login:
        headers[hdrs.AUTHORIZATION] = backend.options.login
    return headers


def _without(headers: Mapping[str, str], left_out: frozenset[str]) -> CIMultiDict[str]:
    """Those named by ``Connection`` are for the next hop only, too."""
    found: CIMultiDict[str] = CIMultiDict(headers)
    named = {name.strip().lower() for value in found.getall("Connection", []) for name in value.split(",")}
    for name in [name for name in found if name.lower() in left_out | named]:
        found.popall(name, None)
    return found
