"""Requests to delete nodes: those of one group that wait at the same time are carried out in one write.

The Cluster Autoscaler asks for each Node in a call of its own, ten or more at once. One write for each would take two
rounds of the controllers, and the next has to wait for these. Each caller gets an answer of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from controllers.externalgrpc.decide import Asked, Done, Edit, Joint, NotNow, Refusal, delete_jointly
from controllers.kernel.refs import Key
from nodewright.gateways.externalgrpc.fleet import AmbiguousError, Fleet
from nodewright.gateways.externalgrpc.scaler import (
    MOST_ATTEMPTS,
    PATIENCE,
    RefusedError,
    Scaler,
    UnavailableError,
    changes_too_often,
)

Ask = Callable[[], Sequence[Asked]]
"""What a request means now. Raises AmbiguousError."""


@dataclass(slots=True, eq=False)
class _Call:
    """``until``: when its patience with the controllers ends, in the loop's time; None before it was looked at."""

    ask: Ask
    answer: asyncio.Future[None]
    asked: Sequence[Asked] = ()
    until: float | None = None

    @property
    def machines(self) -> set[Key]:
        return {each.machine.key for each in self.asked if each.machine is not None}

    def settle(self, error: Exception | None = None) -> None:
        """A caller that has left gets no answer."""
        if self.answer.done():
            return
        if error is None:
            self.answer.set_result(None)
        else:
            self.answer.set_exception(error)


class Removals:
    """Removals of one process; ``close`` when no more calls come."""

    def __init__(self, scaler: Scaler, fleet: Fleet) -> None:
        self._scaler = scaler
        self._fleet = fleet
        self._waiting: dict[str, list[_Call]] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}

    async def remove(self, group_id: str, ask: Ask) -> None:
        """Until it is so. Raises RefusedError, UnavailableError and AmbiguousError.

        Once a write is under way it is finished, whatever becomes of the caller.
        """
        self._scaler.must_serve(group_id)
        call = _Call(ask, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(group_id, []).append(call)
        if group_id not in self._workers:
            self._workers[group_id] = asyncio.create_task(self._work(group_id), name=f"removals of {group_id}")
        await call.answer

    async def close(self) -> None:
        workers = list(self._workers.values())
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, group_id: str) -> None:
        """One write after the other, each for all calls that wait then. Other changes of the size get their turn."""
        error: Exception = UnavailableError("the gateway stops")
        try:
            while self._open(group_id):
                async with self._scaler.turn(group_id):
                    await self._write_once(group_id)
        except Exception as bug:
            error = bug
        finally:
            for call in self._waiting.pop(group_id, ()):
                call.settle(error)
            del self._workers[group_id]

    def _open(self, group_id: str) -> list[_Call]:
        """Calls whose callers still wait for an answer, those that came just now included."""
        calls = self._waiting[group_id]
        calls[:] = [call for call in calls if not call.answer.done()]
        return list(calls)

    async def _write_once(self, group_id: str) -> None:
        """Settle at least all calls that are open now, by one write at most; on a newer view where needed."""
        members: list[_Call] = []
        for attempt in range(MOST_ATTEMPTS):
            members, edit = await self._decided(group_id)
            if edit is None:
                if attempt:
                    await self._scaler.give_up(group_id)
                return
            try:
                done = await self._scaler.carried_out(group_id, edit)
            except UnavailableError as error:
                concerned = [call for call in members if call.machines & error.machines] or members
                _settle_all(concerned, error)
                continue
            if done:
                _settle_all(members, None)
                return
        for call in members:
            call.settle(changes_too_often(group_id))

    async def _decided(self, group_id: str) -> tuple[list[_Call], Edit | None]:
        """The write to make now and the calls that it is for; None: no call is left that needs one."""
        while calls := self._readable(group_id):
            try:
                joint = delete_jointly(self._scaler.facts(group_id), [call.asked for call in calls])
            except (RefusedError, UnavailableError) as error:
                _settle_all(calls, error)
                continue
            members = _settle(calls, joint)
            match joint.decision:
                case Edit() as edit:
                    return members, edit
                case NotNow(why):
                    await self._wait(members, why)
        return [], None

    def _readable(self, group_id: str) -> list[_Call]:
        """Open calls, with what they mean now."""
        now = asyncio.get_running_loop().time()
        for call in self._open(group_id):
            call.until = call.until or now + PATIENCE
            try:
                call.asked = call.ask()
            except AmbiguousError as error:
                call.settle(error)
        return self._open(group_id)

    async def _wait(self, calls: Sequence[_Call], why: str) -> None:
        """Until anything changes; a call that has waited for too long gets ``why``."""
        first = min(call.until or 0.0 for call in calls)
        try:
            async with asyncio.timeout_at(first):
                await self._fleet.moved()
        except TimeoutError:
            for call in calls:
                if (call.until or 0.0) <= first:
                    call.settle(UnavailableError(why))


def _settle(calls: Sequence[_Call], joint: Joint) -> list[_Call]:
    """Answer those that need no write; the others are returned, unless a refusal is for them all."""
    for position, answer in joint.answers.items():
        match answer:
            case Done():
                calls[position].settle()
            case Refusal() as refusal:
                calls[position].settle(RefusedError(refusal))
    members = [calls[position] for position in joint.members]
    match joint.decision:
        case Refusal() as refusal:
            _settle_all(members, RefusedError(refusal))
        case Done():
            _settle_all(members, None)
    return members


def _settle_all(calls: Sequence[_Call], error: Exception | None) -> None:
    for call in calls:
        call.settle(error)
