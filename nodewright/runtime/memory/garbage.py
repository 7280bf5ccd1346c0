"""Garbage collections of a process whose memory is mostly objects of an API: rarely, and never in a reconcile.

Such objects hold no cycles, so counting references frees them. A full collection looks through all of them all the
same: 5000 Machines cost 250 ms, and Python begins one in the middle of whatever was made last. So Python itself only
looks through young objects. The rest is looked through in turns of the event loop of their own, and left out afterwards
(``gc.freeze``), so that the next time only what came since is.
"""

from __future__ import annotations

import asyncio
import gc
from time import thread_time

from nodewright.runtime.memory.native_heap import trim

_NEVER = 1_000_000_000
_YOUNG = (2_000, 10, _NEVER)
"""Objects made until the newest are looked through; every tenth time those that outlived it are too: 20,000 objects
take about 5 ms. A collection of the oldest is ``settle``'s."""
LONG_SECONDS = 0.02
"""CPU time of one ``settle`` above which the next one comes sooner, since it will have less to look at."""
SHORTEST, LONGEST = 5.0, 600.0
"""Seconds between two of them."""
THAW_AFTER = 3600.0
"""Seconds after which everything is looked through once: what was left out may have become a cycle of garbage."""


def settle() -> float:
    """Look through what came since the last time, and leave it out from now on. CPU seconds that it took."""
    began = thread_time()
    gc.collect()
    gc.freeze()
    return thread_time() - began


def interval(before: float, spent: float) -> float:
    """Seconds until the next ``settle``, after one that took ``spent`` and came ``before`` seconds after its last."""
    wanted = before / 2 if spent > LONG_SECONDS else before * 2
    return min(max(wanted, SHORTEST), LONGEST)


def young_only() -> None:
    """From now on Python by itself looks through young objects only."""
    gc.set_threshold(*_YOUNG)


async def keep_settled() -> None:
    """Until cancelled; to be begun once all is loaded and read, after ``settle``."""
    young_only()
    pause, thawed = SHORTEST, 0.0
    while True:
        await asyncio.sleep(pause)
        thawed += pause
        if thawed >= THAW_AFTER:
            thawed = 0.0
            gc.unfreeze()
            settle()  # as long as memory is large: it says nothing of the next one
        else:
            pause = interval(pause, settle())
        trim()
