"""The simulated cloud as the simulation's reconcilers see it: reads of a list that may be old, calls that may fail.

It keeps, without asyncio, what the host directory of the running program keeps: the last list, the last failure of each
Machine with its back-off, and the answers of ``update``. A crash of the process drops this object, not the World.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from controllers.kernel.actions import CreateHost, DeleteHost, HostAction, RebootHost, UpdateHost
from controllers.kernel.bootstrapping import Support
from controllers.kernel.view import Attempt, HostAbsent, HostNeed, HostPresent, HostRead, HostReads, HostUnknown
from nodewright.sim.clock import VirtualClock
from providers.base.contract import Host, UpdateAnswer
from providers.base.errors import REACTIONS, ProviderError
from providers.simulated.world import World

SUPPORT = Support(("cloud-config",))

_CALLS: Mapping[type[HostAction], str] = {
    CreateHost: "create",
    UpdateHost: "update",
    DeleteHost: "delete",
    RebootHost: "reboot",
}


@dataclass(frozen=True, slots=True)
class _Answer:
    spec_hash: str
    answer: UpdateAnswer


class Cloud:
    """The memory of one life of the process about one World."""

    def __init__(self, world: World, clock: VirtualClock) -> None:
        self._world = world
        self._clock = clock
        self._listed_at: datetime | None = None
        self._hosts: Mapping[str, Host] = {}
        self._list_failed = ""
        self._dirty: set[str] = set()
        self._attempts: dict[str, Attempt] = {}
        self._answers: dict[str, _Answer] = {}

    def read(self, need: HostNeed) -> HostReads:
        uid = need.machine_uid
        answer = self._answers.get(uid)
        return HostReads(
            host=self._host(need),
            problems=need.problems,
            answer=answer.answer if answer and answer.spec_hash == need.spec_hash else None,
            attempt=self._attempts.get(uid),
            scope=f"simulated/{self._world.name}",
            support=SUPPORT,
        )

    def _host(self, need: HostNeed) -> HostRead:
        now = self._clock()
        age = None if self._listed_at is None else (now - self._listed_at).total_seconds()
        if age is None or age >= need.fresh_within or need.machine_uid in self._dirty:
            try:
                self._hosts = {host.machine_uid: host for host in self._world.list()}
                self._listed_at, self._list_failed = now, ""
                self._dirty.clear()
            except ProviderError as error:
                self._list_failed = str(error)
        if self._listed_at is None or need.machine_uid in self._dirty:
            return HostUnknown(self._list_failed or "not listed yet")
        host = self._hosts.get(need.machine_uid)
        return HostPresent(host) if host else HostAbsent()

    def perform(self, action: HostAction) -> None:
        """Raises ProviderError; what happened is seen by the next read."""
        uid = action.machine.uid
        self._dirty.add(uid)
        try:
            match action:
                case CreateHost():
                    self._world.create(action.request)
                case UpdateHost():
                    answer = self._world.update(action.request, action.host.id, action.drained)
                    self._answers[uid] = _Answer(action.request.spec_hash, answer)
                case DeleteHost():
                    self._world.delete(action.host.id)
                case RebootHost():
                    self._world.reboot(action.host.id, action.attempt)
        except ProviderError as error:
            self._remember(uid, _CALLS[type(action)], error)
            raise
        self._attempts.pop(uid, None)

    def _remember(self, uid: str, call: str, error: ProviderError) -> None:
        before = self._attempts.get(uid)
        failures = before.failures + 1 if before else 1
        reaction = REACTIONS[error.error_class]
        delay = min(reaction.first * 2 ** min(failures - 1, 20), reaction.longest)
        now = self._clock()
        retry_at = now + timedelta(seconds=max(delay, error.retry_after or 0))
        self._attempts[uid] = Attempt(call, error.error_class, error.message, failures, now, retry_at)
