"""When is a change durable, and who hears of it then? Group commit, watch wake-ups and garbage collection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from nodewright.apiserver.store import Store
from nodewright.apiserver.values import ApiError

_LOG = logging.getLogger("nodewright.apiserver")
_GC_STEPS = 200
"""Objects that one round of garbage collection handles before requests get their turn again."""
_RETRY_SECONDS = 0.5
_TICK_SECONDS = 30.0


class Commits:
    """Writes the store's changes down once per turn of the event loop, then wakes the watches they concern.

    All requests handled in one turn share one transaction. Nothing is answered or shown to a watcher before it
    is durable, so no client ever knows of a state that a crash undoes.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed: set[str] = set()
        self._scheduled = False
        self._waiting: asyncio.Future[None] | None = None
        self._listeners: dict[str, set[Callable[[], None]]] = {}
        self._stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._due: asyncio.TimerHandle | None = None
        self.fault: ApiError | None = None
        """Why nothing can be written just now."""
        store.on_change(self._on_change)

    def start(self) -> None:
        """Write down what making the store has changed, and begin with what a restart left to collect.

        Needs a running loop. Raises ApiError 507 if the journal can't be written.
        """
        self._store.flush()
        self._changed.clear()
        self._tick()

    def stop(self) -> None:
        """Do nothing more: the store is about to be closed, which writes down what is left."""
        self._stopped = True
        for timer in (self._timer, self._due):
            if timer is not None:
                timer.cancel()

    def check_writable(self) -> None:
        """Refuse a write while the journal can't take one. Raises ApiError 507."""
        if self.fault is not None:
            raise self.fault

    async def settled(self) -> None:
        """Return once everything committed so far is durable. Raises ApiError 507 if it can't be, and was undone."""
        if self._changed:
            if self._waiting is None:
                self._waiting = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._waiting)

    def make_durable(self) -> None:
        """Write down at once what is not yet durable, because somebody is about to see it. Raises ApiError 507."""
        if self._changed:
            try:
                self._store.flush()
            except ApiError as error:
                self._fail(error)
                raise

    def listen(self, group_resource: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after each durable change of this kind, until the function that is given back is called."""
        listeners = self._listeners.setdefault(group_resource, set())
        listeners.add(wake)

        def forget() -> None:
            listeners.discard(wake)
            if not listeners and self._listeners.get(group_resource) is listeners:
                del self._listeners[group_resource]

        return forget

    def _tick(self) -> None:
        """Let the collector look for what falls due without a write: Events grow old."""
        self._timer = asyncio.get_running_loop().call_later(_TICK_SECONDS, self._tick)
        self._schedule()

    def _on_change(self, group_resource: str) -> None:
        self._changed.add(group_resource)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        if self._stopped:
            return
        try:
            if self.fault is not None:
                self._store.recover()
                self.fault = None
            self._store.flush()
        except ApiError as error:
            self._fail(error)
            return
        changed, self._changed = self._changed, set()
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
        for group_resource in changed:
            for wake in tuple(self._listeners.get(group_resource, ())):
                wake()
        self._collect()

    def _collect(self) -> None:
        try:
            more = self._store.run_gc(limit=_GC_STEPS)
        except ApiError as error:
            self._fail(error)
            return
        if more:
            self._schedule()
        elif (seconds := self._store.gc_due_seconds) is not None:
            if self._due is not None:
                self._due.cancel()
            self._due = asyncio.get_running_loop().call_later(seconds, self._schedule)

    def _fail(self, error: ApiError) -> None:
        """Tell those who wait, and try again a little later. What was not written is undone."""
        if self.fault is None:
            _LOG.error("%s", error.message)
        self.fault = error
        self._changed.clear()
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)
            waiting.exception()
        self._scheduled = True
        self._due = asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._run)
