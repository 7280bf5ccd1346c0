"""Put the parts together, start them in the right order, and stop them without leaving work half done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import structlog

from controllers.kernel.actions import Event
from controllers.kernel.refs import MACHINE
from nodewright.runtime import wiring
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.reflector import Reflector
from nodewright.runtime.executor import Hands
from nodewright.runtime.hosts.directory import HostDirectory
from nodewright.runtime.hosts.sweeper import Sweeper
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.leadership import AlwaysLeader, Leadership
from nodewright.runtime.options import OrphanHosts, RunOptions
from nodewright.runtime.recorder import EventRecorder
from nodewright.runtime.shell import Controller, Facts
from providers.base.registry import Registry

_log = structlog.get_logger("nodewright.manager")

_SLOW_START = 10.0
"""Seconds after which it is said, and said again, what the start is waiting for."""


class Manager:
    """All rooms over one API server. ``run`` once.

    The parts are public so that the command line can show them and tests can look at them.
    """

    def __init__(self, client: KubeClient, options: RunOptions, leadership: Leadership | None = None) -> None:
        self.options = options
        self.rooms = wiring.rooms() if options.rooms is None else options.rooms
        self.cache = Cache(wiring.kinds_of(self.rooms))
        self.hosts = HostDirectory(options.registry or Registry.installed(), options.hosts, options.now)
        self.reflectors = tuple(
            Reflector(client.named("cache"), self.cache, kind, options.reflector) for kind in self.cache.stores
        )
        self.controllers: list[Controller] = []
        self.started = False
        self._client = client
        self._leadership = leadership or AlwaysLeader()
        self._tasks: list[asyncio.Task[None]] = []
        self._recorders: list[EventRecorder] = []
        for room in self.rooms:
            self.controllers.append(self._controller(room))

    @property
    def ready(self) -> bool:
        """Rooms are at work on a world that is completely read."""
        return self.started and not self.problems()

    def problems(self) -> list[str]:
        """What is not current, one sentence each."""
        return [
            f"{reflector.kind.plural}: {reflector.problem or 'not read yet'}"
            for reflector in self.reflectors
            if not reflector.complete
        ]

    async def run(self, stop: asyncio.Event, ready: Callable[[], None]) -> None:
        """Until ``stop`` is set or leadership is lost. Raises whatever a background part died of (a bug)."""
        try:
            for reflector in self.reflectors:
                self._spawn(reflector.run(), f"reflect {reflector.kind.plural}")
            for recorder in self._recorders:
                self._spawn(recorder.run(), "events")
            self._spawn(self._say_what_is_missing(), "slow start")
            if self.options.orphan_hosts is not OrphanHosts.OFF and any(room.kind == MACHINE for room in self.rooms):
                removes = self.options.orphan_hosts is OrphanHosts.DELETE
                self._spawn(Sweeper(self.cache, self.hosts, self.options.now, removes).run(), "orphan hosts")
            if await self._unless_stopped(self._start(), stop):
                self.started = True
                _log.info("controllers are running", rooms=[room.name for room in self.rooms])
                ready()
                await self._unless_stopped(self._leadership.lost.wait(), stop)
        finally:
            self.started = False
            await self._stop()

    async def _start(self) -> None:
        for reflector in self.reflectors:
            await reflector.synced.wait()
        await self._leadership.acquire()
        for controller in self.controllers:
            controller.start()

    async def _stop(self) -> None:
        """Rounds first, then provider calls, then Events, then the watches."""
        grace = self.options.grace
        await asyncio.gather(*(controller.stop(grace) for controller in self.controllers))
        await self.hosts.close(grace)
        await asyncio.gather(*(recorder.flush(min(grace, 2.0)) for recorder in self._recorders))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._leadership.release()

    async def _unless_stopped(self, work: Coroutine[Any, Any, Any], stop: asyncio.Event) -> bool:
        """Await ``work``; False if ``stop`` came first. A background task that ends by itself has failed."""
        working: asyncio.Task[Any] = asyncio.create_task(work)
        stopping: asyncio.Task[Any] = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({working, stopping, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
            for task in self._tasks:
                if task.done():
                    task.result()
                    raise RuntimeError(f"background task {task.get_name()!r} ended")
            if working.done():
                working.result()
                return not stop.is_set()
            return False
        finally:
            working.cancel()
            stopping.cancel()
            await asyncio.gather(working, stopping, return_exceptions=True)

    async def _say_what_is_missing(self) -> None:
        while True:
            await asyncio.sleep(_SLOW_START)
            problems = self.problems()
            if problems:
                _log.warning("not everything is read", missing=problems)

    def _controller(self, room: Any) -> Controller:
        client = self._client.named(room.name)
        recorder = EventRecorder(client, f"nodewright-{room.name}", self.options.now)
        self._recorders.append(recorder)
        record: Callable[[Event], None] = recorder.record
        hands = Hands(client, self.cache, self.hosts.submit, record, self.options.now)
        return Controller(room, Facts(self.cache, self.hosts), hands, self.options.room)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))


async def run_controllers(
    connection: Connection,
    options: RunOptions,
    *,
    stop: asyncio.Event,
    ready: asyncio.Event | Callable[[], None] | None = None,
    on_manager: Callable[[Manager], None] | None = None,
) -> None:
    """Run all rooms against one API server until ``stop`` is set.

    ``ready`` is set, or called, once every kind is read and the rooms are at work. ``on_manager`` is handed the Manager
    before it starts (for a display of queues and caches). An API server that is not there yet is waited for.

    Raises ConfigurationError if the connection's certificates can't be used.
    """
    announce = ready.set if isinstance(ready, asyncio.Event) else ready or _nobody
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(KubeClient(connection, "manager", options.client))
        manager = Manager(client, options)
        if on_manager is not None:
            on_manager(manager)
        if options.simulated_kubelets:
            from nodewright.runtime.kubelets import Kubelets, all_worlds  # noqa: PLC0415  (only if it is wanted)

            worlds = options.simulated_worlds or all_worlds
            await stack.enter_async_context(Kubelets(client, worlds, options.now))
        await manager.run(stop, announce)


def _nobody() -> None:
    return None
