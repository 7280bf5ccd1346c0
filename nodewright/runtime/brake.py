"""Slow a key down that writes in every round: a plan that never agrees with its own effect must not hammer the server.

Such a plan is a bug of its room (or two writers fight for one field); what it costs is bounded here. Pure.
"""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")

WINDOW = 10.0
"""Seconds."""
FREE = 30
"""Rounds with writes of one key per window that cost nothing; a rollout's busiest object has some five a second."""
PAUSE = 1.0
_MOST_KEYS = 50_000


class Brake(Generic[K]):
    """``wrote`` tells how long the key should rest now, in seconds; 0 for all sound ones."""

    def __init__(self) -> None:
        self._counts: dict[K, tuple[float, int]] = {}

    def wrote(self, key: K, now: float) -> float:
        began, count = self._counts.get(key, (now, 0))
        if now - began >= WINDOW:
            began, count = now, 0
        count += 1
        if len(self._counts) >= _MOST_KEYS:
            self._counts.clear()
        self._counts[key] = (began, count)
        return PAUSE if count > FREE else 0.0

    def forget(self, key: K) -> None:
        self._counts.pop(key, None)
