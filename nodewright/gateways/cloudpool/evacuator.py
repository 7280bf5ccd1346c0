"""Take victims out of the pool as ``controllers.cloudpool.evacuation`` says, and look after what was left over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import assert_never

import structlog

from controllers.cloudpool.evacuation import (
    Act,
    Emptied,
    Evacuating,
    GiveUp,
    LeftAlone,
    after_a_crash,
    finish,
    give_up,
    next_step,
)
from controllers.cloudpool.record import Record, record_of
from controllers.cloudpool.scaledown import Victim
from controllers.drain.context import drain_context
from controllers.kernel.actions import Action, Event, HostAction, Patch
from controllers.kernel.plan import Plan, steps
from controllers.kernel.refs import NODE, Key, Obj, uid_of
from nodewright.gateways.cloudpool.backend import Backend, BackendError
from nodewright.gateways.cloudpool.watching import Watching
from nodewright.runtime.kube.errors import ApiError, KubeError
from nodewright.runtime.telemetry import metrics
from nodewright.runtime.writes.evictions import EvictionPace
from nodewright.runtime.writes.executor import Executor, ExecutorDeps

_log = structlog.get_logger("nodewright.cloudpool")

REQUEUE_AFTER, REQUEUE_SOON, POLL_INTERVAL = 1.0, 0.25, 30.0
"""Seconds until the next look (at memory) if nothing changes; soon, after something was asked for; until a pod is asked
to go once more."""
_CACHED = timedelta(minutes=10)
_PUT_BACK_TRIES = 3
_RATE, _BURST = 200.0, 1000.0
"""Evictions per second: a gateway empties a few Nodes at a time, and is to wait for pods, not for itself."""
_MOST_PODS = 20_000
_PERMANENT = (401, 403, 404, 405, 422)
GoesOn = Callable[[], str]
"""Why an evacuation is to stop where it still can; "" while it goes on."""


@dataclass(frozen=True, slots=True)
class EvacuatorOptions:
    """``owner`` goes into the records; times in seconds."""

    owner: str
    drain_timeout: float = 600.0
    api_timeout: float = 60.0


class EvacuationError(Exception):
    """A victim stays. ``of_backend``: the backend is to blame."""

    def __init__(self, why: str, of_backend: bool = False) -> None:
        super().__init__(why)
        self.of_backend = of_backend


@dataclass(slots=True)
class _Trouble:
    """Writes that fail, since when, None: the last one succeeded."""

    since: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Case:
    victim: Victim
    record: Record
    uid: str
    goes_on: GoesOn
    trouble: _Trouble = field(default_factory=_Trouble)


class Evacuator:
    """Works on any number of victims at a time, each by a task of the caller's."""

    def __init__(self, watching: Watching, backend: Backend, options: EvacuatorOptions) -> None:
        self._gone: dict[str, datetime] = {}
        self.busy: dict[str, str] = {}
        """Node → what is waited for."""
        self.watching = watching
        self.backend = backend
        self._options = options
        self._executor = Executor("cloudpool", self._executor_deps())

    @property
    def gone(self) -> frozenset[str]:
        """Ids of machines that were terminated a while ago at most: a backend may still show them from its cache."""
        since = self.watching.now() - _CACHED
        self._gone = {machine: at for machine, at in self._gone.items() if at > since}
        return frozenset(self._gone)

    async def remove(self, victim: Victim, decrement: bool, goes_on: GoesOn) -> None:
        """Until the machine has ended. Raises EvacuationError; then its Node is as it was, or will be put back."""
        if not victim.node:
            await self._terminate(victim, decrement)
            return
        if victim.node in self.busy:
            raise EvacuationError(f"Node {victim.node} is being emptied already")
        self.busy[victim.node] = victim.why
        _log.info("emptying", node=victim.node, machine=victim.machine.id, why=victim.why)
        try:
            await self._empty(self._case(victim, goes_on))
            await self._terminate(victim, decrement)
        finally:
            del self.busy[victim.node]

    def _case(self, victim: Victim, goes_on: GoesOn) -> _Case:
        node = self._node(victim.node)
        if node is None:
            raise EvacuationError(f"Node {victim.node} is gone")
        record = Record(self._options.owner, victim.machine.id, self.watching.now())
        return _Case(victim, record, uid_of(node), goes_on)

    async def _empty(self, case: _Case) -> None:
        """Return when the backend may be asked, and that is written on the Node."""
        name = case.victim.node
        while True:
            node = self._node(name)
            if node is None or uid_of(node) != case.uid:
                raise EvacuationError(f"Node {name} was deleted by somebody else")
            reason = case.goes_on()
            if reason:
                await self._put_back(name, reason)
                raise EvacuationError(reason)
            step = next_step(self._evacuating(case, node))
            self.busy[name] = step.why
            match step:
                case Act(actions=actions):
                    closed = await self._do(actions, case) and any(isinstance(each, Patch) for each in actions)
                    if not closed:
                        await self.watching.change(REQUEUE_SOON if actions else self._pause(case))
                case GiveUp(why=why):
                    await self._put_back(name, why)
                    raise EvacuationError(f"Node {name}: {why}")
                case Emptied(note=note):
                    if await self._is_really_empty(case, node):
                        await self._still_wanted(case)
                        if note is None or await self._do((note,), case):
                            return
                    await self.watching.change(REQUEUE_SOON)
                case _:
                    assert_never(step)

    def _evacuating(self, case: _Case, node: Obj) -> Evacuating:
        around_it = drain_context(node, self.watching.view())
        return Evacuating(case.record, node, around_it, self.watching.now(), self._deadline(case))

    def _deadline(self, case: _Case) -> datetime:
        return case.record.started + timedelta(seconds=self._options.drain_timeout)

    def _pause(self, case: _Case) -> float:
        left = (self._deadline(case) - self.watching.now()).total_seconds()
        return min(REQUEUE_AFTER, max(left, REQUEUE_SOON / 10))

    async def _is_really_empty(self, case: _Case, node: Obj) -> bool:
        """The watch may not have delivered yet a pod that was bound just before the Node was cordoned."""
        try:
            pods = await self.watching.client.pods_on(case.victim.node)
        except KubeError as error:
            await self._failed(error, case)
            return False
        seen = self._evacuating(case, node)
        live = replace(seen, drain_context=replace(seen.drain_context, pods=tuple(pods)))
        return isinstance(next_step(live), Emptied)

    async def _still_wanted(self, case: _Case) -> None:
        """Somebody may have protected the machine meanwhile, or taken it out of the pool."""
        machine = case.victim.machine.id
        try:
            found = next((each for each in await self.backend.pool() if each.id == machine), None)
        except BackendError as error:
            await self._put_back(case.victim.node, "the backend does not answer")
            raise EvacuationError(str(error), of_backend=True) from error
        reason = case.goes_on()
        if reason:
            await self._put_back(case.victim.node, reason)
            raise EvacuationError(reason)
        if found is None or not found.allocated or found.doubt or not found.membership.evictable:
            why = f"machine {machine} is protected now" if found else f"machine {machine} has left the pool"
            await self._put_back(case.victim.node, why)
            raise EvacuationError(why)

    async def _terminate(self, victim: Victim, decrement: bool) -> None:
        machine = victim.machine.id
        try:
            await self.backend.terminate(machine, decrement)
        except BackendError as error:
            if not await self._has_ended(victim, error):
                if error.code and victim.node:
                    await self._put_back(victim.node, "the backend did not terminate its machine")
                metrics.of(metrics.CLOUDPOOL_VICTIMS, "failed").inc()
                raise EvacuationError(f"failed to terminate machine {machine}: {error}", of_backend=True) from error
        self._gone[machine] = self.watching.now()
        metrics.of(metrics.CLOUDPOOL_VICTIMS, "removed").inc()
        _log.info("terminated", machine=machine, node=victim.node)
        node = self._node(victim.node)
        if node is not None:
            await self._execute(finish(node))  # what fails here is done by the next sweep

    async def _has_ended(self, victim: Victim, error: BackendError) -> bool:
        """Whether the machine has ended in spite of the error, be it a 404: only what the pool shows counts."""
        try:
            found = next((m for m in await self.backend.pool() if m.id == victim.machine.id), None)
        except BackendError as other:
            raise EvacuationError(f"failed to terminate machine {victim.machine.id}: {error}", True) from other
        return found is None or not found.allocated

    async def sweep(self) -> None:
        """Put back, or finish, what an earlier life of this proxy left over. What fails is tried by the next sweep."""
        found = [(node, record_of(node, self._options.owner)) for node in self.watching.objects(NODE)]
        left = [(node, record) for node, record in found if record and node["metadata"]["name"] not in self.busy]
        if not left:
            return
        machines = await self.backend.pool() if any(record.terminating for _, record in left) else ()
        for node, record in left:
            patience = timedelta(seconds=self.backend.options.timeout)
            decided = after_a_crash(node, record, machines, patience, self.watching.now())
            if isinstance(decided, LeftAlone):
                _log.info("left alone", why=decided.why)
            elif decided:
                _log.warning("looking after a Node that was left over", why=decided[0].why)
                await self._execute(decided)

    async def _put_back(self, name: str, why: str) -> None:
        """At once if the server answers; else the next sweep does it."""
        metrics.of(metrics.CLOUDPOOL_VICTIMS, "put back").inc()
        _log.warning("putting back", node=name, why=why)
        for _ in range(_PUT_BACK_TRIES):
            node = self._node(name)
            if node is None or await self._execute(give_up(node, why)):
                return
            await self.watching.change(REQUEUE_SOON)

    async def _do(self, actions: tuple[Action, ...], case: _Case) -> bool:
        """True if all of it was done. Raises EvacuationError, with the Node put back, if there is no hope."""
        execution = await self._executor.execute(Plan(steps(actions)))
        failures = [failure for failure in execution.failures if not failure.stale]
        if failures:
            await self._failed(failures[0].error, case)
        elif actions:
            case.trouble.since = None
        return execution.ok

    async def _failed(self, error: KubeError, case: _Case) -> None:
        now = asyncio.get_running_loop().time()
        if case.trouble.since is None:
            case.trouble.since = now
        permanent = isinstance(error, ApiError) and error.code in _PERMANENT
        if permanent or now - case.trouble.since >= self._options.api_timeout:
            await self._put_back(case.victim.node, str(error))
            raise EvacuationError(f"Node {case.victim.node}: {error}")

    async def _execute(self, actions: tuple[Action, ...]) -> bool:
        return (await self._executor.execute(Plan(steps(actions)))).ok

    def _node(self, name: str) -> Obj | None:
        return self.watching.cache.stores[NODE].get(Key("", name)) if name else None

    def _executor_deps(self) -> ExecutorDeps:
        def no_host(action: HostAction) -> bool:
            raise LookupError(f"a cloudpool proxy has no hosts: {action.why}")

        def report(event: Event) -> None:
            _log.info(event.reason, why=event.why)

        watching = self.watching
        return ExecutorDeps(watching.client, watching.cache, no_host, report, watching.now, evictions=AskedOnce())


class AskedOnce(EvictionPace):
    """A pod that was asked to go is not asked again before its end could be seen: others wake us in between."""

    def __init__(self) -> None:
        super().__init__(_RATE, _BURST)
        self._now = 0.0
        self._asked: dict[str, float] = {}

    def may(self, uid: str, now: float) -> bool:
        self._now = now
        return now >= self._asked.get(uid, 0.0) and super().may(uid, now)

    def accepted(self, uid: str) -> None:
        super().accepted(uid)
        if len(self._asked) >= _MOST_PODS:
            self._asked.clear()
        self._asked[uid] = self._now + POLL_INTERVAL
