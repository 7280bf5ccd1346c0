"""The limits of provider calls, per scope."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Times in seconds.

    ``hosts_in_flight``: creations that run plus hosts that are not up yet; more creations wait.
    ``busy_poll`` and ``steady_poll``: pause between lists while hosts change, and while none does; never less than
    ``poll_share`` times the duration of the last list, so that a slow provider isn't busy with our lists alone.
    ``patience``: how long a reconcile is held back for a list before it goes on with "unknown".
    """

    calls_at_once: int = 64
    calls_per_second: float = 200.0
    burst: int = 200
    hosts_in_flight: int = 1000
    call_timeout: float = 120.0
    list_timeout: float = 60.0
    busy_poll: float = 0.5
    steady_poll: float = 30.0
    shortest_poll: float = 0.1
    poll_share: float = 1.0
    patience: float = 2.0
