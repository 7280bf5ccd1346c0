"""How fast may pods be evicted? One allowance for all drains of an API server, and a rest for each that was refused.

A hundred drains that wait for one PodDisruptionBudget would otherwise ask for a hundred pods in every reconcile, and
all but one of them in vain (machine-controller-manager#703). Synchronous, no I/O; times are those of the caller's
clock.
"""

from __future__ import annotations

RATE, BURST = 50.0, 100.0
"""Evictions per second in the long run, and how many at once after a rest."""
FIRST_REST, LONGEST_REST = 0.1, 10.0
"""Seconds that a refused pod rests; doubled with each refusal."""
_MOST_PODS = 20_000


class EvictionPace:
    """Ask ``may`` before each eviction, and tell how it ended."""

    def __init__(self, rate: float = RATE, burst: float = BURST) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._at = burst, 0.0
        self._resting: dict[str, tuple[float, float]] = {}
        """By the pod's uid: until when it rests, and how long this rest is."""

    def may(self, uid: str, now: float) -> bool:
        """Whether this pod may be asked for now; an answer of yes is counted."""
        rest = self._resting.get(uid)
        if rest is not None and now < rest[0]:
            return False
        self._left = min(self._burst, self._left + max(0.0, now - self._at) * self._rate)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True

    def refused(self, uid: str, now: float) -> None:
        before = self._resting.get(uid)
        pause = min(before[1] * 2, LONGEST_REST) if before is not None else FIRST_REST
        if len(self._resting) >= _MOST_PODS:
            self._resting.clear()
        self._resting[uid] = (now + pause, pause)

    def accepted(self, uid: str) -> None:
        self._resting.pop(uid, None)
