"""One change at a time: joined, superseded, bounded, and none by who may not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from nodewright.gateways.cloudpool.operations import MOST_WAITING, OperationError, Operations
from tests.runtime.stub_server import until


class Work:
    """Goes on until it is let go, or told to stop."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go = asyncio.Event()

    def named(self, name: str) -> Callable[[Callable[[], str]], object]:
        async def work(stops: Callable[[], str]) -> None:
            self.begun.append(name)
            await self.go.wait()
            told = stops()
            if told:
                raise OperationError(500, "stopped", told)

        return work


async def asked(*tasks: asyncio.Task[None]) -> list[str]:
    found = await asyncio.gather(*tasks, return_exceptions=True)
    return [str(each) for each in found]


async def test_the_same_wish_is_one_operation_and_another_waits_for_it() -> None:
    operations, work = Operations(), Work()
    tasks = [asyncio.create_task(operations.run("", key, work.named(key))) for key in ("a", "a", "b")]  # type: ignore[arg-type]
    await asyncio.sleep(0)
    assert operations.under_way == ["a", "b"]
    work.go.set()
    assert await asked(*tasks) == ["None"] * 3
    assert work.begun == ["a", "b"]
    assert operations.under_way == []


async def test_a_later_wish_on_the_same_topic_supersedes_those_before() -> None:
    operations, work = Operations(), Work()
    tasks = [asyncio.create_task(operations.run("size", key, work.named(key))) for key in ("1", "2", "3")]  # type: ignore[arg-type]
    await asyncio.sleep(0)
    work.go.set()
    told = await asked(*tasks)
    assert told[1:] == ["not begun: superseded by a later request: 3", "None"]
    assert "superseded by a later request: 3" in told[0]


async def test_who_loses_the_right_in_the_middle_stops() -> None:
    right: list[str] = [""]
    operations, work = Operations(lambda: right[0]), Work()
    task = asyncio.create_task(operations.run("", "a", work.named("a")))  # type: ignore[arg-type]
    await until(lambda: bool(work.begun))
    right[0] = "another process holds the Lease"
    work.go.set()
    assert await asked(task) == ["stopped: another process holds the Lease"]


async def test_there_is_a_bound_and_an_end() -> None:
    operations, work = Operations(), Work()
    tasks = [asyncio.create_task(operations.run("", n, work.named(str(n)))) for n in range(MOST_WAITING)]  # type: ignore[arg-type]
    await asyncio.sleep(0)
    with pytest.raises(OperationError, match="wait already"):
        await operations.run("", "more", work.named("more"))  # type: ignore[arg-type]
    work.go.set()
    await operations.close("the end")
    assert all("the end" in told for told in await asked(*tasks))
    with pytest.raises(OperationError, match="the end"):
        await operations.run("", "more", work.named("more"))  # type: ignore[arg-type]
