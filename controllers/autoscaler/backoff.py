"""Groups that failed to grow rest for a while, longer each time. A value: it can be kept and read back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

FIRST = timedelta(minutes=5)
LONGEST = timedelta(minutes=30)
FORGET_AFTER = timedelta(hours=3)
"""The Cluster Autoscaler's defaults."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """``until`` when the group rests, ``failed_at`` its last failure, ``pause`` how long it rests this time."""

    until: datetime
    failed_at: datetime
    pause: timedelta
    why: str

    def is_on(self, now: datetime) -> bool:
        return now < self.until


def failed(before: Backoff | None, now: datetime, why: str) -> Backoff:
    """After one more failure. Failures during the pause are the same failure; after it the pause doubles."""
    if before is not None and before.is_on(now):
        return before
    fresh = before is None or now - before.failed_at >= FORGET_AFTER
    pause = FIRST if before is None or fresh else min(LONGEST, before.pause * 2)
    return Backoff(now + pause, now, pause, why)
