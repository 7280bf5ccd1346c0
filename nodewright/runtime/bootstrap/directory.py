"""What is known of each Machine's bootstrap data, and the work on it, in the background.

    reconcile -> look -> plan -> submit -> conversation with the API servers -> what it came to -> reconcile

Nothing is kept over a restart but on the API servers: ``ensure`` finds there what was made, and a list of tokens, now
and then, tells which are left.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Generator
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from api import names
from api.conditions import Reason
from controllers.bootstrap.calls import Call, Refused
from controllers.bootstrap.credentials import Removal, ensure, new_secret, remove
from controllers.bootstrap.sweep import Sweep, Sweeper
from controllers.kernel.actions import BootstrapAction, EnsureBootstrap
from controllers.kernel.bootstrapping import (
    UNKNOWN,
    BootstrapData,
    BootstrapNeed,
    BootstrapReads,
    DataAbsent,
    DataPresent,
    DataRefused,
    JoinTarget,
)
from controllers.kernel.host_report import Report
from controllers.kernel.refs import MACHINE, SECRET, Key, Obj, Ref, uid_of
from nodewright.runtime.bootstrap.conversing import Sides, converse
from nodewright.runtime.bootstrap.reports import HostReports
from nodewright.runtime.bootstrap.targets import Site, Targets
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError, KubeError, NoAnswer, NotLeadingError
from nodewright.runtime.workloads.directory import WorkloadDirectory

_log = structlog.get_logger("nodewright.bootstrap")

AT_ONCE = 16
"""Conversations at a time; each is three or four calls."""
SWEEP_PAUSE = 300.0
"""Seconds between two lists of the tokens of a cluster."""
TIME_LIMIT = 60.0
"""Seconds for a conversation."""
_FIRST_RETRY, _LONGEST_RETRY = 2.0, 60.0


class Bootstraps(Protocol):
    """What the shell needs of the directory."""

    def look(self, need: BootstrapNeed) -> BootstrapReads: ...

    def listen(self, listener: Callable[[str], None]) -> None: ...

    def forget(self, machine_uid: str) -> None: ...


class NoBootstraps:
    """Nobody makes bootstrap data: for programs that make no hosts."""

    def look(self, need: BootstrapNeed) -> BootstrapReads:
        return BootstrapReads()

    def listen(self, listener: Callable[[str], None]) -> None:
        """There is nothing to hear."""

    def forget(self, machine_uid: str) -> None:
        """There is nothing to forget."""


@dataclass(frozen=True, slots=True)
class Deps:
    """``client``: of the management cluster, fenced. ``connection``: to it. ``mark``: of the management cluster, known
    once the controllers begin. ``namespace``: the only one that is served, "" for all.
    """

    client: KubeClient
    workloads: WorkloadDirectory
    cache: Cache
    now: Callable[[], datetime]
    mark: Callable[[], str]
    namespace: str = ""
    draw: Callable[[int], int] = secrets.randbelow


@dataclass(slots=True)
class _Known:
    data: BootstrapData
    at: float
    """When, in the loop's time."""


@dataclass(slots=True)
class _Place:
    """A cluster in which hosts join. ``swept_at``: the loop's time at which the last good list was asked for."""

    swept_at: float | None = None
    due_at: float = float("-inf")
    sweeping: asyncio.Task[None] | None = None
    curious: set[str] = field(default_factory=set)


class BootstrapDirectory:
    """``Bootstraps`` over the API servers. One event loop; ``close`` at the end."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._targets = Targets(self._site, deps.now, self._target_changed)
        self._known: dict[str, _Known] = {}
        self._places: dict[Key | None, _Place] = {}
        self._waiting: dict[Key | None, set[str]] = {}
        self._home: dict[str, Key | None] = {}
        """Where the Node of a Machine is to be, by its UID."""
        self._running: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._listeners: list[Callable[[str], None]] = []
        self._closed = False
        self._reports = HostReports(self._client_of)

    def listen(self, listener: Callable[[str], None]) -> None:
        """``listener`` gets the UID of each Machine of which more is known."""
        self._reports.listen(listener)
        self._listeners.append(listener)

    def look(self, need: BootstrapNeed) -> BootstrapReads:
        uid = need.machine.uid
        target = self._targets.look(need.cluster, need.endpoint)
        site = self._site(need.cluster)
        if not isinstance(target, JoinTarget):
            self._waiting.setdefault(need.cluster, set()).add(uid)
        data: BootstrapData = UNKNOWN
        if site is not None:
            place = self._place(need.cluster, site)
            self._home[uid] = need.cluster if site.is_workload else None
            known = self._known.get(uid)
            data = known.data if known is not None else DataAbsent() if place.swept_at is not None else UNKNOWN
            if data is UNKNOWN:
                place.curious.add(uid)
        return BootstrapReads(target, data, uid in self._running, self._last_report(need, data))

    def _last_report(self, need: BootstrapNeed, data: BootstrapData) -> Report | None:
        """What the host has said last, for as long as it may have a token to say it with."""
        uid = need.machine.uid
        token_id = data.token_id if isinstance(data, DataPresent) else need.token_id
        if uid not in self._home or not token_id or isinstance(data, DataAbsent):
            self._reports.forget(uid)
            return None
        return self._reports.look(uid, self._home[uid], token_id)

    def _client_of(self, cluster: Key | None) -> KubeClient | None:
        return self._deps.client if cluster is None else self._deps.workloads.client_of(cluster)

    def submit(self, action: BootstrapAction) -> bool:
        """Begin with it. False: something is under way for the Machine."""
        machine = action.order.machine if isinstance(action, EnsureBootstrap) else action.machine
        if self._closed or machine.uid in self._running:
            return False
        work = self._carried_out(machine, action)
        task = asyncio.create_task(work, name=f"bootstrap data of {machine}", context=copy_context())
        self._running[machine.uid] = task
        return True

    def forget(self, machine_uid: str) -> None:
        """The Machine is gone for good."""
        self._known.pop(machine_uid, None)
        self._home.pop(machine_uid, None)
        self._reports.forget(machine_uid)

    async def close(self, grace: float = 5.0) -> None:
        """Wait up to ``grace`` seconds for what is under way."""
        self._closed = True
        await asyncio.gather(self._targets.close(), self._reports.close())
        sweeps = [place.sweeping for place in self._places.values() if place.sweeping is not None]
        for sweep in sweeps:
            sweep.cancel()
        await asyncio.gather(*sweeps, return_exceptions=True)
        if self._running:
            _, late = await asyncio.wait(list(self._running.values()), timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _carried_out(self, machine: Ref, action: BootstrapAction) -> None:
        uid = machine.uid
        try:
            async with self._slots:
                outcome = await self._outcome(machine, action)
        except Exception as error:
            _log.exception("bootstrap data failed", machine=str(machine))
            outcome = self._refused(uid, str(Reason.WAITING_FOR_BOOTSTRAP_DATA), f"unexpected {type(error).__name__}")
        finally:
            self._running.pop(uid, None)
        if isinstance(outcome, DataRefused):
            log = _log.info if outcome.failures == 1 else _log.debug
            log("bootstrap data refused", machine=str(machine), reason=outcome.reason, why=outcome.message)
        self._known[uid] = _Known(outcome, self._time())
        self._tell(uid)

    async def _outcome(self, machine: Ref, action: BootstrapAction) -> BootstrapData:
        deps, uid = self._deps, machine.uid
        cluster = action.order.cluster if isinstance(action, EnsureBootstrap) else action.cluster
        site = self._site(cluster)
        there = site.client if site is not None else None
        if there is None and not _stays_here(action):
            title = site.title if site is not None else f"Cluster {cluster}"
            return self._refused(uid, str(Reason.WORKLOAD_UNREACHABLE), f"{title} can't be reached")
        sides = Sides(deps.client, there)
        conversation: Generator[Call, Obj | None, DataPresent | DataAbsent | Refused]
        if isinstance(action, EnsureBootstrap):
            conversation = ensure(action.order, deps.mark(), lambda: new_secret(deps.draw), deps.now())
        else:
            ids = action.ids if there is not None else ()  # a token that can't be removed ends by itself
            conversation = remove(Removal(action.machine, action.secret, ids, action.founds))
        try:
            async with asyncio.timeout(TIME_LIMIT):
                outcome = await converse(conversation, sides)
        except (KubeError, TimeoutError) as error:
            return self._failed(uid, error, is_workload=site is not None and site.is_workload)
        return self._refused(uid, outcome.reason, outcome.message) if isinstance(outcome, Refused) else outcome

    def _failed(self, uid: str, error: KubeError | TimeoutError, *, is_workload: bool) -> DataRefused:
        """What an API server answers may be quoted: it is bounded, and it never repeats the data of a Secret."""
        if isinstance(error, ApiError) and error.code == 413:
            return self._refused(
                uid, str(Reason.DATA_TOO_LARGE), f"the API server takes no Secret so large: {error.plain}"
            )
        if isinstance(error, ApiError) and error.code < 500 and error.code != 429:
            text = f"{error.plain}; grant the controllers what docs/tasks/join.md lists"
            return self._refused(uid, str(Reason.TOKEN_REFUSED), text)
        why = error.plain if isinstance(error, KubeError) else f"no answer within {TIME_LIMIT:g} s"
        gone = is_workload and isinstance(error, NoAnswer | TimeoutError)
        reason = Reason.WORKLOAD_UNREACHABLE if gone else Reason.WAITING_FOR_BOOTSTRAP_DATA
        return self._refused(uid, str(reason), f"it can't be made now: {why}; it is tried again")

    def _refused(self, uid: str, reason: str, message: str) -> DataRefused:
        before = self._known.get(uid)
        failures = before.data.failures + 1 if before is not None and isinstance(before.data, DataRefused) else 1
        pause = min(_FIRST_RETRY * 2 ** (failures - 1), _LONGEST_RETRY) if failures < 10 else _LONGEST_RETRY
        return DataRefused(reason, message, self._deps.now() + timedelta(seconds=pause), failures)

    def _site(self, cluster: Key | None) -> Site | None:
        found = self._deps.workloads.look(cluster) if cluster is not None else None
        if cluster is not None and found is None:
            return None
        if cluster is None or found is None or found.place is None:
            return Site(self._deps.client, "the API server")
        return Site(self._deps.workloads.client_of(cluster), f"the API server of Cluster {cluster}", is_workload=True)

    def _place(self, cluster: Key | None, site: Site) -> _Place:
        """Where the Nodes of ``cluster`` are; its tokens are listed when that is due."""
        key = cluster if site.is_workload else None
        place = self._places.setdefault(key, _Place())
        if place.sweeping is None and self._time() >= place.due_at and site.client is not None and not self._closed:
            place.due_at = self._time() + SWEEP_PAUSE
            place.sweeping = asyncio.create_task(self._sweep(key, site.client), name="tokens", context=Context())
        return place

    async def _sweep(self, key: Key | None, client: KubeClient) -> None:
        began = self._time()
        try:
            listed = await client.labelled(SECRET, names.TOKEN_NAMESPACE, names.TOKEN_MACHINE_UID_LABEL)
            machines = self._deps.cache.stores[MACHINE]
            complete = self._deps.cache.complete(MACHINE)
            uids = frozenset(uid_of(machine) for machine in machines) if complete else None
            sweeper = Sweeper(uids, self._deps.mark(), self._deps.namespace, self._deps.now())
            found = sweeper.sweep(listed)
            for orphan in found.orphans:
                _log.warning("token outlived its Machine, it is removed", token=orphan.key.name)
                await client.delete(orphan)
            self._learn(key, found, began)
        except NotLeadingError:
            return
        except KubeError as error:
            _log.info("tokens can't be listed", why=error.plain)
        finally:
            self._places[key].sweeping = None

    def _learn(self, key: Key | None, found: Sweep, began: float) -> None:
        """Answers of calls that ended after the list began are newer than the list."""
        place = self._places[key]
        place.swept_at = began
        curious, place.curious = place.curious, set()
        changed = set(curious)
        for uid, seen in found.alive.items():
            known = self._known.get(uid)
            if known is None or (known.at < began and isinstance(known.data, DataAbsent)):
                self._known[uid] = _Known(seen, self._time())
                changed.add(uid)
        for uid, known in self._known.items():
            lost = isinstance(known.data, DataPresent) and known.at < began and uid not in found.alive
            if lost and self._home.get(uid, key) == key and isinstance(known.data, DataPresent):
                known.data = replace(known.data, whole=False)
                changed.add(uid)
        for uid in changed:
            self._tell(uid)

    def _target_changed(self, place: Key | None) -> None:
        """All that wait for their cluster look again: which Clusters live where is not known here."""
        waiting, self._waiting = self._waiting, {}
        for uids in waiting.values():
            for uid in uids:
                self._tell(uid)

    def _tell(self, uid: str) -> None:
        for listener in self._listeners:
            listener(uid)

    @staticmethod
    def _time() -> float:
        return asyncio.get_running_loop().time()


def _stays_here(action: BootstrapAction) -> bool:
    """Whether the API server of the Machines is enough: that of the Nodes is what the host is to make."""
    if isinstance(action, EnsureBootstrap):
        return action.order.founding is not None and not action.order.founding.answers
    return not action.ids or action.founds is not None
