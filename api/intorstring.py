"""metav1 IntOrString: a count, or a percentage of one."""

from __future__ import annotations

import re
from typing import Literal

PERCENT_PATTERN = r"^(0|[1-9][0-9]{0,3})%$"
"""A percentage as its CRDs accept it: no sign, no leading zero, at most four digits."""
_PERCENT = re.compile(r"(0|[1-9][0-9]{0,3})%\Z")

Rounding = Literal["up", "down"]


class IntOrStringError(ValueError):
    """Neither a non-negative integer nor ``N%``."""


def resolve(value: int | str, total: int, rounding: Rounding) -> int:
    """The count that ``value`` means out of ``total``; an integer is itself, whatever the total.

    Surge rounds up and unavailable rounds down (lineage). Raises IntOrStringError.
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise IntOrStringError(f"{value!r} is neither an integer nor a percentage")
    if isinstance(value, int):
        if value < 0:
            raise IntOrStringError(f"{value} is negative")
        return value
    match = _PERCENT.match(value)
    if match is None:
        raise IntOrStringError(f"{value!r} is not a percentage like 25%")
    scaled = int(match.group(1)) * total
    return -(-scaled // 100) if rounding == "up" else scaled // 100


def percent(value: int | str) -> int | None:
    """The number before the ``%``; None for an integer or anything unreadable."""
    match = _PERCENT.match(value) if isinstance(value, str) else None
    return int(match.group(1)) if match else None
