"""A clock that moves only when it is told to."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    async def sleep(self, seconds: float) -> None:
        """As asyncio.sleep, but the time passes on this clock at once."""
        await asyncio.sleep(0)
        self.forward(seconds)
