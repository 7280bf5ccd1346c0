"""Which key is looked at next: each key once at a time, the urgent ones first, none forgotten and none starved.

Within a lane namespaces take turns, and one namespace has only a share of the workers at a time: what one of them asks
for by the thousand waits for itself. Keys without a namespace are a group like any other. Of that share a part is kept
for what is urgent or new: a worker that waits for the API server's answer to a write does nothing meanwhile, and when
all of them do, no host is made.

A key that is added while a worker has it is handed out again when that worker is done: what changed in between is
looked at too. A key's timer is dropped when the key is handed out, since the reconcile that follows looks at everything
and sets its own.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, TypeVar

from nodewright.runtime.queues.fair_queue import FairQueue

K = TypeVar("K")


def _no_group(_key: object) -> str:
    return ""


class Lane(IntEnum):
    """Smaller is sooner."""

    URGENT = 0
    """Deletions and health: they free what others wait for, and they finish what was begun."""
    NEW = 1
    """Not looked at yet: a host that is made first is up first, and the rest can be written meanwhile."""
    NORMAL = 2
    RESYNC = 3
    """Found by a list or by a timer: nobody waits for it."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds before try n: ``first * 2**(n-1)`` up to ``longest``, times a random 0.5 to 1.5."""

    first: float = 0.05
    longest: float = 60.0


class WorkQueue(Generic[K]):
    """One event loop. Bounded by the number of distinct keys, each of which is held at most once."""

    EVERY_NTH_TO_THE_LAST_LANES = 8
    """One in so many picks takes from one of the two last lanes, which take turns in that, so that neither starves."""

    def __init__(
        self,
        backoff: Backoff | None = None,
        seed: int | None = None,
        *,
        group_of: Callable[[K], str] = _no_group,
        share: int | None = None,
        kept: int = 0,
    ) -> None:
        """``share``: keys of one group that are handed out at a time; None: any number. ``kept``: of these, how many
        are for the lanes URGENT and NEW alone.

        A share of 24, of which 6 are kept, and 18 keys of the group are handed out: the next one must be urgent or new.
        """
        self._backoff = backoff or Backoff()
        self._random = random.Random(seed)  # noqa: S311  (jitter)
        self._group_of = group_of
        self._share = share
        self._kept = kept
        self._held: Counter[str] = Counter()
        """Keys that are handed out, by group."""
        self._set_aside: set[K] = set()
        """Keys that are handed out and take no worker."""
        self._lanes: tuple[FairQueue[K], ...] = tuple(FairQueue() for _ in Lane)
        self._waiting: dict[K, tuple[Lane, float]] = {}
        self._busy: dict[K, Lane | None] = {}
        self._came_from: dict[K, Lane] = {}
        """The lanes of the keys that are handed out."""
        self._failures: dict[K, int] = {}
        self._due: dict[K, tuple[float, Lane, int]] = {}
        """The timer of each key, with the number of its entry in the heap; other entries of the key are void."""
        self._heap: list[tuple[float, int, K]] = []
        self._sequence = 0
        self._timer: asyncio.TimerHandle | None = None
        self._getters: deque[asyncio.Future[None]] = deque()
        self._picks = 0
        self._closed = False

    def __len__(self) -> int:
        """Keys that could be handed out now."""
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        """Nothing waits and nobody works; timers may still be set."""
        return not self._waiting and not self._busy

    @property
    def oldest(self) -> float:
        """Seconds that the first of the waiting keys has waited; 0 if none does."""
        since = min((since for _, since in self._waiting.values()), default=None)
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    @property
    def backing_off(self) -> int:
        """Keys whose last reconcile failed."""
        return len(self._failures)

    @property
    def next_due(self) -> float | None:
        """Loop time of the earliest timer."""
        return min((due for due, _, _ in self._due.values()), default=None)

    def add(self, key: K, lane: Lane = Lane.NORMAL) -> None:
        """Hand out ``key`` as soon as possible; of several adds the most urgent lane counts."""
        if self._closed:
            return
        if key in self._busy:
            before = self._busy[key]
            self._busy[key] = lane if before is None else min(before, lane)
            return
        waiting = self._waiting.get(key)
        if waiting is not None and waiting[0] <= lane:
            return
        since = waiting[1] if waiting is not None else asyncio.get_running_loop().time()
        self._waiting[key] = (lane, since)
        self._lanes[lane].append(
            self._group_of(key), key
        )  # an entry left in a slower lane is passed over when it comes up
        self._wake_one()

    def add_after(self, key: K, seconds: float, lane: Lane = Lane.NORMAL) -> None:
        """Hand out ``key`` in ``seconds``; of several timers of a key the earliest counts."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(key, lane)
            return
        due = asyncio.get_running_loop().time() + seconds
        before = self._due.get(key)
        if before is not None and before[0] <= due:
            return
        self._sequence += 1
        self._due[key] = (due, lane, self._sequence)
        heapq.heappush(self._heap, (due, self._sequence, key))
        if len(self._heap) > 2 * len(self._due) + 64:
            self._forget_dropped_timers()
        if self._heap[0][0] == due:
            self._arm()

    def retry(self, key: K, lane: Lane = Lane.NORMAL, at_least: float = 0.0) -> float:
        """``add_after`` with exponential back-off; answers the seconds."""
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        pause: float = min(self._backoff.first * 2 ** min(failures - 1, 30), self._backoff.longest)
        pause = max(at_least, pause * self._random.uniform(0.5, 1.5))
        self.add_after(key, pause, lane)
        return pause

    def succeeded(self, key: K) -> None:
        """The next ``retry`` starts from the first back-off again."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    async def get(self) -> tuple[K, float]:
        """The next key and the seconds it waited. Must be followed by ``done``. Raises QueueClosed."""
        while True:
            if self._closed:
                raise QueueClosedError
            picked = self._pick()
            if picked is not None:
                return picked
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                if getter in self._getters:
                    self._getters.remove(getter)
                elif getter.done():
                    self._wake_one()  # this call had been chosen: pass the turn on
                raise

    def lane_of(self, key: K) -> Lane:
        """The lane from which ``key`` was handed out; NORMAL if it was not."""
        return self._came_from.get(key, Lane.NORMAL)

    def set_aside(self, key: K) -> None:
        """``key`` is still busy and takes no worker any more, so it counts no longer for the share of its group."""
        if key not in self._set_aside:
            self._set_aside.add(key)
            self._let_go(key)
            if self._waiting:
                self._wake_one()

    def _let_go(self, key: K) -> None:
        group = self._group_of(key)
        self._held[group] -= 1
        if not self._held[group]:
            del self._held[group]

    def done(self, key: K) -> None:
        again = self._busy.pop(key)
        del self._came_from[key]
        if key in self._set_aside:
            self._set_aside.discard(key)
        else:
            self._let_go(key)
        if again is not None:
            self.add(key, again)
        elif self._waiting:
            self._wake_one()  # its group may have waited for this

    def close(self) -> None:
        """Workers that ask for a key get QueueClosed from now on."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        while self._getters:
            self._wake_one()

    def _pick(self) -> tuple[K, float] | None:
        if not self._waiting:
            return None
        self._picks += 1
        for lane in self._order():
            keys = self._lanes[lane]
            may = self._may if lane <= Lane.NEW else self._may_wait
            while (key := keys.pop(may)) is not None:
                waiting = self._waiting.get(key)
                if waiting is None or waiting[0] != lane:
                    continue
                del self._waiting[key]
                self._due.pop(key, None)
                self._busy[key] = None
                self._came_from[key] = lane
                self._held[self._group_of(key)] += 1
                return key, asyncio.get_running_loop().time() - waiting[1]
        return None

    def _order(self) -> tuple[Lane, ...]:
        turn, rest = divmod(self._picks, self.EVERY_NTH_TO_THE_LAST_LANES)
        if rest:
            return tuple(Lane)
        last = (Lane.RESYNC, Lane.NORMAL) if turn % 2 else (Lane.NORMAL, Lane.RESYNC)
        return (*last, Lane.URGENT, Lane.NEW)

    def _may(self, group: str) -> bool:
        return self._share is None or self._held[group] < self._share

    def _may_wait(self, group: str) -> bool:
        return self._share is None or self._held[group] < self._share - self._kept

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._heap:
            self._timer = asyncio.get_running_loop().call_at(self._heap[0][0], self._ring)

    def _forget_dropped_timers(self) -> None:
        self._heap = [entry for entry in self._heap if self._is_live(entry)]
        heapq.heapify(self._heap)

    def _is_live(self, entry: tuple[float, int, K]) -> bool:
        timer = self._due.get(entry[2])
        return timer is not None and timer[2] == entry[1]

    def _ring(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            if self._is_live(entry):
                key = entry[2]
                self.add(key, self._due.pop(key)[1])
        self._arm()


class QueueClosedError(Exception):
    """The queue is closed: stop working."""
