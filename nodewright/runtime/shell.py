"""The one generic shell around every room: wake, observe, plan, execute, and again.

    change -> Wake.keys -> queue -> round: needs -> hosts -> observe -> plan -> execute -> outcome -> timer

There is no decision here about what should be. A round that fails is repeated with back-off; an exception in a room is
a bug that must not touch any other key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, assert_never

import structlog

from api.secrets import secret_values
from controllers.kernel.actions import Create
from controllers.kernel.plan import Blocked, Failed, Outcome, Plan, Settled, Wait
from controllers.kernel.refs import NODE, POD, Key, is_deleting, uid_of
from controllers.kernel.room import Room, Wake
from controllers.kernel.view import HostReads
from nodewright.runtime import logs, metrics, tracing
from nodewright.runtime.brake import Brake
from nodewright.runtime.cache.cache import Cache, CacheView, Listener
from nodewright.runtime.cache.store import Change
from nodewright.runtime.executor import Execution, Executor, Hands
from nodewright.runtime.hosts.directory import HostDirectory
from nodewright.runtime.options import RoomOptions
from nodewright.runtime.queue import Lane, QueueClosedError, WorkQueue

_log = structlog.get_logger("nodewright.shell")

_INCOMPLETE_RETRY = 1.0
"""Seconds until a key is tried again whose kinds are not completely read (a lost API server)."""


class _Parked:
    """The round goes on when something else (a host list) has come."""


_PARKED = _Parked()


@dataclass(frozen=True, slots=True)
class Facts:
    """What rounds read from."""

    cache: Cache
    hosts: HostDirectory


class Controller:
    """One room at work."""

    def __init__(self, room: Room[Any], facts: Facts, hands: Hands, options: RoomOptions | None = None) -> None:
        self.room = room
        self.queue: WorkQueue[Key] = WorkQueue((options or RoomOptions()).backoff)
        self._options = options or RoomOptions()
        self._cache = facts.cache
        self._hosts = facts.hosts
        self._now = hands.now
        self._executor = Executor(room.name, hands)
        self._unresolved: dict[Key, list[Create]] = {}
        self._uid_of: dict[Key, str] = {}
        self._key_of: dict[str, Key] = {}
        self._brake: Brake[Key] = Brake()
        self._workers: list[asyncio.Task[None]] = []
        self._resync: asyncio.Task[None] | None = None
        for wake in room.wakes:
            facts.cache.listen(wake.kind, self._listener(wake))
        facts.hosts.listen(self._host_changed)

    def start(self) -> None:
        """Begin with rounds; every kind of ``room.reads`` should be complete by now."""
        for number in range(self._options.workers):
            self._workers.append(asyncio.create_task(self._work(), name=f"{self.room.name}-{number}"))
        self._resync = asyncio.create_task(self._resync_now_and_then(), name=f"{self.room.name}-resync")

    async def stop(self, grace: float) -> None:
        """Begin no more rounds; wait ``grace`` seconds for those under way, then cancel them."""
        self.queue.close()
        if self._resync is not None:
            self._resync.cancel()
        if self._workers:
            _, late = await asyncio.wait(self._workers, timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def step(self, key: Key) -> None:
        """One round for ``key``, with its outcome handled. Never raises but CancelledError."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        keys = self._keys_of(key)
        with logs.about(keys), tracing.span(f"round {self.room.name}", keys) as span:
            try:
                result = await self._round(key)
            except Exception:
                metrics.of(metrics.ROOM_ERRORS, self.room.name).inc()
                pause = self._retry(key)
                with logs.hiding(secret_values(self._cache.stores[self.room.kind].get(key))):
                    _log.exception("controller failed", retry_in=round(pause, 2))
                result = "error"
            span.set_attribute("result", result)
        metrics.of(metrics.ROUNDS, self.room.name, result).inc()
        metrics.of(metrics.ROUND_SECONDS, self.room.name).observe(loop.time() - started)

    async def _work(self) -> None:
        while True:
            try:
                key, waited = await self.queue.get()
            except QueueClosedError:
                return
            metrics.of(metrics.QUEUE_SECONDS, self.room.name).observe(waited)
            try:
                await self.step(key)
            finally:
                self.queue.done(key)

    def _keys_of(self, key: Key) -> Mapping[str, str]:
        """What every line and span of a round says of its object; ``uid`` "" if it is not there."""
        found = self._cache.stores[self.room.kind].get(key)
        return {
            "controller": self.room.name,
            "kind": self.room.kind.name,
            "namespace": key.namespace,
            "name": key.name,
            "uid": uid_of(found) if found is not None else "",
        }

    def _retry(self, key: Key, at_least: float = 0.0) -> float:
        metrics.of(metrics.RETRIES, self.room.name).inc()
        return self.queue.retry(key, at_least=at_least)

    async def _round(self, key: Key) -> str:
        if key in self._unresolved and not await self._resolved(key):
            return "unresolved"
        view = self._cache.view(self._now())
        if not all(view.complete(kind) for kind in self.room.reads):
            self.queue.add_after(key, _INCOMPLETE_RETRY, Lane.RESYNC)
            return "incomplete"
        hosts = self._look(key, view)
        if isinstance(hosts, _Parked):
            return "parked"
        observed = self.room.observe(key, view, hosts)
        if observed is None:
            self._forget(key)
            return "gone"
        plan = self.room.plan(observed)
        self._explain(plan)
        execution = await self._executor.execute(plan)
        result = self._settle(key, plan, execution)
        if execution.writes:
            await self._rest(key, plan)
        return result

    async def _rest(self, key: Key, plan: Plan) -> None:
        """Hold the key back if it writes in round after round."""
        pause = self._brake.wrote(key, asyncio.get_running_loop().time())
        if pause:
            why = next((action.why for action in plan.actions()), "")
            metrics.of(metrics.ROUNDS_HELD_BACK, self.room.name).inc()
            _log.warning("writes in every round, held back", last=why)
            await asyncio.sleep(pause)

    def _look(self, key: Key, view: CacheView) -> HostReads | _Parked | None:
        need = self.room.needs(key, view)
        if need is None:
            return None
        uid = need.machine_uid
        self._remember(key, uid)
        primary = view.get(self.room.kind, key)
        if primary is None or is_deleting(primary):
            self._hosts.withdraw(uid)  # what has not been asked of the provider yet must not be asked any more
        return self._hosts.look(need) or _PARKED

    def _remember(self, key: Key, uid: str) -> None:
        before = self._uid_of.get(key)
        if before != uid:
            if before is not None:
                self._key_of.pop(before, None)
                self._hosts.forget(before)
            self._uid_of[key] = uid
            self._key_of[uid] = key

    def _forget(self, key: Key) -> None:
        self.queue.succeeded(key)
        self._brake.forget(key)
        uid = self._uid_of.pop(key, None)
        if uid is not None:
            self._key_of.pop(uid, None)
            self._hosts.forget(uid)

    async def _resolved(self, key: Key) -> bool:
        """Send unresolved creations again; their owner is not planned before all are resolved."""
        if self._cache.stores[self.room.kind].get(key) is None:
            del self._unresolved[key]  # the owner is gone; what may have been created is garbage-collected
            return True
        execution = await self._executor.resolve(self._unresolved.pop(key))
        if execution.unresolved:
            self._unresolved[key] = execution.unresolved
            self._retry(key)
            return False
        return True

    def _settle(self, key: Key, plan: Plan, execution: Execution) -> str:
        if execution.unresolved:
            self._unresolved[key] = execution.unresolved
        if execution.ok:
            self.queue.succeeded(key)
            self._set_timer(key, plan.outcome)
            return type(plan.outcome).__name__.lower()
        serious = [failure for failure in execution.failures if not failure.stale]
        asked = max((getattr(failure.error, "retry_after", None) or 0.0 for failure in serious), default=0.0)
        pause = self._retry(key, asked)
        if serious:
            first = serious[0]
            _log.warning("action failed", action=type(first.action).__name__, error=str(first.error),
                         failed=len(serious), retry_in=round(pause, 2))  # fmt: skip
            return "failed"
        return "unresolved" if execution.unresolved else "stale"

    def _set_timer(self, key: Key, outcome: Outcome) -> None:
        match outcome:
            case Settled() | Failed():
                return
            case Wait(after=after) | Blocked(after=after):
                self.queue.add_after(key, max(after, 0.0))
            case _:
                assert_never(outcome)

    @staticmethod
    def _explain(plan: Plan) -> None:
        for action in plan.actions():
            _log.debug("action", action=type(action).__name__, why=action.why)
        for note in plan.notes:
            _log.debug("not done", why=note)

    def _listener(self, wake: Wake) -> Listener:
        own_kind = wake.kind == self.room.kind
        urgent_kind = wake.kind in {NODE, POD}

        def changed(change: Change, from_list: bool) -> None:
            old, new = change.old, change.new
            lane = Lane.RESYNC if from_list else Lane.NORMAL
            if new is None or urgent_kind or (own_kind and is_deleting(new)):
                lane = Lane.URGENT
            try:
                if old is not None and new is not None and wake.ignores is not None and wake.ignores(old, new):
                    return
                self._wake(wake, change, lane)
            except Exception:
                metrics.of(metrics.ROOM_ERRORS, self.room.name).inc()
                _log.exception(
                    "wake failed",
                    controller=self.room.name,
                    kind=wake.kind.name,
                    namespace=change.key.namespace,
                    name=change.key.name,
                )

        return changed

    def _wake(self, wake: Wake, change: Change, lane: Lane) -> None:
        """Both versions name keys: an object that moved from one owner to another concerns both."""
        view = self._cache.view(self._now())
        keys: set[Key] = set()
        for version in (change.new, change.old):
            if version is not None:
                keys.update(wake.keys(version, view))
        for key in keys:
            pause = wake.gathers(key, view) if wake.gathers is not None else 0.0
            self.queue.add_after(key, pause, lane)

    def _host_changed(self, uid: str) -> None:
        key = self._key_of.get(uid)
        if key is None:
            return
        primary = self._cache.stores[self.room.kind].get(key)
        self.queue.add(key, Lane.URGENT if primary is not None and is_deleting(primary) else Lane.NORMAL)

    async def _resync_now_and_then(self) -> None:
        """Look at everything once in a while: nobody's mistake may last for ever."""
        while True:
            await asyncio.sleep(self._options.resync)
            for key in self._keys():
                self.queue.add(key, Lane.RESYNC)

    def _keys(self) -> Iterable[Key]:
        return self._cache.stores[self.room.kind].keys()
