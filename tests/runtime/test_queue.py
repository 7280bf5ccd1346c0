"""The work queue: one worker a key, nothing lost, the urgent first, nobody starved."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewright.runtime.queues.queue import Backoff, Lane, QueueClosedError, WorkQueue
from tests.examples import usually
from tests.runtime.virtual_time import now, virtual_time


async def _drain(queue: WorkQueue[str]) -> list[str]:
    """Take and finish every key that can be had now."""
    taken = []
    while len(queue):
        key, _ = await queue.get()
        taken.append(key)
        queue.done(key)
    return taken


@virtual_time
async def test_a_key_that_is_added_twice_is_handed_out_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(3):
        queue.add("a")
    assert await _drain(queue) == ["a"]


@virtual_time
async def test_a_key_that_changes_while_a_worker_has_it_is_handed_out_again_afterwards() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    assert len(queue) == 0, "it must not run twice at the same time"
    queue.done("a")
    assert await _drain(queue) == ["a"]


@virtual_time
async def test_urgent_keys_go_first_and_resyncs_last() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("resync", Lane.RESYNC)
    queue.add("report", Lane.NORMAL)
    queue.add("create", Lane.NEW)
    queue.add("delete", Lane.URGENT)
    assert await _drain(queue) == ["delete", "create", "report", "resync"]


@virtual_time
async def test_a_key_moves_up_when_it_becomes_urgent_and_never_down() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("first")
    queue.add("victim", Lane.RESYNC)
    queue.add("victim", Lane.URGENT)
    queue.add("victim", Lane.RESYNC)
    assert await _drain(queue) == ["victim", "first"]


@virtual_time
async def test_urgency_that_arises_while_a_worker_has_the_key_is_kept() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("b")
    queue.add("a", Lane.RESYNC)
    queue.add("a", Lane.URGENT)
    queue.done("a")
    assert await _drain(queue) == ["a", "b"]


@virtual_time
async def test_the_last_lane_is_not_starved_by_a_stream_of_urgent_keys() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("patient", Lane.RESYNC)
    taken = []
    for number in range(20):
        queue.add(f"urgent-{number}", Lane.URGENT)
        key, _ = await queue.get()
        queue.done(key)
        taken.append(key)
    assert "patient" in taken[: WorkQueue.EVERY_NTH_TO_THE_LAST_LANES]


@virtual_time
async def test_a_lane_in_the_middle_is_not_starved_while_the_last_one_has_keys_too() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("report", Lane.NORMAL)
    taken = []
    for number in range(2 * WorkQueue.EVERY_NTH_TO_THE_LAST_LANES):
        queue.add(f"new-{number}", Lane.NEW)
        queue.add(f"listed-{number}", Lane.RESYNC)
        key, _ = await queue.get()
        queue.done(key)
        taken.append(key)
    assert "report" in taken


@virtual_time
async def test_a_timer_hands_the_key_out_when_it_is_due() -> None:
    queue: WorkQueue[str] = WorkQueue()
    start = now()
    queue.add_after("late", 30)
    queue.add_after("soon", 2)
    assert (await queue.get())[0] == "soon"
    assert now() - start == pytest.approx(2)
    assert (await queue.get())[0] == "late"
    assert now() - start == pytest.approx(30)


@virtual_time
async def test_of_several_timers_of_a_key_the_earliest_counts_and_the_others_are_void() -> None:
    queue: WorkQueue[str] = WorkQueue()
    start = now()
    queue.add_after("a", 30)
    queue.add_after("a", 3)
    queue.add_after("a", 60)
    key, _ = await queue.get()
    queue.done(key)
    assert now() - start == pytest.approx(3)
    assert queue.next_due is None
    await asyncio.sleep(100)
    assert len(queue) == 0


@virtual_time
async def test_a_round_makes_the_timer_of_its_key_void() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 30)
    queue.add("a")
    key, _ = await queue.get()
    queue.done(key)
    await asyncio.sleep(100)
    assert len(queue) == 0


@virtual_time
async def test_dropped_timers_do_not_pile_up() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(10_000):
        queue.add_after("a", 300)
        queue.add("a")
        key, _ = await queue.get()
        queue.done(key)
    assert len(queue._heap) < 200


@virtual_time
async def test_retries_wait_longer_each_time_up_to_the_bound_and_start_afresh_after_success() -> None:
    queue: WorkQueue[str] = WorkQueue(Backoff(first=1, longest=8), seed=1)
    pauses = [queue.retry("a") for _ in range(6)]
    for pause, want in zip(pauses, [1, 2, 4, 8, 8, 8], strict=True):
        assert want * 0.5 <= pause <= want * 1.5
    queue.succeeded("a")
    assert queue.retry("a") <= 1.5


@virtual_time
async def test_a_retry_never_comes_before_the_server_asked_for() -> None:
    queue: WorkQueue[str] = WorkQueue(Backoff(first=0.1))
    assert queue.retry("a", at_least=7) == 7


@virtual_time
async def test_a_cancelled_worker_passes_its_turn_on() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert (await second)[0] == "a"


@virtual_time
async def test_workers_end_when_the_queue_is_closed() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.close()
    with pytest.raises(QueueClosedError):
        await worker
    queue.add("a")
    assert len(queue) == 0


_KEYS = st.sampled_from("abcd")
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), _KEYS, st.sampled_from(list(Lane))),
        st.tuples(st.just("after"), _KEYS, st.floats(0, 5)),
        st.tuples(st.just("retry"), _KEYS, st.none()),
        st.tuples(st.just("pass"), st.just(""), st.floats(0, 2)),
    ),
    max_size=40,
)


@usually(15)
@given(steps=_STEPS, workers=st.integers(1, 4), takes=st.floats(0, 3))
def test_no_key_runs_twice_at_once_and_every_wish_is_followed_by_a_run(
    steps: list[tuple[str, str, object]], workers: int, takes: float
) -> None:
    @virtual_time
    async def story() -> None:
        queue: WorkQueue[str] = WorkQueue(Backoff(0.1, 1), seed=0)
        busy: Counter[str] = Counter()
        started: dict[str, float] = {}
        wished: dict[str, float] = {}

        async def work() -> None:
            while True:
                key, _ = await queue.get()
                busy[key] += 1
                started[key] = now()
                assert busy[key] == 1
                await asyncio.sleep(takes)
                busy[key] -= 1
                queue.done(key)

        tasks = [asyncio.create_task(work()) for _ in range(workers)]
        for what, key, how in steps:
            if what == "add":
                queue.add(key, how)  # type: ignore[arg-type]
            elif what == "after":
                queue.add_after(key, how)  # type: ignore[arg-type]
            elif what == "retry":
                queue.retry(key)
            else:
                await asyncio.sleep(how)  # type: ignore[arg-type]
                continue
            wished[key] = now()
        await asyncio.sleep(5 + 1.5 + (len(steps) + 4) * (takes + 0.1))
        for key, moment in wished.items():
            assert started.get(key, -1.0) >= moment, f"{key} was wished for at {moment} and never run since"
        assert queue.idle
        for task in tasks:
            assert not task.done()
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    story()
