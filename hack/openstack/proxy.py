"""A proxy before Nova and Neutron that counts requests and lets some go wrong, by a seed.

``async with FaultyProxy({"compute": url, "network": url}, faults) as proxy``; ``proxy.overrides`` go to clouds.yaml.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Self
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web

_HOP_BY_HOP = {"connection", "content-length", "content-encoding", "host", "keep-alive", "transfer-encoding"}
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Faults:
    """Shares of requests. ``silent``: carried out and never answered (until the client gives up); ``cut_after``:
    carried out, then the connection is cut; ``cut_before``: cut without having been passed on; the rest answer at once
    with 500, 409 or 429, half of the 500s after the request was carried out.

    ``planned``: what befalls the first requests of a kind (as they are counted), in order, before anything is drawn;
    ``refused`` is known there too: 500, and not carried out.
    """

    silent: float = 0.0
    cut_after: float = 0.0
    cut_before: float = 0.0
    internal: float = 0.0
    conflict: float = 0.0
    too_many: float = 0.0
    seed: int = 0
    planned: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def draw(self, random: Random) -> str:
        roll = random.random()
        for name in ("silent", "cut_after", "cut_before", "internal", "conflict", "too_many"):
            roll -= getattr(self, name)
            if roll < 0:
                return name
        return ""


class FaultyProxy:
    """``counted`` has each request as ``POST compute /servers``, ids left out; ``befell`` what went wrong how often."""

    def __init__(self, targets: Mapping[str, str], faults: Faults, silence: float = 40.0) -> None:
        self.counted: Counter[str] = Counter()
        self.befell: Counter[str] = Counter()
        self.faults = faults
        self._targets = targets
        self._silence = silence
        self._random = Random(faults.seed)
        self._planned = {what: list(befalls) for what, befalls in faults.planned.items()}
        self._runners: list[web.AppRunner] = []
        self._client: aiohttp.ClientSession | None = None
        self.overrides: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        self._client = aiohttp.ClientSession(auto_decompress=True)
        for service, target in self._targets.items():
            app = web.Application(client_max_size=1 << 24)
            app.router.add_route("*", "/{tail:.*}", partial(self._pass_on, service, target))
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self._runners.append(runner)
            port = runner.addresses[0][1]
            self.overrides[f"{service}_endpoint_override"] = f"http://127.0.0.1:{port}{urlsplit(target).path}"
        return self

    async def __aexit__(self, *_exception: object) -> None:
        for runner in self._runners:
            await runner.shutdown()
            await runner.cleanup()
        if self._client is not None:
            await self._client.close()

    @property
    def requests(self) -> int:
        return sum(self.counted.values())

    async def _pass_on(self, service: str, target: str, request: web.Request) -> web.StreamResponse:
        prefix = urlsplit(target).path
        what = f"{request.method} {service} {_ID.sub('{id}', request.path.removeprefix(prefix))}"
        self.counted[what] += 1
        planned = self._planned.get(what)
        fault = planned.pop(0) if planned else self.faults.draw(self._random)
        self.befell[fault or "nothing"] += 1
        body = await request.read()
        if fault == "cut_before":
            return self._cut(request)
        if fault in {"conflict", "too_many", "refused"} or (fault == "internal" and self._random.random() < 0.5):
            return self._refusal(fault)
        answer = await self._ask(target, request, body)
        if fault == "silent":
            await asyncio.sleep(self._silence)
            return self._cut(request)
        if fault == "cut_after":
            return self._cut(request)
        return self._refusal(fault) if fault == "internal" else answer

    async def _ask(self, target: str, request: web.Request, body: bytes) -> web.Response:
        assert self._client is not None
        where = urlsplit(target)
        url = f"{where.scheme}://{where.netloc}{request.path_qs}"
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _HOP_BY_HOP}
        async with self._client.request(request.method, url, headers=headers, data=body or None) as answer:
            kept = {key: value for key, value in answer.headers.items() if key.lower() not in _HOP_BY_HOP}
            return web.Response(status=answer.status, headers=kept, body=await answer.read())

    @staticmethod
    def _refusal(fault: str) -> web.Response:
        status = {"internal": 500, "refused": 500, "conflict": 409, "too_many": 429}[fault]
        headers = {"Retry-After": "1"} if fault == "too_many" else {}
        return web.json_response({"error": {"message": f"the proxy says {status}"}}, status=status, headers=headers)

    @staticmethod
    def _cut(request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()
