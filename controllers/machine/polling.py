"""How soon to look again while only the provider can bring news: often at first, seldom when it takes long."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from controllers.kernel.conditions import parse_time
from controllers.machine import clocks
from controllers.machine.observe import Observed

FIRST_LOOK = 2.0
"""Seconds until the first look."""
_STEPS = ((30.0, FIRST_LOOK), (120.0, 2.0), (600.0, 10.0))
"""(seconds that it has taken so far, seconds until the next look)."""
_SLOWEST = 30.0


def next_requeue(observed: Observed) -> float:
    """Seconds. All Machines of a scope share one list call, so looking often is cheap."""
    taken = (observed.now - _since(observed)).total_seconds()
    return next((pause for limit, pause in _STEPS if taken < limit), _SLOWEST)


def _since(observed: Observed) -> datetime:
    """When that began which is waited for: the host's deletion, the replacement, the host's or the Machine's life."""
    host, replaced = observed.host, observed.status.get("replacement")
    asked = clocks.read(observed, clocks.HOST)
    if asked is not None:
        return asked
    begun = observed.machine["metadata"].get("deletionTimestamp")
    if not begun and isinstance(replaced, Mapping):
        begun = replaced.get("startedAt")
    known = parse_time(begun if isinstance(begun, str) else None)
    return known or (host.created_at if host and host.created_at else observed.created_at)
