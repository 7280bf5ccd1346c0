"""When keys are looked at again though nothing happens, as the running program's queue has it.

One timer a key, the earliest; it is dropped when the key is handed out, since the reconcile that follows sets its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime
from itertools import count
from typing import Any

from controllers.kernel.reconciler import Reconciler
from controllers.kernel.refs import Key

_Slot = tuple[str, Key]


class Timers:
    def __init__(self) -> None:
        self._set: dict[_Slot, tuple[datetime, int, Reconciler[Any]]] = {}
        self._heap: list[tuple[datetime, int, _Slot]] = []
        """Entries whose number is not the one that is set are void."""
        self._numbers = count()

    def set(self, reconciler: Reconciler[Any], key: Key, at: datetime) -> None:
        """The earliest of several counts."""
        slot = (reconciler.name, key)
        before = self._set.get(slot)
        if before is not None and before[0] <= at:
            return
        number = next(self._numbers)
        self._set[slot] = (at, number, reconciler)
        heapq.heappush(self._heap, (at, number, slot))

    def drop(self, reconciler: Reconciler[Any], key: Key) -> None:
        self._set.pop((reconciler.name, key), None)

    def due(self, now: datetime) -> Iterator[tuple[Reconciler[Any], Key]]:
        """Take out those whose time has come."""
        while (at := self.next_at()) is not None and at <= now:
            _, _, slot = heapq.heappop(self._heap)
            yield self._set.pop(slot)[2], slot[1]

    def next_at(self) -> datetime | None:
        while self._heap and not self._is_set(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _is_set(self, entry: tuple[datetime, int, _Slot]) -> bool:
        _, number, slot = entry
        found = self._set.get(slot)
        return found is not None and found[1] == number
