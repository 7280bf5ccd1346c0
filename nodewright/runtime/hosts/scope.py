"""One account or region of one provider: its shared list, its calls, its limits.

Calls run in the background, deletes before reboots, updates and creates; among those of one kind namespaces take turns.
Reconciles see their results later through ``Listing``, ``Attempts`` and the answers. A Machine has at most one call at
a time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, TypeVar

import structlog

from controllers.kernel.actions import DeleteHost, HostAction
from controllers.kernel.view import Attempt
from nodewright.runtime.hosts.attempts import Attempts
from nodewright.runtime.hosts.calls import ORDER, Answer, Call, call_of, made
from nodewright.runtime.hosts.limits import Breaker, TokenBucket
from nodewright.runtime.hosts.listing import Listing
from nodewright.runtime.hosts.options import HostOptions
from nodewright.runtime.hosts.secrets import redacted, secrets_of
from nodewright.runtime.queues.fair_queue import FairQueue
from nodewright.runtime.telemetry import logs, metrics, tracing
from providers.base.capabilities import HoldsConnections, Quota, ShowsConsole, ShowsQuotas
from providers.base.contract import Host, Problem, Provider, Shape, Updated
from providers.base.errors import ErrorClass, ProviderError

_log = structlog.get_logger("nodewright.hosts")

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What every scope shares. ``changed`` is called with the UID of a Machine whose host facts have changed."""

    options: HostOptions
    now: Callable[[], datetime]
    changed: Callable[[str], None]
    random: Random
    may_call: Callable[[], bool] = lambda: True
    """False: this process does not lead; calls that change hosts are refused at the moment they would be made."""


class Scope:
    """``open_provider`` may fail (no credentials): then every use tries again and reports the same error."""

    def __init__(self, name: str, open_provider: Callable[[], Provider], deps: Dependencies) -> None:
        self.name = name
        self.listing = Listing()
        self.list_problem = ""
        """Why the last list failed; "" if it did not."""
        self._open_provider = open_provider
        self._provider: Provider | None = None
        self._deps = deps
        self._options = deps.options
        self._attempts = Attempts(deps.now, deps.random)
        self._answers: dict[str, Answer] = {}
        self._breaker = Breaker(deps.random)
        self._bucket = TokenBucket(deps.options.calls_per_second, deps.options.burst)
        self._queued: tuple[FairQueue[Call], ...] = tuple(FairQueue() for _ in ORDER)
        """The calls of ``_waiting``, by their order; their key is the UID."""
        self._waiting: dict[str, Call] = {}
        """Calls that have not been made yet, by UID."""
        self._in_flight: dict[str, str] = {}
        self._gone: set[str] = set()
        """UIDs of Machines that went while a call for them ran: they are forgotten again when it ends."""
        self._orphans: set[str] = set()
        """UIDs without a Machine whose hosts are to be removed; nobody forgets them but the list."""
        self._running: set[asyncio.Task[None]] = set()
        self._running_of: Counter[str] = Counter()
        """Calls that run, by namespace."""
        self._creating: Counter[str] = Counter()
        """Creations that run, by namespace."""
        self._namespace_of: dict[str, str] = {}
        """Namespaces of the Machines whose hosts were created here, by UID."""
        self._pump_timer: asyncio.TimerHandle | None = None
        self._closed = False

    def attempt(self, uid: str, spec_hash: str) -> Attempt | None:
        return self._attempts.of(uid, spec_hash)

    def answer(self, uid: str, spec_hash: str) -> Answer | None:
        answer = self._answers.get(uid)
        return answer if answer is not None and answer.spec_hash == spec_hash else None

    def in_flight(self, uid: str) -> str:
        """The call that runs, or waits for its turn; "" if none."""
        return self._in_flight.get(uid, "")

    def queued(self, uid: str) -> str:
        """Why a creation for ``uid`` has not begun though nothing is wrong; "" if none waits for others."""
        call = self._waiting.get(uid)
        if call is None or call.name != "create" or (not self._is_full and self._may_create(call.namespace)):
            return ""
        whose = f"hosts of {self.name}" if self._is_full else f"hosts of {self.name} for namespace {call.namespace}"
        return f"as many {whose} come up as may at once (--hosts-in-flight)"

    @property
    def _is_full(self) -> bool:
        """No more hosts may come up now."""
        return self._creating.total() + len(self.listing.pending) >= self._options.hosts_in_flight

    @property
    def pause(self) -> str:
        """Why calls pause after failures; "" if they don't."""
        if self._breaker.error is None or not self._breaker.is_open(self._time()):
            return ""
        return f"calls pause: {self._breaker.error.error_class}: {self._breaker.error.message}"

    @property
    def calls(self) -> int:
        """Calls that run or wait."""
        return len(self._in_flight)

    def submit(self, action: HostAction) -> bool:
        """Start the call soon. False: not now (one is under way, its back-off is not over, or the scope pauses)."""
        call = call_of(action)
        if not self._closed and call.name == "delete" and self.waits_to_delete(call.uid):
            self._put_in_queue(call)  # the newer order, in the place of the older one
            return True
        if self._closed or call.uid in self._in_flight or self._attempts.must_wait(call.uid, call.name, call.spec_hash):
            return False
        now = self._time()
        if self._breaker.is_open(now):
            self._hold_back(call, now)
            return False
        self._in_flight[call.uid] = call.name
        self._put_in_queue(call)
        self._pump()
        return True

    def _put_in_queue(self, call: Call) -> None:
        before = self._waiting.get(call.uid)
        if before is not None and before.namespace != call.namespace:
            self.withdraw(call.uid)
            self._in_flight[call.uid] = call.name
        self._waiting[call.uid] = call
        self._queued[ORDER[call.name]].append(call.namespace, call, call.uid)

    def waits_to_delete(self, uid: str) -> bool:
        """A deletion of the host of ``uid`` waits for its turn."""
        call = self._waiting.get(uid)
        return call is not None and call.name == "delete"

    def withdraw(self, uid: str, *, but_deletion: bool = False) -> bool:
        """Take back a call of ``uid`` that has not been made yet. ``but_deletion``: a deletion keeps its place."""
        call = self._waiting.get(uid)
        if call is None or (but_deletion and call.name == "delete"):
            return False
        del self._waiting[uid], self._in_flight[uid]
        self._queued[ORDER[call.name]].remove(call.namespace, uid)
        return True

    def forget(self, uid: str) -> None:
        """The Machine is gone."""
        self.withdraw(uid)
        if uid in self._in_flight:
            self._gone.add(uid)
        self._attempts.forget(uid)
        self._answers.pop(uid, None)
        self._namespace_of.pop(uid, None)

    def provider(self) -> Provider:
        """Raises ProviderError."""
        if self._provider is None:
            try:
                self._provider = self._open_provider()
            except ProviderError:
                raise
            except Exception as error:
                _log.exception("provider could not be opened", scope=self.name)
                raise ProviderError(ErrorClass.INTERNAL, f"could not be opened: {type(error).__name__}") from error
        return self._provider

    async def shape(self, config: Mapping[str, Any]) -> Shape:
        """What a host of ``config`` would be like. It changes nothing and waits for no turn. Raises ProviderError."""
        return await self._in_time(self.provider().shape(config))

    async def validate(self, config: Mapping[str, Any]) -> tuple[Problem, ...]:
        """What the provider finds wrong with a config in its cloud, as above. Raises ProviderError."""
        return await self._in_time(self.provider().validate(config))

    async def console(self, host: Host) -> str:
        """What a host has printed, as above; "" of a provider that can't tell. Raises ProviderError."""
        provider = self.provider()
        return await self._in_time(provider.console(host)) if isinstance(provider, ShowsConsole) else ""

    async def quotas(self) -> tuple[Quota, ...]:
        """What is used of its limits, as above; () of a provider that can't tell. Raises ProviderError."""
        provider = self.provider()
        return await self._in_time(provider.quotas()) if isinstance(provider, ShowsQuotas) else ()

    def remove_orphan(self, action: DeleteHost) -> bool:
        """As ``submit``, for a host whose Machine is gone: its failures are forgotten once a list shows it no more."""
        self._orphans.add(action.identity.machine_uid)
        return self.submit(action)

    def listed(self) -> None:
        """A list has come: what calls wait for may have changed (a host is up, an orphan is gone)."""
        there = self.listing.host
        for uid in [uid for uid in self._orphans if there(uid) is None and uid not in self._in_flight]:
            self._orphans.discard(uid)
            self._attempts.forget(uid)
        self._pump()

    async def close(self, grace: float) -> None:
        """Start no more calls; wait ``grace`` seconds for those that run, then cancel them."""
        self._closed = True
        if self._pump_timer is not None:
            self._pump_timer.cancel()
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def let_go(self) -> None:
        """Nobody needs the scope any more, and none of its calls runs: end what its provider keeps."""
        await self.close(0.0)
        if isinstance(self._provider, HoldsConnections):
            try:
                await self._provider.close()
            except Exception:
                _log.exception("provider could not be closed", scope=self.name)

    def _pump(self) -> None:
        """Start what may start now."""
        while not self._closed and len(self._running) < self._options.calls_at_once:
            now = self._time()
            calls = self._next_queue()
            if calls is None:
                break
            if not self._breaker.allows(now):
                if self._breaker.is_open(now):
                    self._drain(now)
                break
            pause = self._bucket.take(now)
            if pause > 0:
                self._pump_later(pause)
                break
            call = calls.pop(self._may_create if calls is self._queued[ORDER["create"]] else self._may_call)
            assert call is not None
            del self._waiting[call.uid]
            self._start(call)
        metrics.of(metrics.HOST_QUEUE, self.name).set(sum(map(len, self._queued)))

    def _next_queue(self) -> FairQueue[Call] | None:
        for name, index in ORDER.items():
            calls = self._queued[index]
            if name == "create" and (not len(calls) or self._is_full):
                continue
            if calls.next_group(self._may_create if name == "create" else self._may_call) is not None:
                return calls
        return None

    def _may_call(self, namespace: str) -> bool:
        """A provider may take a minute for a call: one namespace leaves a quarter of the calls to others."""
        return self._running_of[namespace] < max(1, self._options.calls_at_once - self._options.calls_at_once // 4)

    def _may_create(self, namespace: str) -> bool:
        """Hosts that never come up keep their places for long: one namespace leaves a tenth of them to others."""
        most = self._options.hosts_in_flight - self._options.hosts_in_flight // 10
        coming = sum(1 for uid in self.listing.pending if self._namespace_of.get(uid) == namespace)
        return self._may_call(namespace) and self._creating[namespace] + coming < most

    def _pump_later(self, pause: float) -> None:
        if self._pump_timer is not None:
            self._pump_timer.cancel()
        self._pump_timer = asyncio.get_running_loop().call_later(pause, self._pump)

    def _start(self, call: Call) -> None:
        self._breaker.started()
        if call.name == "create":
            self._creating[call.namespace] += 1
            self._namespace_of[call.uid] = call.namespace
        name = f"{call.name} {call.action.machine}"
        task = asyncio.create_task(self._run(call), name=name, context=call.begun_in)
        self._running.add(task)
        self._running_of[call.namespace] += 1
        task.add_done_callback(partial(self._ended, call.namespace))

    async def _run(self, call: Call) -> None:
        started = self._time()
        error: ProviderError | None = None
        try:
            with tracing.span(f"provider {call.name}", {"scope": self.name, "uid": call.uid}):
                await self._make(call)
        except ProviderError as raised:
            error = redacted(raised, call.action)
        except asyncio.CancelledError:
            self._breaker.abandoned()
            raise
        except Exception as raised:
            with logs.hiding(secrets_of(call.action)):
                _log.exception("provider raised an unexpected error", scope=self.name, call=call.name)
            error = ProviderError(ErrorClass.INTERNAL, f"unexpected {type(raised).__name__}")
        finally:
            now = self._time()
            self._in_flight.pop(call.uid, None)
            if call.name == "create":
                _count_down(self._creating, call.namespace)
            self.listing.called(call.uid, now)
            gone = call.uid in self._gone
            self._gone.discard(call.uid)
        metrics.of(metrics.HOST_SECONDS, self.name, call.name).observe(now - started)
        metrics.of(metrics.HOST_CALLS, self.name, call.name, error.error_class.value if error else "ok").inc()
        self._settle(call, error, now)
        if gone:
            self.forget(call.uid)
        self._deps.changed(call.uid)

    def _ended(self, namespace: str, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        _count_down(self._running_of, namespace)
        self._pump()

    async def _make(self, call: Call) -> None:
        """The call itself; what it answers is merged at once."""
        if not self._deps.may_call():
            raise ProviderError(ErrorClass.INTERNAL, "this process does not lead any more")
        action, answer = call.action, await self._in_time(made(self.provider(), call.action))
        if isinstance(answer, Host):
            self.listing.created(answer, self._time())
        elif answer is not None:
            self._answers[call.uid] = Answer(call.spec_hash, answer, self._deps.now())
            if isinstance(answer, Updated):
                self.listing.updated(call.uid, call.spec_hash, self._time())
        elif isinstance(action, DeleteHost):
            self.listing.deleting(call.uid, action.host, self._time())

    async def _in_time(self, call: Awaitable[_Answer]) -> _Answer:
        try:
            async with asyncio.timeout(self._options.call_timeout):
                return await call
        except TimeoutError as error:
            text = f"no answer within {self._options.call_timeout:.0f} s"
            raise ProviderError(ErrorClass.TIMEOUT, text) from error

    def _settle(self, call: Call, error: ProviderError | None, now: float) -> None:
        was_open = self._breaker.is_open(now)
        if error is None:
            self._breaker.succeeded()
            self._attempts.forget(call.uid)
        else:
            self._breaker.failed(error, now)
            attempt = self._attempts.failed(call.uid, call.name, call.spec_hash, error)
            log = _log.info if attempt.failures == 1 else _log.debug
            log("provider call failed", scope=self.name, call=call.name, machine=str(call.action.machine),
                error=str(error), failures=attempt.failures)  # fmt: skip
        if self._breaker.is_open(now) and not was_open:
            _log.warning("calls to the provider pause", scope=self.name, why=str(error))
        metrics.of(metrics.HOST_BREAKER, self.name).set(self._breaker.is_open(now))

    def _drain(self, now: float) -> None:
        """The scope pauses: tell every waiting Machine why, instead of letting it wait without a word."""
        for calls in self._queued:
            while (call := calls.pop()) is not None:
                del self._in_flight[call.uid], self._waiting[call.uid]
                self._hold_back(call, now)

    def _hold_back(self, call: Call, now: float) -> None:
        assert self._breaker.error is not None
        assert self._breaker.until is not None
        error, seconds = self._breaker.error, self._breaker.until - now
        paused = ProviderError(error.error_class, f"calls to {self.name} pause: {error.message}")
        self._attempts.held_back(call.uid, call.name, call.spec_hash, paused, seconds)
        self._deps.changed(call.uid)

    def _time(self) -> float:
        return asyncio.get_running_loop().time()


def _count_down(counts: Counter[str], namespace: str) -> None:
    """One less; a namespace of which none are left takes no memory."""
    counts[namespace] -= 1
    if not counts[namespace]:
        del counts[namespace]
