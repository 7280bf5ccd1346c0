"""One change at a time, whoever asks how often: a client that repeats itself waits for what it asked for before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable

from nodewright.runtime.telemetry import metrics

MOST_WAITING = 1000


class OperationError(Exception):
    """How an operation failed, as its client sees it."""

    def __init__(self, status: int, message: str, detail: str = "") -> None:
        super().__init__(f"{message}: {detail}" if detail else message)
        self.status = status
        self.message = message
        self.detail = detail


Work = Callable[[Callable[[], str]], Awaitable[None]]
"""Given what tells it why to stop, "" as long as it may go on."""


class Operations:
    """Runs them one after the other. They outlive their clients' connections, but not ``close``.

    ``forbidden``: why nothing may be done just now, "" if it may.
    """

    def __init__(self, forbidden: Callable[[], str] = str) -> None:
        self._forbidden = forbidden
        self._turn = asyncio.Lock()
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}
        self._newest: dict[str, Hashable] = {}
        self._closing = ""

    @property
    def under_way(self) -> list[str]:
        return [str(key) for key in self._tasks]

    async def run(self, topic: str, key: Hashable, work: Work) -> None:
        """Join the operation of the same ``key``, or begin one. A later one of the same ``topic`` (if there is one)
        with another key supersedes it.

        Raises OperationError; of whatever else the work raises, all who wait for it hear.
        """
        if topic:
            self._newest[topic] = key
        task = self._tasks.get(key)
        if task is None:
            if self._closing or len(self._tasks) >= MOST_WAITING:
                raise OperationError(503, "not taken", self._closing or f"{MOST_WAITING} operations wait already")
            task = asyncio.create_task(self._do(topic, key, work), name=f"operation {key}")
            self._tasks[key] = task
            metrics.CLOUDPOOL_OPERATIONS.set(len(self._tasks))
            task.add_done_callback(lambda done: self._end(key, done))
        await asyncio.shield(task)

    async def close(self, why: str) -> None:
        """Let each stop where it still can, and wait for that."""
        self._closing = why
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _do(self, topic: str, key: Hashable, work: Work) -> None:
        def stops() -> str:
            newest = self._newest.get(topic, key)
            refusal = self._closing or self._forbidden()
            return refusal or (f"superseded by a later request: {newest}" if newest != key else "")

        async with self._turn:
            refusal = stops()
            if refusal:
                raise OperationError(503 if self._closing else 500, "not begun", refusal)
            await work(stops)

    def _end(self, key: Hashable, task: asyncio.Task[None]) -> None:
        self._tasks.pop(key, None)
        metrics.CLOUDPOOL_OPERATIONS.set(len(self._tasks))
        if not task.cancelled():
            task.exception()  # whoever waited has heard of it; perhaps nobody did
