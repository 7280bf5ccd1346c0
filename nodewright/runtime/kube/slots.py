"""Requests in flight: bounded in all, and for each namespace, so that one of them can't keep all others waiting.

A request counts for the namespace of the object that is reconciled (``working_for``), wherever the request goes: Nodes
and Machines of one tenant are one tenant's. What is asked for outside of a reconcile (lists, Leases) counts for nobody
and waits only for the bound of all.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar

from nodewright.runtime.queues.fair_queue import FairQueue

_working_for: ContextVar[str] = ContextVar("nodewright_working_for", default="")


@contextmanager
def working_for(namespace: str) -> Iterator[None]:
    """Requests made inside, and in tasks begun inside, count for ``namespace``."""
    token = _working_for.set(namespace)
    try:
        yield
    finally:
        _working_for.reset(token)


class Slots:
    """``share``: slots that one namespace may have at a time, of ``slots``. Namespaces that wait take turns."""

    def __init__(self, slots: int, share: int) -> None:
        self._free = slots
        self._share = share
        self._held: Counter[str] = Counter()
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """A slot, for as long as the block lasts."""
        namespace = _working_for.get()
        if self._free > 0 and self._may(namespace) and not self._waiting.of(namespace):
            self._take(namespace)
        else:
            await self._turn(namespace)
        try:
            yield
        finally:
            self._give_back(namespace)

    async def _turn(self, namespace: str) -> None:
        """Wait until a slot was taken for this call."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(namespace, turn, turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._give_back(namespace)  # it had come just now
            else:
                with suppress(KeyError):  # it was passed over already
                    self._waiting.remove(namespace, turn)
            raise

    def _may(self, namespace: str) -> bool:
        return not namespace or self._held[namespace] < self._share

    def _take(self, namespace: str) -> None:
        self._free -= 1
        self._held[namespace] += 1

    def _give_back(self, namespace: str) -> None:
        self._free += 1
        self._held[namespace] -= 1
        if not self._held[namespace]:
            del self._held[namespace]
        while self._free > 0:
            group = self._waiting.next_group(self._may)
            if group is None:
                return
            turn = self._waiting.pop(self._may)
            if turn is not None and not turn.cancelled():
                self._take(group)
                turn.set_result(None)
