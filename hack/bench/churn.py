"""Machines that are made and deleted again, through real processes: what stays in memory?"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hack.bench.figures import Figure
from hack.churned import Churn, churning

WAVES, SIZE = 4, 2500
"""10,000 Machines of 12 KiB; the first wave fills what is bounded in the controllers."""
GOAL = 10.0


def churn() -> list[Figure]:
    found = asyncio.run(_churn())
    grown = {name: max(later) - first for name, (first, *later) in found.rss.items()}
    percent = {name: 100 * grown[name] / found.rss[name][0] for name in grown}
    return [
        Figure("churn_rss_mib", sum(grown.values()), "MiB", "lower"),
        *(Figure(f"churn_{name}_rss_percent", percent[name], "%", "lower", "goal", GOAL) for name in sorted(percent)),
    ]


async def _churn() -> Churn:
    with tempfile.TemporaryDirectory(prefix="nodewright-bench-") as folder:
        async with churning(Path(folder)) as found:
            for _ in range(WAVES):
                await found.wave(SIZE)
            return found
