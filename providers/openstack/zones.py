"""Which availability zone the next server goes to. Pure but for its memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from providers.base.contract import HostRequest

AVOIDED = 300.0
"""Seconds for which a zone in which the scheduler found no place comes last."""


class Zones:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._full_at: dict[str, float] = {}

    def found_full(self, zone: str) -> None:
        self._full_at[zone] = self._now()

    def choose(self, request: HostRequest, wanted: Sequence[str], taken: Iterable[str]) -> str:
        """The Machine's failure domain if it has one; else of ``wanted`` the one with the fewest in ``taken``.

        "" leaves it to the cloud.
        """
        if request.failure_domain:
            return request.failure_domain
        if not wanted:
            return ""
        used = Counter(taken)
        return min(wanted, key=lambda zone: (self._is_full(zone), used[zone], wanted.index(zone)))

    def _is_full(self, zone: str) -> bool:
        return self._now() - self._full_at.get(zone, float("-inf")) < AVOIDED
