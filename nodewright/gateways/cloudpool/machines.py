"""One pool of Machines at work: look, decide, write, and look again if somebody else wrote in between."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from weakref import WeakValueDictionary

import structlog

from controllers.cloudpool import changes, pool, unfinished
from controllers.cloudpool.changes import Answer, Forbidden, Illegal, NotMember, NotYet
from controllers.cloudpool.messages import Membership, ServiceState
from controllers.cloudpool.pool import Pool
from controllers.kernel.actions import Event, HostAction
from controllers.kernel.plan import Plan
from controllers.kernel.refs import Key, Kind
from nodewright.gateways.cloudpool.operations import OperationError
from nodewright.gateways.cloudpool.watching import Watching
from nodewright.gateways.stale import reread
from nodewright.runtime.kube.errors import KubeError
from nodewright.runtime.writes.executor import Executor, ExecutorDeps

_log = structlog.get_logger("nodewright.cloudpool")

_TRIES = 8
_LOOK_AGAIN = 1.0
"""Seconds until the next look while the controllers are waited for, if nothing changes."""
Decide = Callable[[Pool], Answer]


class Machines:
    """Machines of all pools. ``api_timeout``: seconds for the API server to answer. Methods raise OperationError."""

    def __init__(self, watching: Watching, api_timeout: float) -> None:
        self._watching = watching
        self._api_timeout = api_timeout
        self._executor = Executor("cloudpool", _executor_deps(watching))
        self._locks: WeakValueDictionary[tuple[Kind, Key], asyncio.Lock] = WeakValueDictionary()
        """A lock lives as long as somebody holds it or waits for it."""

    def look(self, kind: Kind, key: Key) -> Pool:
        """What the caches show."""
        problem = next((why for why in self._watching.problems().values() if why), "")
        if problem:
            raise OperationError(502, "the API server can't be reached", problem)
        found = pool.observe(kind, key, self._watching.view())
        if found is None:
            raise OperationError(502, f"there is no {kind} {key}", "the pool is served as soon as there is one")
        return found

    async def resize(self, kind: Kind, key: Key, desired: int) -> None:
        await self._change(kind, key, lambda found: changes.resize(found, desired))

    async def terminate(self, kind: Kind, key: Key, id_: str, decrement: bool) -> None:
        await self._change(kind, key, lambda found: changes.terminate(found, id_, decrement))

    async def detach(self, kind: Kind, key: Key, id_: str, decrement: bool) -> None:
        await self._change(kind, key, lambda found: changes.detach(found, id_, decrement))

    async def attach(self, kind: Kind, key: Key, id_: str) -> None:
        def decide(found: Pool) -> Answer:
            return changes.attach(found, pool.unmatched_machine(id_, key.namespace, self._watching.view()), id_)

        try:
            await self._change(kind, key, decide)
        except OperationError:
            with contextlib.suppress(OperationError):  # then it is found at the next start
                await self.leave_attaching(kind, key)
            raise

    async def set_service_state(self, kind: Kind, key: Key, id_: str, state: ServiceState) -> None:
        await self._change(kind, key, lambda found: changes.set_service_state(found, id_, state))

    async def set_membership(self, kind: Kind, key: Key, id_: str, membership: Membership) -> None:
        await self._change(kind, key, lambda found: changes.set_membership(found, id_, membership))

    async def leave_attaching(self, kind: Kind, key: Key) -> None:
        """What an attachment that did not come to its end has left behind."""
        await self._change(kind, key, unfinished.leave_attaching)

    async def settle(self, kind: Kind, key: Key) -> None:
        """What is left to do of interrupted requests, and of Machines that are gone; no call if that is nothing."""
        if unfinished.settle(self.look(kind, key)).steps:
            await self._change(kind, key, lambda _: Plan())

    async def _change(self, kind: Kind, key: Key, decide: Decide) -> None:
        async with self._locks.setdefault((kind, key), asyncio.Lock()):
            await self._answering()
            for _ in range(_TRIES):
                answer = await self._decided(kind, key, decide)
                if isinstance(answer, NotMember):
                    raise OperationError(404, f"unrecognized machine: {answer.why}")
                if isinstance(answer, Illegal):
                    raise OperationError(400, f"illegal input: {answer.why}", answer.instead)
                if isinstance(answer, Forbidden | NotYet):
                    raise OperationError(502, f"failure to process the request: {answer.why}")
                if await self._done(answer, kind, key):
                    await self._settled(kind, key)
                    return
            raise _busy(kind, key)

    async def _decided(self, kind: Kind, key: Key, decide: Decide) -> Answer:
        """Waits for the controllers while that is what the decision says, within bounds."""
        time = asyncio.get_running_loop().time
        until = time() + self._api_timeout
        answer = decide(await self._settled(kind, key))
        while isinstance(answer, NotYet) and time() < until:
            await self._watching.change(_LOOK_AGAIN)
            answer = decide(await self._settled(kind, key))
        return answer

    async def _settled(self, kind: Kind, key: Key) -> Pool:
        """The pool, once nothing is left to do of what was asked for before."""
        for _ in range(_TRIES):
            found = self.look(kind, key)
            due = unfinished.settle(found)
            if not due.steps:
                return found
            await self._done(due, kind, key)
        raise _busy(kind, key)

    async def _answering(self) -> None:
        try:
            await self._watching.current(self._api_timeout)
        except KubeError as error:
            raise OperationError(502, "the API server can't be reached", str(error)) from error

    async def _done(self, plan: Plan, kind: Kind, key: Key) -> bool:
        """False if all has to be looked at again. What was written is in the caches afterwards."""
        for note in plan.notes:
            _log.warning("less than was asked for", pool=str(key), why=note)
        if not plan.steps:
            return True
        execution = await self._executor.execute(plan)
        try:
            await reread(execution, self._watching.client, self._watching.cache)
            self._watching.cache.wrote(kind, await self._watching.client.get(kind, key))
        except KubeError as error:
            raise OperationError(502, "the API server can't be reached", str(error)) from error
        failed = next((failure for failure in execution.failures if not failure.stale), None)
        if failed is not None:
            raise OperationError(502, f"failure to process the request: {failed.action.why}", str(failed.error))
        return execution.ok


def _busy(kind: Kind, key: Key) -> OperationError:
    return OperationError(502, f"{kind} {key} is changed by others all the time")


def _executor_deps(watching: Watching) -> ExecutorDeps:
    def no_host(action: HostAction) -> bool:
        raise LookupError(f"a cloudpool has no hosts of its own: {action.why}")

    def report(event: Event) -> None:
        _log.info(event.reason, why=event.why)

    return ExecutorDeps(watching.client, watching.cache, no_host, report, watching.now)
