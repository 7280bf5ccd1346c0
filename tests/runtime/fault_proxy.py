"""A proxy between controllers and an API server that spoils what passes, by a seed, until its faults are used up.

Requests are refused (429 with Retry-After, 409, 500, and 410 for lists that go on) or lose their answer after the
server has acted on them. Watches are refused with 410, end cleanly after a few bytes, break in the middle of a line,
say 410 in an ERROR event, or trickle.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

import aiohttp
import orjson
from aiohttp import web
from yarl import URL

from nodewright.runtime.kube.connection import Connection
from tests.runtime.stub_server import status

WATCH_FAULTS = ("clean end", "cut", "410", "410 event", "slow", "clean end", "cut")
_REQUEST_FAULTS = ("429", "429", "500", "409", "lost answer")
_HOP = ("Content-Length", "Transfer-Encoding", "Content-Encoding", "Connection", "Host")


@dataclass
class FaultProxy:
    """``left``: faults of requests still to come. ``done`` counts what happened."""

    target: Connection
    random: Random
    left: int
    share: float = 0.3
    done: Counter[str] = field(default_factory=Counter)
    url: str = ""
    _watches: Counter[str] = field(default_factory=Counter)

    @property
    def connection(self) -> Connection:
        """How controllers reach the server through it."""
        return Connection(self.url)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[FaultProxy]:
        connector = aiohttp.TCPConnector(ssl=self.target.ssl_context() or True, limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as self._session:
            runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=1)
            await runner.setup()
            try:
                site = web.TCPSite(runner, "127.0.0.1", 0)
                await site.start()
                self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
                yield self
            finally:
                await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name not in _HOP}
        if self.target.tokens is not None:
            headers["Authorization"] = f"Bearer {await self.target.tokens.token()}"
        if "watch" in request.query:
            return await self._watch(request, headers)
        fault = self._fault(request)
        if fault in ("429", "500", "409", "410"):
            return self._refusal(fault)
        async with self._session.request(
            request.method, self._url(request), data=await request.read(), headers=headers
        ) as answer:
            body = await answer.read()
        if fault == "lost answer":
            _hang_up(request)
        kept = {name: value for name, value in answer.headers.items() if name not in _HOP}
        return web.Response(status=answer.status, body=body, headers=kept)

    def _fault(self, request: web.BaseRequest) -> str:
        if not self.left or self.random.random() > self.share:
            return ""
        fault = "410" if "continue" in request.query else self.random.choice(_REQUEST_FAULTS)
        if request.method == "GET" and fault == "409":
            return ""
        self.left -= 1
        self.done[fault] += 1
        return fault

    def _refusal(self, fault: str) -> web.Response:
        reason = {"429": "TooManyRequests", "500": "InternalError", "409": "Conflict", "410": "Expired"}[fault]
        headers = {"Retry-After": "1" if self.done["429"] == 1 else "0"} if fault == "429" else {}
        body = orjson.dumps(status(int(fault), reason))
        return web.Response(status=int(fault), body=body, content_type="application/json", headers=headers)

    async def _watch(self, request: web.BaseRequest, headers: dict[str, str]) -> web.StreamResponse:
        """The faults of a kind's watches come in their order, so that each is seen whatever the seed."""
        number = self._watches[request.path]
        self._watches[request.path] += 1
        fault = WATCH_FAULTS[number] if number < len(WATCH_FAULTS) else ""
        if fault == "410":
            self.done["watch 410"] += 1
            return self._refusal("410")
        async with self._session.get(self._url(request), headers=headers) as answer:
            response = web.StreamResponse(status=answer.status)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                if not await self._pass_on(chunk, fault, request, response):
                    break
            return response

    async def _pass_on(self, chunk: bytes, fault: str, request: web.BaseRequest, response: web.StreamResponse) -> bool:
        """Whether the stream goes on."""
        if not fault:
            await response.write(chunk)
            return True
        self.done[f"watch {fault}"] += 1
        first = chunk.partition(b"\n")[0] + b"\n"
        if fault == "slow":
            for start in range(0, len(chunk), 200):
                await response.write(chunk[start : start + 200])
                await asyncio.sleep(0)
            return True
        if fault == "clean end":
            await response.write(first)
        elif fault == "410 event":
            await response.write(orjson.dumps({"type": "ERROR", "object": status(410, "Expired")}) + b"\n")
        else:
            await response.write(first[: len(first) // 2])
            _hang_up(request)
        return False

    def _url(self, request: web.BaseRequest) -> URL:
        return URL(self.target.server + request.raw_path, encoded=True)


def _hang_up(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
