"""Are too many unhealthy at once? CAPI's ``maxUnhealthy`` and ``unhealthyRange``, on what looks bad already.

Machines that are being replaced stay bad until their replacement is healthy: otherwise each deletion would make room
for the next one, and a failure that meets every Machine would eat them all, a few at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

from api.intorstring import resolve
from controllers.kernel.conditions import counted
from controllers.machinehealthcheck.spec import Limit


@dataclass(frozen=True, slots=True)
class Circuit:
    """``why``: what breaks it, "" while it is closed. ``left``: further Machines that may become unhealthy."""

    why: str
    left: int


def circuit(limit: Limit, bad: int, expected: int) -> Circuit:
    """``expected``: Machines that there are to be, those that are being replaced included."""
    if limit.high is not None:
        if limit.low <= bad <= limit.high:
            return Circuit("", limit.high - bad)
        message = f"{counted(bad, 'Machine is', 'Machines are')} unhealthy or look so"
        return Circuit(f"{message}, unhealthyRange is [{limit.low}-{limit.high}]", 0)
    most = resolve(limit.most, expected, "down")
    if bad <= most:
        return Circuit("", most - bad)
    return Circuit(
        f"{bad} of {counted(expected, 'Machine is', 'Machines are')} unhealthy or look so, "
        f"maxUnhealthy {limit.most} allows {most}",
        0,
    )
