"""metav1.Duration (Go's text form, ``1h30m``) and metav1.Time (RFC 3339 with whole seconds)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

DURATION_PATTERN = r"^(0|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$"
"""Non-negative Go durations of milliseconds and up."""
_WHOLE = re.compile(r"(0|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)\Z")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_MAX_TEXT = 32


def parse_duration(text: str) -> timedelta:
    """``10m`` → ten minutes; ``0`` and ``0s`` → zero. Raises ValueError for anything else and for over a century."""
    if len(text) > _MAX_TEXT or not _WHOLE.match(text):
        raise ValueError(f"{text!r} is not a duration like 90s, 10m or 1h30m")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    if seconds > 100 * 365.25 * 86400:
        raise ValueError(f"{text!r} is longer than a century")
    return timedelta(seconds=seconds)


def format_duration(duration: timedelta) -> str:
    """As Go prints it: ``1h30m0s``, ``10m0s``, ``0s``. Raises ValueError for a negative one."""
    millis = round(duration.total_seconds() * 1000)
    if millis < 0:
        raise ValueError("negative duration")
    seconds, rest = divmod(millis, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    last = f"{seconds}.{rest:03d}".rstrip("0") + "s" if rest else f"{seconds}s"
    if hours:
        return f"{hours}h{minutes}m{last}"
    return f"{minutes}m{last}" if minutes else last


def parse_time(text: str) -> datetime:
    """RFC 3339 with a zone, as an aware datetime in UTC. Raises ValueError."""
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return parsed.astimezone(UTC)


def format_time(moment: datetime) -> str:
    """``2026-11-20T08:00:00Z``: UTC, no fraction, as the API server writes metav1.Time. Raises ValueError if naive."""
    if moment.tzinfo is None:
        raise ValueError("a time without a zone")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
