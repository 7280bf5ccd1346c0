"""Give inputs one after another; a failure names the seed and the index that make the input again."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import resource
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.fuzz.inputs import rng_of

HANG_SECONDS = 300.0
"""The time after which one input counts as a hang; none comes near it, also on a machine under load."""
GROWTH_BYTES = 400 << 20
"""What the process may grow by over all inputs but the first tenth: caches are bounded, a leak per input is not."""
SEED = 16
REPLAYED = os.environ.get("NODEWRIGHT_FUZZ", "")
"""``SEED/INDEX``: that one input instead of all."""


def sizes(few: int, many: int) -> pytest.MarkDecorator:
    """Run a test with the inputs of `make test`, and with those of `make test-long`."""
    return pytest.mark.parametrize("count", [few, pytest.param(many, marks=pytest.mark.slow)])


def resident() -> int:
    """Bytes in memory now; the peak where the system has no /proc."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@contextlib.contextmanager
def ended(seconds: float) -> Iterator[None]:
    """Break off code that never gives the event loop back, which a timeout of asyncio can't."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"no end within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


async def drive(
    count: int, act: Callable[[random.Random], Awaitable[object]], seed: int = SEED, *, together: int = 1
) -> None:
    """Act on every input. Raises AssertionError with the seed and the index of the first that fails.

    ``together``: how many at a time, where most of the time is spent waiting.
    """
    indices = range(count)
    if REPLAYED:
        chosen, _, index = REPLAYED.partition("/")
        seed, indices = int(chosen), range(int(index), int(index) + 1)
    await drive_range(indices, act, seed, together)


async def drive_range(
    indices: range, act: Callable[[random.Random], Awaitable[object]], seed: int, together: int = 1
) -> None:
    """Act on the inputs of some indices; one index replays one input."""

    async def one(index: int) -> None:
        try:
            async with asyncio.timeout(HANG_SECONDS):
                await act(rng_of(seed, index))
        except Exception as error:
            raise AssertionError(f"input {index} of seed {seed}: {type(error).__name__}: {error}"[:3000]) from error

    base = 0
    for first in range(0, len(indices), together):
        batch = indices[first : first + together]
        with ended(HANG_SECONDS):
            if together == 1:
                await one(batch[0])
            else:
                async with asyncio.TaskGroup() as group:
                    for index in batch:
                        group.create_task(one(index))
        if not base and first >= len(indices) // 10:
            gc.collect()
            base = resident()
    gc.collect()
    assert not base or resident() - base < GROWTH_BYTES, f"memory grew by {(resident() - base) >> 20} MiB"
