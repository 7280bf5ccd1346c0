"""The proxy in front of a cloudpool: two requests are taken over, all others pass."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType

import orjson
from aiohttp import web

from controllers.cloudpool.messages import desired_size_of, dismissal_of
from controllers.kernel.memory import digest
from nodewright.gateways.cloudpool import listener as guarding
from nodewright.gateways.cloudpool.backend import Backend, BackendOptions
from nodewright.gateways.cloudpool.evacuator import Evacuator, EvacuatorOptions
from nodewright.gateways.cloudpool.forwarding import forward
from nodewright.gateways.cloudpool.listener import ROUTE, TARGET, ListenerOptions, RequestGuard, read_body
from nodewright.gateways.cloudpool.openapi import document
from nodewright.gateways.cloudpool.operations import OperationError, Operations
from nodewright.gateways.cloudpool.scaler import READS, Scaler, ScalerOptions
from nodewright.gateways.cloudpool.targets import bypasses
from nodewright.gateways.cloudpool.watching import Watching
from nodewright.runtime.election.leadership import AlwaysLeader, HeldElsewhereError, Leadership
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.settings.options import utc_now
from nodewright.runtime.telemetry.observability import Checks

OWN = "/.nodewright"
"""Below this the proxy itself answers; cloudpools have nothing there."""


@dataclass(frozen=True, slots=True)
class ProxyOptions:
    """Times in seconds."""

    backend: BackendOptions
    listener: ListenerOptions = field(default_factory=ListenerOptions)
    scaler: ScalerOptions = field(default_factory=ScalerOptions)
    drain_timeout: float = 600.0


class CloudpoolProxy:
    """An async context manager; see ``url``. ``client`` is an open client of the cluster."""

    def __init__(self, client: KubeClient, options: ProxyOptions, leadership: Leadership | None = None) -> None:
        self._leadership = leadership or AlwaysLeader()
        self._options = options
        self._watching = Watching(client.fenced(lambda: self._leadership.held), READS, utc_now)
        self._backend = Backend(options.backend)
        # By what it stands in front of: the next process for the same pool finds what this one left over.
        evacuation = EvacuatorOptions(digest(options.backend.url), options.drain_timeout, options.scaler.api_timeout)
        evacuator = Evacuator(self._watching, self._backend, evacuation)
        self._scaler = Scaler(evacuator, options.scaler, Operations(self._why_not))
        self._leading = asyncio.Event()
        self._stack = AsyncExitStack()
        self.url = ""

    async def __aenter__(self) -> CloudpoolProxy:
        guard = RequestGuard(self._options.listener, "cloudpool-proxy")
        app = web.Application(client_max_size=guarding.MOST_BYTES, middlewares=[guard.middleware])
        app.router.add_route("*", "/{path:.*}", self._route)
        await self._stack.enter_async_context(self._backend)
        await self._stack.enter_async_context(self._watching)
        self.url = await guarding.open_listener(app, self._options.listener, self._stack)
        sweeping = asyncio.create_task(self._sweep(), name="cloudpool sweep")
        self._stack.callback(sweeping.cancel)
        self._stack.push_async_callback(self._scaler.operations.close, "the proxy is being stopped")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def readiness(self) -> Checks:
        return {**self._watching.problems(), "leader": self._why_not()}

    async def until_it_leads(self, unless: asyncio.Event, seconds: float) -> None:
        """Wait until this process leads, until ``unless`` is set, or for so long."""
        waiting = [asyncio.create_task(event.wait()) for event in (self._leading, unless, self._leadership.lost)]
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()

    async def trouble(self, within: float) -> str:
        """Why the pool behind it can't be asked now, "" if it can."""
        return await self._backend.trouble(within)

    def families(self) -> tuple[object, ...]:
        """Nothing is counted only when asked."""
        return ()

    async def _sweep(self) -> None:
        try:
            await self._leadership.acquire()
        except HeldElsewhereError:
            return  # the leadership is lost, and says why
        self._leading.set()
        await self._scaler.sweep_for_ever()

    async def _route(self, request: web.Request) -> web.StreamResponse:
        target = request[TARGET]
        path = target.path
        if path.startswith(OWN + "/"):
            request[ROUTE] = "own"
            return self._own(path)
        if request.method == "POST" and path == "/pool/size":
            request[ROUTE] = "set size"
            size = desired_size_of(await read_body(request, self._options.listener))
            self._leads()
            await self._scaler.set_size(size)
            return web.Response()
        if request.method == "POST" and path == "/pool/terminate":
            request[ROUTE] = "terminate"
            desired = dismissal_of(await read_body(request, self._options.listener))
            self._leads()
            await self._scaler.terminate(desired.machine, desired.decrement)
            return web.Response()
        request[ROUTE] = "forwarded"
        if why := bypasses(request.method, target):
            raise OperationError(403, f"{request.method} {path} is not passed on: {why}", "ask for it below /pool")
        return await forward(request, target, self._backend, self._options.listener.read_timeout)

    def _why_not(self) -> str:
        return "" if self._leadership.held else "another process holds the Lease"

    def _leads(self) -> None:
        refusal = self._why_not()
        if refusal:
            raise OperationError(503, refusal, "ask the one that is ready")

    def _own(self, path: str) -> web.Response:
        if path == f"{OWN}/status":
            return web.Response(body=orjson.dumps(self._scaler.status()), content_type="application/json")
        if path == f"{OWN}/openapi.json":
            return web.Response(body=orjson.dumps(document()), content_type="application/json")
        raise web.HTTPNotFound
