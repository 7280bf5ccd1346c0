"""Time that passes only when it is advanced."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    def __init__(self, start: datetime = START) -> None:
        self._now = start

    def __call__(self) -> datetime:
        return self._now

    def advance_to(self, moment: datetime) -> None:
        """Never goes back."""
        self._now = max(self._now, moment)

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return (self._now - START).total_seconds()
