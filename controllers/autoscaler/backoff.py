"""Groups that failed to grow rest for a while, longer each time. A value: it can be kept and read back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Pauses:
    """``first``, doubled each time up to ``longest``; a failure so long past is forgotten. As upstream."""

    first: timedelta = timedelta(minutes=5)
    longest: timedelta = timedelta(minutes=30)
    forget_after: timedelta = timedelta(hours=3)


@dataclass(frozen=True, slots=True)
class Backoff:
    """``until`` when the group rests, ``failed_at`` its last failure, ``pause`` how long it rests this time."""

    until: datetime
    failed_at: datetime
    pause: timedelta
    why: str

    def is_on(self, now: datetime) -> bool:
        return now < self.until


def failed(before: Backoff | None, now: datetime, why: str, pauses: Pauses) -> Backoff:
    """After one more failure. Failures during the pause are the same failure; after it the pause doubles."""
    if before is not None and before.is_on(now):
        return before
    fresh = before is None or now - before.failed_at >= pauses.forget_after
    pause = pauses.first if before is None or fresh else min(pauses.longest, before.pause * 2)
    return Backoff(until=now + pause, failed_at=now, pause=pause, why=why)
