"""The whole gateway: watches, a snapshot of the groups, and the server, until it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import structlog

from controllers.scaling.node_group import Filter
from nodewright.gateways.externalgrpc.changes import Changes
from nodewright.gateways.externalgrpc.fleet import KINDS, Fleet
from nodewright.gateways.externalgrpc.reads import ReadOptions, Reads
from nodewright.gateways.externalgrpc.scaler import NAME, Scaler
from nodewright.gateways.externalgrpc.server import GrpcServer, ServerOptions
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.reflector import Reflector, ReflectorOptions
from nodewright.runtime.fleet import collectors
from nodewright.runtime.hosts.credentials import secrets_by
from nodewright.runtime.hosts.directory import HostDirectory
from nodewright.runtime.hosts.objects import objects_by
from nodewright.runtime.kube.client import ClientLimits, KubeClient
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.settings.options import utc_now
from nodewright.runtime.telemetry.observability import Checks
from nodewright.runtime.writes.recorder import EventRecorder
from providers.base.registry import Registry

_log = structlog.get_logger("nodewright.externalgrpc")


SHAPES_WITHIN = 10.0
"""Seconds for providers to say at the start what hosts are like; who is slower is heard later."""
BETWEEN_CALLS = ReflectorOptions(batch=4, pause=0.001)
"""Many Machines may change at once; no call waits for more than a few of them. 2000 a second can still be taken in."""


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """``providers``: those that are asked what hosts would be like; None: nobody is."""

    only: Filter = field(default_factory=Filter)
    reads: ReadOptions = field(default_factory=ReadOptions)
    server: ServerOptions = field(default_factory=ServerOptions)
    client: ClientLimits = field(default_factory=ClientLimits)
    reflector: ReflectorOptions = BETWEEN_CALLS
    providers: Registry | None = None


class Gateway:
    """Made in a running event loop; ``run`` once. It is also what is shown by health and metrics."""

    def __init__(self, connection: Connection, options: GatewayOptions) -> None:
        self._connection = connection
        self._options = options
        self.cache = Cache(KINDS)
        found = options.providers
        self._hosts = HostDirectory(found, now=utc_now, may_call=lambda: False) if found is not None else None
        shapes = self._hosts.shape if self._hosts is not None else None
        self.fleet = Fleet(self.cache, utc_now, options.only, shapes)
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
        return collectors.families(collectors.Scene(self.cache, {}, staleness, utc_now()))

    async def run(self, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
        """Until ``stop`` is set. ``ready`` is called with the address once everything is read and calls are answered.

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
            if self._hosts is not None:
                self._hosts.read_secrets_by(secrets_by(client.named("hosts")))
                self._hosts.read_objects_by(objects_by(client.named("hosts")))
                stack.push_async_callback(self._hosts.close, 0.0)
            if not await _unless(stop, self._read(), tasks):
                return
            scaler = Scaler(client, self.cache, self.fleet, recorder)
            changes = Changes(self.fleet, scaler)
            stack.push_async_callback(changes.close)
            server = GrpcServer(self._options.server, Reads(self.fleet, self._options.reads), changes)
            await stack.enter_async_context(server)
            self._serving = True
            _log.info("serving the Cluster Autoscaler", address=server.address, groups=len(self.fleet.groups()))
            ready(server.address)
            await _unless(stop, asyncio.Event().wait(), tasks)
            self._serving = False

    async def _read(self) -> None:
        for reflector in self._reflectors:
            await reflector.synced.wait()
        if self._hosts is not None:
            for group in self.fleet.groups().values():
                body = self.fleet.body(group)
                if body is not None:
                    self.fleet.shape(body)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hosts.shapes_are_known(), SHAPES_WITHIN)


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
