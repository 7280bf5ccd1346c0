"""Slots and queues under random schedules: nothing is lost, nothing leaks, whoever is cancelled and whenever."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewright.runtime.kube.slots import Slots, working_for
from nodewright.runtime.queues.queue import Lane, WorkQueue
from tests.runtime.virtual_time import virtual_time

SEEDS = st.integers(0, 2**32)
PATIENCE = 300.0
"""Of virtual time: what has not ended by then hangs."""


@virtual_time
async def _requests(seed: int) -> None:
    """Sixty requests of three namespaces and of nobody; some are cancelled, some raise."""
    random = Random(seed)
    slots, most = Slots(random.randint(1, 4), random.randint(1, 3)), Counter[str]()
    total, share = slots._free, slots._share

    async def request(namespace: str) -> None:
        with working_for(namespace), suppress(ValueError):
            async with slots.one():
                most.update({namespace: 1})
                assert most.total() <= total
                assert not namespace or most[namespace] <= share
                try:
                    for _ in range(random.randint(0, 3)):
                        await asyncio.sleep(0)
                    if random.random() < 0.1:
                        raise ValueError
                finally:
                    most.subtract({namespace: 1})

    tasks: list[asyncio.Task[None]] = []
    for _ in range(60):
        tasks.append(asyncio.create_task(request(random.choice(["", "a", "b", "c"]))))
        if random.random() < 0.4:
            random.choice(tasks).cancel()
        if random.random() < 0.5:
            await asyncio.sleep(0)
    done, hanging = await asyncio.wait(tasks, timeout=PATIENCE)
    assert not hanging
    assert not [task for task in done if not task.cancelled() and task.exception() is not None]
    assert (slots._free, dict(slots._held), len(slots._waiting)) == (total, {}, 0)


@virtual_time
async def _keys(seed: int) -> None:
    """A hundred adds of 27 keys in three lanes; workers are cancelled and keys set aside."""
    random = Random(seed)
    queue: WorkQueue[tuple[str, int]] = WorkQueue(group_of=lambda key: key[0], share=random.randint(1, 2))
    seen, added, at_work = set[tuple[str, int]](), set[tuple[str, int]](), set[tuple[str, int]]()

    def done(key: tuple[str, int]) -> None:
        at_work.discard(key)
        queue.done(key)

    async def worker() -> None:
        while True:
            key, _ = await queue.get()
            assert key not in at_work, "a key is handed out once at a time"
            at_work.add(key)
            aside = False
            try:
                seen.add(key)
                for _ in range(random.randint(0, 3)):
                    await asyncio.sleep(0)
                if random.random() < 0.3:
                    queue.set_aside(key)
                    asyncio.get_running_loop().call_soon(done, key)
                    aside = True
            finally:
                if not aside:
                    done(key)

    workers = [asyncio.create_task(worker()) for _ in range(4)]
    everyone = list(workers)
    for _ in range(100):
        key = (random.choice("abc"), random.randint(0, 8))
        added.add(key)
        queue.add(key, random.choice(list(Lane)))
        if random.random() < 0.3:
            await asyncio.sleep(0)
        if random.random() < 0.1:
            number = random.randrange(4)
            workers[number].cancel()
            workers[number] = asyncio.create_task(worker())
            everyone.append(workers[number])
    async with asyncio.timeout(PATIENCE):
        while not queue.idle:  # noqa: ASYNC110  (virtual time)
            await asyncio.sleep(0.001)
    assert seen == added
    assert (dict(queue._held), queue._set_aside) == ({}, set())
    for task in everyone:
        task.cancel()
    ended = await asyncio.gather(*everyone, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ended)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_slots_are_given_back_whoever_is_cancelled(seed: int) -> None:
    _requests(seed)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_every_key_is_handed_out_whoever_is_cancelled(seed: int) -> None:
    _keys(seed)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(SEEDS)
def test_slots_are_given_back_in_many_schedules(seed: int) -> None:
    _requests(seed)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(SEEDS)
def test_every_key_is_handed_out_in_many_schedules(seed: int) -> None:
    _keys(seed)
