"""What changed in a collection, in order, and how far back is that known?"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

import orjson

from nodewright.apiserver.values import Obj

MOST_BYTES = 16 * 2**20
"""Bytes of one collection, as JSON; Python's objects take three times as much, small ones eight times. A watch that
asks for older changes is answered 410, and lists anew.
"""
KEPT_SECONDS = 75.0
"""For so long changes are known at least, within the bounds: as long as in upstream's watch cache."""
TRIM_SECONDS = 15.0
"""Changes that are older by this, or more, are forgotten together."""
KEPT_CHANGES = 100
"""So many of the last ones stay, however old they are."""


class Change(NamedTuple):
    """One commit. `previous` is None for an object that was not there, `obj` is the tombstone if `removed`.

    A tombstone is the last stored state with the resourceVersion of its removal, as the watch cache gives it.
    """

    revision: int
    namespace: str
    name: str
    obj: Obj
    previous: Obj | None
    removed: bool


class ChangeLog:
    """The last changes of one collection, bounded. Positions count from the first change ever and stay valid.

    `floor` is the oldest resourceVersion from which everything after is still known. It is bounded in changes, in
    bytes of their objects as JSON, and in age; the last change is always known.
    """

    def __init__(
        self, floor: int, length: int, most_bytes: int = MOST_BYTES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.floor = floor
        self.bytes = 0
        self._clock = clock
        self._times: deque[float] = deque()
        self._most_bytes = most_bytes
        self._length = length
        self._first = 0
        self._changes: list[Change] = []
        self._sizes: deque[int] = deque()

    @property
    def end(self) -> int:
        """The position of the next change to come."""
        return self._first + len(self._changes)

    def append(self, change: Change) -> None:
        """Add a change; forget old ones, and the older half when twice the length or the wanted bytes are reached."""
        size, now = len(orjson.dumps(change.obj)), self._clock()
        self._changes.append(change)
        self._sizes.append(size)
        self._times.append(now)
        self.bytes += size
        if now - self._times[0] > KEPT_SECONDS + TRIM_SECONDS:
            old = bisect_right(self._times, now - KEPT_SECONDS)
            self.forget(min(old, len(self._changes) - KEPT_CHANGES))
        if len(self._changes) >= 2 * self._length:
            self.forget(len(self._changes) - self._length)
        if self.bytes > self._most_bytes:
            self.forget(self._too_many())

    def _too_many(self) -> int:
        """How many of the oldest changes have to go for half of the bytes to be free; never the last one."""
        left, count = self.bytes, 0
        for size in islice(self._sizes, len(self._sizes) - 1):
            if left <= self._most_bytes // 2:
                break
            left -= size
            count += 1
        return count

    def undo(self, change: Change) -> None:
        """Take back the last change, if it is still known."""
        if self._changes and self._changes[-1] is change:
            self._changes.pop()
            self.bytes -= self._sizes.pop()
            self._times.pop()

    def forget(self, count: int) -> None:
        """Drop the oldest `count` changes."""
        if count <= 0:
            return
        self.floor = self._changes[count - 1].revision
        del self._changes[:count]
        self._first += count
        for _ in range(count):
            self.bytes -= self._sizes.popleft()
            self._times.popleft()

    def position_after(self, revision: int) -> int:
        """Give the position of the first change after a resourceVersion, which must not be below `floor`."""
        return self._first + bisect_right(self._changes, revision, key=_revision)

    def holds(self, position: int) -> bool:
        """Say whether the changes from this position on are still known."""
        return position >= self._first

    def since(self, position: int, limit: int | None = None) -> list[Change]:
        """Give the changes from a position on, at most `limit`."""
        start = position - self._first
        return self._changes[start:] if limit is None else self._changes[start : start + limit]


def _revision(change: Change) -> int:
    return change.revision
