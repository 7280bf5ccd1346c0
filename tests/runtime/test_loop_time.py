"""How long one reconcile keeps the loop: what is measured, and that the work notices nothing of it."""

from __future__ import annotations

import asyncio

import pytest

from nodewright.runtime.telemetry import loop_time
from nodewright.runtime.telemetry.loop_time import LoopTime, shared

_spent = [0.0]


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread's CPU time is what ``_spend`` was told: nothing depends on the machine."""
    _spent[0] = 0.0
    monkeypatch.setattr(loop_time, "thread_time", lambda: _spent[0])


def _spend(seconds: float) -> None:
    _spent[0] += seconds


async def test_the_longest_step_between_two_awaits_counts() -> None:
    async def work() -> str:
        for seconds in (1, 4, 2):
            _spend(seconds)
            await asyncio.sleep(0)
        return "done"

    held = LoopTime()
    assert await held.of(work()) == "done"
    assert held.longest == 4
    assert await held.of(work()) == "done"
    assert held.longest == 4, "of both parts of the reconcile the longest step"


async def test_what_others_do_meanwhile_does_not_count() -> None:
    turn = asyncio.Event()

    async def other() -> None:
        _spend(5)
        turn.set()

    async def work() -> None:
        _spend(1)
        await turn.wait()
        _spend(2)

    held = LoopTime()
    task = asyncio.create_task(other())
    await held.of(work())
    await task
    assert held.longest == 2


async def test_tasks_of_the_work_count_where_they_join() -> None:
    async def child() -> None:
        _spend(3)

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(shared(child()))

    held = LoopTime()
    await held.of(work())
    assert held.longest == 3
    await shared(child())
    assert held.longest == 3, "outside of the reconcile it is the work alone"


async def test_errors_and_cancellations_reach_the_work() -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise LookupError("no")

    with pytest.raises(LookupError):
        await LoopTime().of(fails())
    told: list[str] = []

    async def waits() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append("cancelled")
            await asyncio.sleep(0)
            raise
        return ""

    task = asyncio.create_task(LoopTime().of(waits()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told == ["cancelled"]

    async def refuses() -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return "late"
        return ""

    assert await LoopTime().of(refuses()) == "late"
