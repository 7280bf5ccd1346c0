"""How soon to look again while only the provider can bring news: often at first, seldom when it takes long."""

from __future__ import annotations

from controllers.machine.observe import Observed

_STEPS = ((30.0, 0.5), (120.0, 2.0), (600.0, 10.0))
"""(age of the host or the Machine in seconds, seconds until the next look)."""
_SLOWEST = 30.0


def next_look(observed: Observed) -> float:
    """Seconds. All Machines of a scope share one list call, so looking often is cheap."""
    host = observed.host
    since = host.created_at if host is not None and host.created_at is not None else observed.created_at
    age = (observed.now - since).total_seconds()
    return next((pause for limit, pause in _STEPS if age < limit), _SLOWEST)
