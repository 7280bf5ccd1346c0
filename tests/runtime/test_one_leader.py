"""However slow the network, however wrong the clocks and whoever dies: never two leaders, and in the end one.

Candidates contend for one Lease in virtual time. Requests and answers take long or get lost, clocks are off by a day
and run up to a tenth too fast or too slow, the time of day stands still, and leaders vanish without a word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from controllers.kernel.refs import Key, Kind, Obj, Ref
from nodewright.runtime.election.leadership import LeaseLeadership
from nodewright.runtime.election.lease import Terms
from nodewright.runtime.election.lease_options import LeaseOptions
from nodewright.runtime.kube.errors import ApiError, NoAnswer
from tests.runtime.virtual_time import VirtualTimeLoop, now

TERMS = Terms()
CANDIDATES = 3
ROUGH_SECONDS, CALM_SECONDS = 600.0, 120.0
GRAIN = 0.25


class Server:
    """One Lease with optimistic locking, as an API server keeps it."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0

    def get(self) -> dict[str, Any]:
        if self.lease is None:
            raise ApiError(404, "NotFound", "no lease")
        return self.lease

    def create(self, body: Obj) -> dict[str, Any]:
        if self.lease is not None:
            raise ApiError(409, "AlreadyExists", "there is one")
        return self._store({**body, "metadata": {**body["metadata"], "uid": "u"}})

    def patch(self, patch: Mapping[str, Any], version: str) -> dict[str, Any]:
        lease = self.get()
        if version != lease["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "changed meanwhile")
        return self._store({**lease, "spec": {**lease["spec"], **patch["spec"]}})

    def _store(self, lease: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(self.version)}}
        return self.lease


class Line:
    """One candidate's way to the server, with its bad luck (None: none any more)."""

    def __init__(self, server: Server, luck: Random) -> None:
        self._server = server
        self.luck: Random | None = luck

    async def get(self, kind: Kind, key: Key) -> dict[str, Any]:
        return await self._ask(self._server.get)

    async def create(self, kind: Kind, body: Obj) -> dict[str, Any]:
        return await self._ask(lambda: self._server.create(body))

    async def merge_patch(
        self, target: Ref, patch: Mapping[str, Any], *, subresource: str = "", resource_version: str = ""
    ) -> dict[str, Any]:
        return await self._ask(lambda: self._server.patch(patch, resource_version))

    async def _ask(self, what: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """A request that is on its way arrives, whatever has become of its sender."""
        sent = asyncio.create_task(self._deliver(what))
        sent.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(sent)

    async def _deliver(self, what: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        await self._travel("the request")
        answer = what()
        await self._travel("the answer")
        return answer

    async def _travel(self, what: str) -> None:
        luck = self.luck
        if luck is None:
            return
        await asyncio.sleep(luck.choice([0.01, 0.01, 0.1, 1.0, 4.0, 20.0]))
        if luck.random() < 0.15:
            raise NoAnswer(f"{what} is lost", sent=True)


class Life:
    """One process after the other under one name: each begins anew when the one before has lost or was killed."""

    def __init__(self, server: Server, luck: Random) -> None:
        rate, offset = luck.uniform(0.9, 1.1), luck.uniform(-1e5, 1e5)
        self.line = Line(server, luck)
        self._clock = lambda: now() * rate + offset
        self.task = self._begin()

    def _begin(self) -> asyncio.Task[None]:
        wall = lambda: datetime(1999, 1, 1, tzinfo=UTC)  # noqa: E731  (nobody may rely on it)
        self.leadership = LeaseLeadership(self.line, LeaseOptions("l", "n", TERMS), wall, self._clock)
        return asyncio.create_task(self.leadership.acquire())

    def go_on(self) -> None:
        if self.leadership.lost.is_set():
            self.kill()

    def kill(self) -> None:
        """SIGKILL: nothing is released, and what was under way is forgotten."""
        for task in (self.task, self.leadership._keeping):
            if task is not None:
                task.cancel()
        self.task = self._begin()

    def end(self) -> None:
        self.line.luck = None
        self.kill()
        self.task.cancel()


async def contend(seed: int) -> int:
    """How often the Lease changed hands. Raises AssertionError if two lead at once, or nobody does in the end."""
    luck, server = Random(seed), Server()
    lives = [Life(server, luck) for _ in range(CANDIDATES)]
    leaders: list[Life] = []
    began = now()
    while now() - began < ROUGH_SECONDS:
        await asyncio.sleep(GRAIN)
        leading = [life for life in lives if life.leadership.held]
        assert len(leading) <= 1, f"seed {seed}: {len(leading)} leaders after {now() - began:.2f} s"
        if leading and leading != leaders[-1:]:
            leaders += leading
        for life in lives:
            if luck.random() < GRAIN / 60:
                life.kill()
            life.go_on()
    for life in lives:
        life.line.luck = None
    await asyncio.sleep(CALM_SECONDS)
    assert sum(life.leadership.held for life in lives) == 1, f"seed {seed}: nobody leads in good weather"
    for life in lives:
        life.end()
    return len(leaders)


@pytest.mark.parametrize("seeds", [range(10), range(10, 20)], ids=str)
def test_there_are_never_two_leaders_and_in_the_end_there_is_one(seeds: range) -> None:
    changes = 0
    for seed in seeds:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            changes += runner.run(contend(seed))
    assert changes > 2 * len(seeds), "hardly anybody ever led: the luck is too bad to show anything"
