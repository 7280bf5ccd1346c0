"""A process that works for weeks: what it holds when it begins stays, and is no garbage to look for."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager

from nodewright.runtime.memory.garbage import keep_settled, settle, young_only
from nodewright.runtime.memory.native_heap import give_large_blocks_back

_tasks: list[asyncio.Task[None]] = []
"""A loop keeps no hold of its tasks. They end with it."""


@contextmanager
def starting() -> Iterator[None]:
    """Collect nothing before ``settle_in``, which has to follow soon: loading modules makes no garbage."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def settle_in() -> None:
    """To be called once all is loaded and read, in the process's event loop if it has one.

    Looking through all of it again and again takes a tenth of a burst's CPU, and the time of whatever is reconciled.
    """
    give_large_blocks_back()
    settle()
    young_only()
    gc.enable()
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return  # a measurement without a loop
    _tasks.append(loop.create_task(keep_settled(), name="garbage"))
