"""When a kind counts as read, and when no longer: a quiet server is a sound one, a lost one is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from controllers.kernel.refs import MACHINE, Kind
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.reflector import Gap, Reflector, ReflectorOptions
from nodewright.runtime.kube.client import Page
from nodewright.runtime.kube.errors import NoAnswer, SilenceError
from tests.runtime.virtual_time import virtual_time


class Server:
    """Quiet, or lost."""

    def __init__(self) -> None:
        self.lost = False
        self.lists = self.watches = 0

    async def list_page(self, kind: Kind, limit: int = 500, continue_: str = "", namespace: str = "") -> Page:
        self._answer()
        self.lists += 1
        return Page([], "7", "")

    async def watch(self, kind: Kind, resource_version: str, seconds: int = 300) -> AsyncIterator[list[dict[str, Any]]]:
        self._answer()
        self.watches += 1
        yield []
        for _ in range(100):
            await asyncio.sleep(1)
            self._answer()
        raise SilenceError("silence", sent=True)

    def _answer(self) -> None:
        if self.lost:
            raise NoAnswer("no route", sent=False)


async def _started(server: Server, gap: Gap | None = None) -> tuple[Reflector, asyncio.Task[None]]:
    options = ReflectorOptions(stale_after=180, longest_backoff=30)
    reflector = Reflector(server, Cache([MACHINE]), MACHINE, options, gap)
    task = asyncio.create_task(reflector.run())
    await reflector.synced.wait()
    return reflector, task


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@virtual_time
async def test_a_kind_that_never_changes_stays_complete_and_is_not_listed_again() -> None:
    server = Server()
    reflector, task = await _started(server)
    for _ in range(1000):
        await asyncio.sleep(10)
        assert reflector.complete
    assert server.lists == 1
    assert server.watches < 120
    await _end(task)


@virtual_time
async def test_a_server_that_is_lost_for_long_makes_the_kind_incomplete_until_it_is_back() -> None:
    server = Server()
    reflector, task = await _started(server)
    server.lost = True
    await asyncio.sleep(60)
    assert reflector.complete, "a short outage is no reason to stop"
    assert "no route" in reflector.problem
    await asyncio.sleep(180)
    assert not reflector.complete
    server.lost = False
    await asyncio.sleep(60)
    assert reflector.complete
    assert reflector.problem == ""
    await _end(task)


@virtual_time
async def test_an_outage_is_told_from_a_short_interruption() -> None:
    server = Server()
    reflector, task = await _started(server)
    server.lost = True
    await asyncio.sleep(5)
    server.lost = False
    await asyncio.sleep(60)
    assert reflector.current_for == float("inf"), "nobody's clocks begin anew for that"
    server.lost = True
    await asyncio.sleep(40)
    assert reflector.current_for is None
    assert reflector.complete, "what is known may still be looked at"
    server.lost = False
    await asyncio.sleep(300)
    assert 240 < (reflector.current_for or 0) <= 300
    await _end(task)


@virtual_time
async def test_an_outage_is_remembered_by_the_next_connection() -> None:
    server = Server()
    first, task = await _started(server)
    server.lost = True
    await asyncio.sleep(100)
    await _end(task)
    server.lost = False
    second, task = await _started(server, first.gap)
    assert second.current_for == 0, "it was an outage until the second one's first list"
    await asyncio.sleep(10)
    await _end(task)
    third, task = await _started(server, second.gap)
    assert third.current_for == 10, "a new connection is no outage by itself"
    await _end(task)
