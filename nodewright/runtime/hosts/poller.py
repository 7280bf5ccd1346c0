"""Lists one scope again and again: as often as somebody needs it, as rarely as nothing changes.

One list at a time serves everybody who waits. Its pace follows how long a list takes, and after an error the
reaction of the error's class.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context

import structlog

from nodewright.runtime.hosts.limits import backoff
from nodewright.runtime.hosts.scope import Dependencies, Scope
from nodewright.runtime.hosts.secrets import redacted
from nodewright.runtime.telemetry import metrics, tracing
from providers.base.contract import HostState
from providers.base.errors import ErrorClass, ProviderError

_log = structlog.get_logger("nodewright.hosts")


_LONGEST_TURN = 60.0
"""Seconds that may pass between a Machine's asking for a list and its turn to read it."""


class Poller:
    """``want`` asks for a list soon; the callers hear (``changed``) when one has come, or will not soon.

    ``pause``: seconds between two lists that the provider asks for, at least. ``is_over``: asked after each list,
    whether it was the last one.
    """

    def __init__(
        self, scope: Scope, deps: Dependencies, pause: float = 0.0, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        self._scope = scope
        self._deps = deps
        self._options = deps.options
        self._pause = pause
        self._is_over = is_over
        self._waiting: set[str] = set()
        self._asked: dict[str, float] = {}
        self._wanted = asyncio.Event()
        self._late = False
        """The list that runs has used up everybody's patience."""
        self._ended_at = float("-inf")
        self._took = 0.0
        self._failures = 0
        self._not_before = float("-inf")
        # It serves all Machines: nothing of the reconcile that happened to be the first may stick to its log lines.
        self._task = asyncio.create_task(self._run(), name=f"list {scope.name}", context=Context())

    def want(self, uid: str) -> str:
        """Ask for a list for ``uid``. Answers "" if one will come soon, else why that can't be expected."""
        self._waiting.add(uid)
        self._asked.setdefault(uid, self._time())
        self._wanted.set()
        if self._scope.list_problem:
            return self._scope.list_problem
        return f"the list of {self._scope.name} takes long" if self._late else ""

    def fresh_enough(self, uid: str, fresh_within: float) -> float:
        """How old a list may be for ``uid`` (seconds): whatever was begun after it asked for one will do.

        Without this a thousand Machines that all want a list of the last second would starve each other: when the turn
        of the last one comes, the list that all have waited for is older than that.
        """
        asked = self._asked.get(uid)
        return fresh_within if asked is None else max(fresh_within, min(self._time() - asked, _LONGEST_TURN))

    def served(self, uid: str) -> None:
        """``uid`` has got what it asked for."""
        self._asked.pop(uid, None)

    def forget(self, uid: str) -> None:
        self._waiting.discard(uid)
        self._asked.pop(uid, None)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while not self._is_over():
            await self._until_due()
            self._wanted.clear()
            await self._list()

    async def _until_due(self) -> None:
        if self._ended_at == float("-inf"):
            return
        gap = self._took * self._options.poll_share
        changing = self._scope.listing.changing or self._scope.calls > 0
        pace = self._options.busy_poll if changing else self._options.steady_poll
        due = self._not_before if self._failures else self._ended_at + max(pace, gap, self._pause)
        try:
            async with asyncio.timeout_at(due):
                await self._wanted.wait()
        except TimeoutError:
            return
        shortest = max(self._options.shortest_poll, self._took, self._pause)
        soonest = max(self._ended_at + shortest, self._not_before)
        await asyncio.sleep(max(0.0, soonest - self._time()))

    async def _list(self) -> None:
        started = self._time()
        impatience = asyncio.get_running_loop().call_later(self._options.patience, self._lose_patience)
        error: ProviderError | None = None
        try:
            with tracing.span("provider list", {"scope": self._scope.name}):
                async with asyncio.timeout(self._options.list_timeout):
                    hosts = await self._scope.provider().list()
        except ProviderError as raised:
            error = redacted(raised)
        except TimeoutError:
            error = ProviderError(ErrorClass.TIMEOUT, f"no list within {self._options.list_timeout:.0f} s")
        except Exception as raised:
            _log.exception("provider raised an unexpected error", scope=self._scope.name, call="list")
            error = ProviderError(ErrorClass.INTERNAL, f"unexpected {type(raised).__name__}")
        finally:
            impatience.cancel()
            self._late = False
            self._ended_at = self._time()
            self._took = self._ended_at - started
        metrics.of(metrics.HOST_SECONDS, self._scope.name, "list").observe(self._took)
        metrics.of(metrics.HOST_CALLS, self._scope.name, "list", error.error_class.value if error else "ok").inc()
        if error is not None:
            self._failed(error)
            return
        self._failures, self._not_before = 0, float("-inf")
        self._scope.list_problem = ""
        changed = self._scope.listing.listed(hosts, started)
        self._report()
        for uid in changed - self._waiting:
            self._deps.changed(uid)
        self._tell_waiting(forget=True)
        self._scope.listed()

    def _failed(self, error: ProviderError) -> None:
        """Waiting callers are notified, and again when a list succeeds."""
        self._failures += 1
        pause = backoff(error.error_class, self._failures, self._deps.random, error.retry_after)
        self._not_before = self._ended_at + pause
        news = not self._scope.list_problem
        self._scope.list_problem = f"hosts of {self._scope.name} can't be listed: {error.message}"
        if news:
            _log.warning("hosts can't be listed", scope=self._scope.name, error=str(error), retry_in=round(pause, 1))
            self._tell_waiting()

    def _lose_patience(self) -> None:
        self._late = True
        self._tell_waiting()

    def _tell_waiting(self, forget: bool = False) -> None:
        waiting = list(self._waiting)
        if forget:
            self._waiting.clear()
        for uid in waiting:
            self._deps.changed(uid)

    def _report(self) -> None:
        states = self._scope.listing.states()
        for state in HostState:
            metrics.of(metrics.HOSTS, self._scope.name, state.value).set(states[state])
        for host in self._scope.listing.duplicates:
            _log.error(
                "two hosts carry the same Machine UID", scope=self._scope.name, host=host.id, uid=host.machine_uid
            )

    def _time(self) -> float:
        return asyncio.get_running_loop().time()
