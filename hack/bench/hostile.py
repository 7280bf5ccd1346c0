"""How much slower a busy namespace is beside one that does all it may against it."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hack.bench.figures import Figure
from hack.hostile.beside import Measured, scene
from nodewright.runtime.telemetry.logs import configure

PAIRS = 8
FLOOD = 100


def hostile() -> list[Figure]:
    """Cycles of the busy namespace alone and beside the attacks, in turns."""
    configure(level="warning")
    measured = asyncio.run(_measure())
    held = sum(measured.longer_than().values())
    return [
        Figure("hostile_namespace_ratio", measured.ratio, "times", "lower", "goal", 2.0),
        Figure("hostile_namespace_ratio_p99", measured.ratio_at(0.99), "times", "lower", "goal", 2.0),
        Figure("hostile_namespace_reaction_ratio", measured.reaction_ratio, "times", "lower", "goal", 2.0),
        Figure("hostile_namespace_reaction_ms", 1000 * measured.reaction, "ms", "lower"),
        Figure("hostile_namespace_held_over_50ms", held, "reconciles", "lower", "goal", 0.0),
        Figure("hostile_namespace_rss_mib", max(measured.rss_mib), "MiB", "lower", "limit of the pod", 1024.0),
    ]


async def _measure() -> Measured:
    with tempfile.TemporaryDirectory(prefix="nodewright-bench-") as folder:
        async with scene(Path(folder), flood=FLOOD) as found:
            for _ in range(PAIRS):
                await found.pair()
            await found.scrape()
            if faults := found.busy.faults():
                raise AssertionError("; ".join(faults))
            return found.measured
