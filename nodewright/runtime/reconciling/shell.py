"""The one generic shell around every reconciler: wake, observe, plan, execute, and again.

    change -> Wake.keys -> queue -> reconcile: needs -> hosts -> observe -> plan -> execute -> outcome -> timer

There is no decision here about what should be. A reconcile that fails is repeated with back-off; an exception in a
reconciler is a bug that must not touch any other key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar, assert_never

import structlog

from api.secrets import secret_values
from controllers.kernel.actions import Create, kind_of
from controllers.kernel.plan import Blocked, Failed, Outcome, Plan, Settled, Wait
from controllers.kernel.reconciler import Reconciler, clusters_served_by
from controllers.kernel.refs import WORKLOAD_KINDS, Key, is_deleting, uid_of
from nodewright.runtime.bootstrap.directory import Bootstraps, NoBootstraps
from nodewright.runtime.cache.cache import Cache, CacheView
from nodewright.runtime.hosts.directory import HostDirectory
from nodewright.runtime.kube.slots import working_for
from nodewright.runtime.queues.queue import Lane, QueueClosedError, WorkQueue
from nodewright.runtime.reconciling.host_looks import HostLooks, Parked
from nodewright.runtime.reconciling.wakes import Wakes
from nodewright.runtime.settings.options import ReconcilerOptions
from nodewright.runtime.telemetry import logs, metrics, tracing
from nodewright.runtime.telemetry.loop_time import LoopTime
from nodewright.runtime.telemetry.plan_metrics import PLAN_METRICS, Source
from nodewright.runtime.workloads.cluster_router import ClusterRouter
from nodewright.runtime.workloads.directory import AllInManagementCluster, Workloads
from nodewright.runtime.writes.executor import Execution, Executor, ExecutorDeps
from nodewright.runtime.writes.failing import MalformedError, Notes
from nodewright.runtime.writes.write_throttle import WriteThrottle, content_of

_log = structlog.get_logger("nodewright.shell")
_R = TypeVar("_R")

_INCOMPLETE_RETRY = 1.0
"""Seconds until a key is tried again whose kinds are not completely read (a lost API server)."""
_UNKNOWN_RETRY = 5.0
"""The same while it is found out where its Cluster's Nodes live; what is found wakes the key earlier."""


@dataclass(frozen=True, slots=True)
class _Decided:
    """A reconcile up to its plan, and who carries that out. ``elsewhere``: it acts on a workload cluster.

    ``cluster``: whose API it saw; "" for the management cluster's.
    """

    plan: Plan
    executor: Executor
    elsewhere: bool = False
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class _Begun:
    """A reconcile under way: since when, by the loop's clock, and how long it has held the loop."""

    at: float
    held: LoopTime = field(default_factory=LoopTime)


@dataclass(frozen=True, slots=True)
class Facts:
    """What reconciles read from."""

    cache: Cache
    hosts: HostDirectory
    workloads: Workloads = field(default_factory=AllInManagementCluster)
    bootstraps: Bootstraps = field(default_factory=NoBootstraps)


class Controller:
    """One reconciler at work."""

    def __init__(
        self,
        reconciler: Reconciler[Any],
        facts: Facts,
        executor_deps: ExecutorDeps,
        options: ReconcilerOptions | None = None,
    ) -> None:
        self.reconciler = reconciler
        self._options = options or ReconcilerOptions()
        self.queue: WorkQueue[Key] = WorkQueue(
            self._options.backoff,
            group_of=attrgetter("namespace"),
            share=self._options.workers_of_namespace,
            kept=self._options.workers_kept,
        )
        self._cache = facts.cache
        self._executor_deps = executor_deps
        self._executor = Executor(reconciler.name, executor_deps)
        self._router = ClusterRouter(reconciler, facts.cache, facts.workloads, executor_deps.now, facts.hosts.shape)
        self._unresolved: dict[Key, list[Create]] = {}
        self._notes = Notes(reconciler, facts.cache, self._executor, executor_deps.now)
        self._write_throttle: WriteThrottle[Key] = WriteThrottle()
        self._workers: list[asyncio.Task[None]] = []
        self._aside: set[asyncio.Task[None]] = set()
        self._resync: asyncio.Task[None] | None = None
        self._closing = False
        self._wakes = Wakes(reconciler, self._router, cache=facts.cache, workloads=facts.workloads, queue=self.queue)
        self.host_looks = HostLooks(
            reconciler, self._router, hosts=facts.hosts, bootstraps=facts.bootstraps, queue=self.queue
        )

    def start(self) -> None:
        """Begin with reconciles; every kind of ``reconciler.reads`` should be complete by now."""
        self._router.open()
        for number in range(self._options.workers):
            self._workers.append(asyncio.create_task(self._work(), name=f"{self.reconciler.name}-{number}"))
        self._resync = asyncio.create_task(self._resync_now_and_then(), name=f"{self.reconciler.name}-resync")

    async def stop(self, grace: float) -> None:
        """Begin no more reconciles; wait ``grace`` seconds for those under way, then cancel them."""
        self.queue.close()
        self._closing = True
        if self._resync is not None:
            self._resync.cancel()
        if self._workers:
            _, late = await asyncio.wait([*self._workers, *self._aside], timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def step(self, key: Key) -> None:
        """One reconcile for ``key``, with its outcome handled. Never raises but CancelledError."""
        begun = _Begun(asyncio.get_running_loop().time())
        with logs.about(self._keys_of(key)), working_for(key.namespace):
            decided = await begun.held.of(self._guarded(key, self._decide(key)))
            await self._finish(key, decided, begun)

    async def _work(self) -> None:
        while True:
            try:
                key, waited = await self.queue.get()
            except QueueClosedError:
                return
            metrics.of(metrics.QUEUE_SECONDS, self.reconciler.name).observe(waited)
            with logs.about(self._keys_of(key)), working_for(key.namespace):
                await self._step_or_put_aside(key)

    async def _step_or_put_aside(self, key: Key) -> None:
        """A workload cluster answers when it answers: no worker waits for that."""
        begun = _Begun(asyncio.get_running_loop().time())
        aside: asyncio.Task[None] | None = None
        try:
            decided = await begun.held.of(self._guarded(key, self._decide(key)))
            if isinstance(decided, _Decided) and decided.elsewhere:
                aside = asyncio.create_task(self._finish(key, decided, begun))
                self._aside.add(aside)
                aside.add_done_callback(partial(self._end_aside, key))
                self.queue.set_aside(key)
            else:
                await self._finish(key, decided, begun)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._failed(key, error)  # something that was waited for was cancelled, not this worker
        except Exception as error:
            self._failed(key, error)
        finally:
            if aside is None:
                self.queue.done(key)

    def _end_aside(self, key: Key, task: asyncio.Task[None]) -> None:
        self._aside.discard(task)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None and not self._closing:
            with logs.about(self._keys_of(key)):
                self._failed(key, error)
        self.queue.done(key)

    def _failed(self, key: Key, error: BaseException) -> None:
        """What ``_guarded`` does not cover has raised: the key is tried again, and the worker goes on."""
        metrics.of(metrics.RECONCILER_ERRORS, self.reconciler.name).inc()
        pause = self._retry(key)
        with logs.hiding(secret_values(self._router.primary(key))):
            _log.error("controller failed", retry_in=round(pause, 2), exc_info=error)

    async def _finish(self, key: Key, decided: _Decided | str, begun: _Begun) -> None:
        with tracing.span(f"reconcile {self.reconciler.name}", self._keys_of(key)) as span:
            if isinstance(decided, _Decided):
                result = await begun.held.of(self._guarded(key, self._carry_out(key, decided)))
            else:
                result = decided
            span.set_attribute("result", result)
        metrics.of(metrics.RECONCILES, self.reconciler.name, result).inc()
        name = self.reconciler.name
        metrics.of(metrics.LOOP_HELD_SECONDS, name).observe(begun.held.longest)
        metrics.of(metrics.RECONCILE_SECONDS, name).observe(asyncio.get_running_loop().time() - begun.at)

    async def _guarded(self, key: Key, work: Coroutine[Any, Any, _R]) -> _R | str:
        """A bug of the reconciler concerns this key alone: its object says so, and it is tried again with back-off."""
        try:
            return await work
        except MalformedError as error:
            _log.warning("spec has fields of a wrong type, nothing is done", fields=list(error.faults))
            await self._notes.say(key, error)
            return "malformed"
        except Exception as error:
            metrics.of(metrics.RECONCILER_ERRORS, self.reconciler.name).inc()
            pause = self._retry(key)
            with logs.hiding(secret_values(self._router.primary(key))):
                _log.exception("controller failed", retry_in=round(pause, 2))
            await self._notes.say(key, error)
            return "error"

    def _keys_of(self, key: Key) -> Mapping[str, str]:
        """What every line and span of a reconcile says of its object; ``uid`` "" if it is not there."""
        found = self._router.primary(key)
        return {
            "controller": self.reconciler.name,
            "kind": self.reconciler.kind.name,
            "namespace": key.namespace,
            "name": key.name,
            "uid": uid_of(found) if found is not None else "",
        }

    def _retry(self, key: Key, at_least: float = 0.0) -> float:
        metrics.of(metrics.RETRIES, self.reconciler.name).inc()
        return self.queue.retry(key, at_least=at_least)

    async def _decide(self, key: Key) -> _Decided | str:
        if key in self._unresolved and not await self._resolved(key):
            return "unresolved"
        site = self._router.site(key)
        if self._router.waits_for_contact(key):
            return "incomplete"
        if site is None:
            self.queue.add_after(key, _UNKNOWN_RETRY, Lane.RESYNC)
            return "incomplete"
        view = self._router.view(site)
        self._refuse_malformed(key)
        if not self._router.may_look(view):
            self.queue.add_after(key, _INCOMPLETE_RETRY if site.place is None else _UNKNOWN_RETRY, Lane.RESYNC)
            return "incomplete"
        plan = self._planned(key, view)
        if isinstance(plan, str):
            return plan
        self._explain(plan)
        if site.place is None:
            return _Decided(plan, self._executor)
        executor = Executor(self.reconciler.name, replace(self._executor_deps, workload=site.place))
        elsewhere = any(kind_of(action) in WORKLOAD_KINDS for action in plan.actions())
        return _Decided(plan, executor, elsewhere, str(site.cluster or ""))

    def _planned(self, key: Key, view: CacheView) -> Plan | str:
        """The plan, or the result of a reconcile that needs none."""
        hosts = self.host_looks.look(key, view)
        if isinstance(hosts, Parked):
            return "parked"
        observed = self.reconciler.observe(self._router.local(key), view, hosts)
        if observed is None:
            self._forget(key)
            return "gone"
        plan = self.reconciler.plan(observed)
        if hosts is not None:
            self.host_looks.decided(key, plan, hosts, view)
        return plan

    def _refuse_malformed(self, key: Key) -> None:
        """What is left of a malformed spec is not what somebody asked for. Raises MalformedError.

        One that is to go needs no spec: what is left of it is enough.
        """
        faults, primary = self._router.faults(key), self._router.primary(key)
        if faults and primary is not None and not is_deleting(primary):
            raise MalformedError(faults)

    async def _carry_out(self, key: Key, decided: _Decided) -> str:
        execution = await decided.executor.execute(decided.plan)
        result = self._settle(key, decided.plan, execution)
        if execution.ok and not (await self._notes.take_back(key) and await self._notes.point_out(key)):
            self._retry(key)
        source = Source(self.reconciler.name, decided.cluster)
        if decided.plan.samples:
            PLAN_METRICS.report(source, decided.plan.samples, execution.ok)
        elif decided.plan.samples is not None and clusters_served_by(self.reconciler) is not None:
            PLAN_METRICS.forget(source)  # it is somebody else's now
        if execution.writes:
            await self._rest(key, decided.plan)
        return result

    async def _rest(self, key: Key, plan: Plan) -> None:
        """Hold the key back if it writes the same in reconcile after reconcile."""
        now = asyncio.get_running_loop().time()
        pause = self._write_throttle.wrote(key, now, lambda: content_of(plan.actions()))
        if pause:
            why = next((action.why for action in plan.actions()), "")
            metrics.of(metrics.RECONCILES_HELD_BACK, self.reconciler.name).inc()
            _log.warning("repeats its writes, held back", last=why)
            await asyncio.sleep(pause)

    def _forget(self, key: Key) -> None:
        self.queue.succeeded(key)
        self._write_throttle.forget(key)
        self._router.forget(key)
        PLAN_METRICS.forget(Source(self.reconciler.name, str(key)))
        self.host_looks.forget(key)

    async def _resolved(self, key: Key) -> bool:
        """Send unresolved creations again; their owner is not planned before all are resolved."""
        if self._router.primary(key) is None:
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

    async def _resync_now_and_then(self) -> None:
        """Look at everything once in a while: nobody's mistake may last for ever."""
        while True:
            await asyncio.sleep(self._options.resync)
            for key in self._keys():
                self.queue.add(key, Lane.RESYNC)

    def _keys(self) -> Iterable[Key]:
        return self._router.keys()
