"""A control plane in a thread with a loop of its own, for callers that block: scripts, notebooks, subprocesses."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from nodewright.apiserver.app.config import APIServerConfig
from nodewright.apiserver.app.plane import APIServer

T = TypeVar("T")
_START_SECONDS = 120.0
_STOP_SECONDS = 15.0


class BackgroundPlane:
    """A plane that runs elsewhere. Its `store` and `faults` belong to its thread: touch them through `call`."""

    def __init__(self, plane: APIServer, loop: asyncio.AbstractEventLoop) -> None:
        self.plane = plane
        self._loop = loop

    def call(self, function: Callable[[APIServer], T], timeout_seconds: float = 10.0) -> T:
        """Run a function of the plane in its thread and give the result; raises what it raises."""

        async def run() -> T:
            return function(self.plane)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(timeout_seconds)


@contextmanager
def serve_in_background(config: APIServerConfig) -> Iterator[BackgroundPlane]:
    """Serve until the block ends. Raises what starting raises, TimeoutError if it takes too long."""
    started: list[BackgroundPlane] = []
    failed: list[BaseException] = []
    ready = threading.Event()
    stop: list[Callable[[], object]] = []

    async def serve() -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        stop.append(lambda: loop.call_soon_threadsafe(over.set))
        async with APIServer(config) as plane:
            started.append(BackgroundPlane(plane, loop))
            ready.set()
            await over.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run, name="nodewright-controlplane", daemon=True)
    thread.start()
    if not ready.wait(_START_SECONDS):
        raise TimeoutError(f"the control plane was not ready after {_START_SECONDS:.0f} s")
    if failed:
        raise failed[0]
    try:
        yield started[0]
    finally:
        if thread.is_alive():
            stop[0]()
        thread.join(_STOP_SECONDS)
    if failed:
        raise failed[0]
