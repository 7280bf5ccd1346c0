"""The whole gateway: watches, a picture of the groups, and the server, until it is told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import structlog

from controllers.autoscaler.groups import Filter
from nodewright.gateways.externalgrpc.changes import Changes
from nodewright.gateways.externalgrpc.fleet import KINDS, Fleet
from nodewright.gateways.externalgrpc.reads import ReadOptions, Reads
from nodewright.gateways.externalgrpc.scaler import NAME, Scaler
from nodewright.gateways.externalgrpc.server import GrpcServer, ServerOptions
from nodewright.runtime import census
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.reflector import Reflector, ReflectorOptions
from nodewright.runtime.kube.client import ClientLimits, KubeClient
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.observability import Checks
from nodewright.runtime.options import utc_now
from nodewright.runtime.recorder import EventRecorder

_log = structlog.get_logger("nodewright.externalgrpc")


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    only: Filter = field(default_factory=Filter)
    reads: ReadOptions = field(default_factory=ReadOptions)
    server: ServerOptions = field(default_factory=ServerOptions)
    client: ClientLimits = field(default_factory=ClientLimits)
    reflector: ReflectorOptions = field(default_factory=ReflectorOptions)


class Gateway:
    """Made in a running event loop; ``run`` once. It is also what is shown by health and metrics."""

    def __init__(self, connection: Connection, options: GatewayOptions) -> None:
        self._connection = connection
        self._options = options
        self.cache = Cache(KINDS)
        self.fleet = Fleet(self.cache, utc_now, options.only)
        self._reflectors: tuple[Reflector, ...] = ()
        self._serving = False

    def readiness(self) -> Checks:
        watches = {
            f"watch-{reflector.kind.plural}": "" if reflector.complete else reflector.problem or "not read yet"
            for reflector in self._reflectors
        }
        return {"server": "" if self._serving else "not serving yet", **watches}

    def families(self) -> Iterable[object]:
        staleness = {reflector.kind: reflector.staleness for reflector in self._reflectors}
        return census.families(census.Scene(self.cache, {}, staleness, utc_now()))

    async def run(self, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
        """Until ``stop`` is set. ``ready`` is told the address once everything is read and calls are answered.

        Raises OSError if the port can't be had, or whatever a background part died of (a bug).
        """
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(KubeClient(self._connection, NAME, self._options.client))
            recorder = EventRecorder(client, f"nodewright-{NAME}", utc_now)
            self._reflectors = tuple(
                Reflector(client.named("cache"), self.cache, kind, self._options.reflector) for kind in KINDS
            )
            tasks = [asyncio.create_task(reflector.run(), name=reflector.kind.plural) for reflector in self._reflectors]
            tasks.append(asyncio.create_task(recorder.run(), name="events"))
            stack.push_async_callback(_end, tasks)
            stack.push_async_callback(recorder.flush, 2.0)
            if not await _unless(stop, self._read(), tasks):
                return
            scaler = Scaler(client, self.cache, self.fleet, recorder)
            server = GrpcServer(
                self._options.server, Reads(self.fleet, self._options.reads), Changes(self.fleet, scaler)
            )
            await stack.enter_async_context(server)
            self._serving = True
            _log.info("serving the Cluster Autoscaler", address=server.address, groups=len(self.fleet.groups()))
            ready(server.address)
            await _unless(stop, asyncio.Event().wait(), tasks)
            self._serving = False

    async def _read(self) -> None:
        for reflector in self._reflectors:
            await reflector.synced.wait()


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, object], tasks: list[asyncio.Task[None]]) -> bool:
    """Await ``work``; False if ``stop`` came first. A background task that ends by itself has failed."""
    working = asyncio.create_task(work)
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
                raise RuntimeError(f"background task {task.get_name()!r} ended")
        return bool(working.done() and not stop.is_set())
    finally:
        working.cancel()
        stopping.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
