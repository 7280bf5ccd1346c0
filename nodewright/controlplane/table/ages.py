"""How long ago? Times as the short texts that kubectl shows, such as 45s, 2m30s, 5h12m, 3d4h and 2y10d.

The steps are those of k8s.io/apimachinery/pkg/util/duration, so that a table reads the same as from a real server.
"""

from __future__ import annotations

from datetime import datetime, timedelta

UNKNOWN = "<unknown>"
INVALID = "<invalid>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def moment(text: object) -> datetime | None:
    """Read an RFC 3339 time; None if it is none."""
    if not isinstance(text, str):
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else None


def since(text: object, now: datetime) -> str:
    """Give the age of a time that an object holds; `<unknown>` for none."""
    if not text:
        return UNKNOWN
    then = moment(text)
    return INVALID if then is None else between(then, now)


def between(start: datetime, end: datetime) -> str:
    """Give the time from `start` to `end`. Up to two seconds the wrong way round are clocks that differ: 0s."""
    # Whole seconds, rounded towards zero as Go does: -1.9 s is still within the tolerance.
    return text((end - start) / timedelta(seconds=1))


def text(seconds: float) -> str:
    """Give a duration in seconds as at most two units; the longer it is, the coarser."""
    whole = int(seconds)
    if whole < 0:
        return "0s" if whole == -1 else INVALID
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _pair(whole, (_MINUTE, "m"), (1, "s"))
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _pair(whole, (_HOUR, "h"), (_MINUTE, "m"))
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _pair(whole, (_DAY, "d"), (_HOUR, "h"))
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _pair(whole, (_YEAR, "y"), (_DAY, "d"))
    return f"{whole // _YEAR}y"


def _pair(whole: int, large: tuple[int, str], small: tuple[int, str]) -> str:
    rest = whole % large[0] // small[0]
    return f"{whole // large[0]}{large[1]}" + (f"{rest}{small[1]}" if rest else "")
