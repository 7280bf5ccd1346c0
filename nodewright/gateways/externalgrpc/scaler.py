"""Carry out decisions on the size of groups: one after the other in a group, again on a newer view where needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NoReturn
from weakref import WeakValueDictionary

import structlog

from controllers.externalgrpc import decide
from controllers.externalgrpc.decide import Decision, Done, Edit, GroupFacts, NotNow, Refusal, Refused
from controllers.kernel.actions import HostAction, Patch
from controllers.kernel.refs import MACHINE, Key, Obj
from nodewright.gateways.externalgrpc.fleet import Fleet
from nodewright.gateways.stale import reread
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import KubeError
from nodewright.runtime.settings.options import utc_now
from nodewright.runtime.writes.executor import Execution, Executor, ExecutorDeps
from nodewright.runtime.writes.recorder import EventRecorder

_log = structlog.get_logger("nodewright.externalgrpc")

NAME = "externalgrpc"
PATIENCE = 2.0
"""Seconds for which the controllers are waited for; clients give a call five by default."""
MOST_ATTEMPTS = 8


class RefusedError(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.why)
        self.refusal = refusal


class UnavailableError(Exception):
    """It could not be done now; a later call may succeed. ``machines``: those that could not be marked."""

    def __init__(self, why: str, machines: frozenset[Key] = frozenset()) -> None:
        super().__init__(why)
        self.machines = machines


class Scaler:
    """Sizes, written by one process. A second process does no harm: each write names the version that it was decided
    on.
    """

    def __init__(self, client: KubeClient, cache: Cache, fleet: Fleet, recorder: EventRecorder) -> None:
        self._client = client
        self._cache = cache
        self._fleet = fleet
        self._executor = Executor(NAME, ExecutorDeps(client, cache, _no_hosts, recorder.record, utc_now))
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """A lock lives as long as somebody holds it or waits for it."""

    async def change(self, group_id: str, judge: Callable[[GroupFacts], Decision]) -> None:
        """Until it is so. Raises RefusedError and UnavailableError.

        Once a write is under way it is finished, whatever becomes of the caller.
        """
        self.must_serve(group_id)
        async with self.turn(group_id):
            patience = asyncio.get_running_loop().time() + PATIENCE
            for attempt in range(MOST_ATTEMPTS):
                try:
                    edit = await self._decided(group_id, judge, patience)
                except RefusedError:
                    if attempt:
                        await self.give_up(group_id)
                    raise
                if edit is None or await self.carried_out(group_id, edit):
                    return
        raise changes_too_often(group_id)

    def must_serve(self, group_id: str) -> None:
        """Raises RefusedError if there is no such group."""
        if group_id not in self._fleet.groups():
            raise RefusedError(Refusal(Refused.NOT_FOUND, f"there is no node group {group_id!r}"))

    def turn(self, group_id: str) -> asyncio.Lock:
        """Held by whoever decides on the size of the group and writes it."""
        return self._locks.setdefault(group_id, asyncio.Lock())

    def facts(self, group_id: str) -> GroupFacts:
        """What is known now. Raises RefusedError and UnavailableError."""
        if unread := self._fleet.unread():
            raise UnavailableError(f"not read, or not current: {unread}")
        facts = self._fleet.facts(group_id)
        if facts is None:
            raise RefusedError(Refusal(Refused.NOT_FOUND, f"there is no node group {group_id!r}"))
        return facts

    async def carried_out(self, group_id: str, edit: Edit) -> bool:
        """False: decide again. Goes on to its end if this is cancelled. Raises UnavailableError."""
        return await asyncio.shield(self._carried_out(group_id, edit))

    async def give_up(self, group_id: str) -> None:
        """Take marks back that were set for a request before it was refused. If that fails, the next change does it."""
        facts = self._fleet.facts(group_id)
        if facts is not None:
            await asyncio.shield(self._executor.execute(decide.given_up(facts)))

    async def _decided(self, group_id: str, judge: Callable[[GroupFacts], Decision], until: float) -> Edit | None:
        """None: it is so already."""
        while True:
            match judge(self.facts(group_id)):
                case Edit() as edit:
                    return edit
                case Done():
                    return None
                case Refusal() as refusal:
                    raise RefusedError(refusal)
                case NotNow(why):
                    await self._wait(until, why)

    async def _wait(self, until: float, why: str) -> None:
        try:
            async with asyncio.timeout_at(until):
                await self._fleet.moved()
        except TimeoutError:
            raise UnavailableError(why) from None

    async def _carried_out(self, group_id: str, edit: Edit) -> bool:
        """False: the view was old, or the answer got lost and it was not done. What is true now is in the cache."""
        execution = await self._executor.execute(edit.plan)
        if execution.ok:
            return True
        now = await self._read(group_id)
        if any(failure.error.ambiguous for failure in execution.failures):
            return now is not None and was_done(now, edit)
        if not all(failure.stale for failure in execution.failures):
            self._give_up(execution)
        try:
            await reread(execution, self._client, self._cache)
        except KubeError as error:
            raise UnavailableError(f"{group_id}: {error}") from error
        return False

    async def _read(self, group_id: str) -> Obj | None:
        """The group as the server has it. Machines that a plan missed are dropped from the cache by the executor."""
        group = self._fleet.groups().get(group_id)
        if group is None:
            return None
        try:
            body = await self._client.get(group.ref.kind, group.ref.key)
        except KubeError as error:
            raise UnavailableError(f"{group_id}: {error}") from error
        self._cache.wrote(group.ref.kind, body)
        return body

    def _give_up(self, execution: Execution) -> NoReturn:
        serious = [failure for failure in execution.failures if not failure.stale]
        errors = list(dict.fromkeys(str(failure.error) for failure in serious))
        _log.warning("a size could not be changed", errors=errors)
        targets = [failure.action.target for failure in serious if isinstance(failure.action, Patch)]
        raise UnavailableError("; ".join(errors), frozenset(each.key for each in targets if each.kind == MACHINE))


def changes_too_often(group_id: str) -> UnavailableError:
    return UnavailableError(f"{group_id} changed again and again while it was to be scaled")


def was_done(body: Obj, edit: Edit) -> bool:
    """Whether the write whose answer was lost has happened. Raises UnavailableError if nobody can say."""
    done = decide.was_done(body, edit)
    if done is None:
        raise UnavailableError(f"{edit.group.id}: no answer, and its size is another one now; look again")
    return done


def _no_hosts(_: HostAction) -> bool:
    raise AssertionError("a gateway asks no provider for hosts")
