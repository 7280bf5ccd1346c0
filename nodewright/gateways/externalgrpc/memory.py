"""Garbage collections of a process whose memory is one large cache.

The objects of 15 000 Machines cost a full one 90 ms, in which no call is answered. They hold no cycles, so counting
references frees them all the same: they can be left out. It is for whoever owns the process to say so.
"""

from __future__ import annotations

import asyncio
import gc

SETTLE_EVERY = 600.0
"""Seconds; objects that changed since are new ones."""
_YOUNG_ONLY = (700, 1_000_000, 1_000_000)
"""Newly made objects are looked through as ever, a quarter of a millisecond each time. What outlives that is a changed
Machine nearly always, and looking through those again and again costs calls up to 10 ms: they wait for ``settle``."""


def settle() -> None:
    """Take what is in memory out of collections from now on, and leave what comes to the next time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_YOUNG_ONLY)


async def keep_settled() -> None:
    """Until cancelled."""
    while True:
        settle()
        await asyncio.sleep(SETTLE_EVERY)
