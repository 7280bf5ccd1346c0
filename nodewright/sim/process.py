"""One life of the controllers' process: its cache, queue and memory. A crash drops it all; plane and cloud stay.

The cache is the running program's; the watches that feed it may lag or lose events, and the reconciles may die between
any two actions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

from controllers.kernel.actions import (
    Action,
    ApiAction,
    Create,
    CreateFromTemplate,
    CreateHost,
    Delete,
    DeleteHost,
    EnsureBootstrap,
    EnsureEndpoint,
    Event,
    RebootHost,
    RemoveBootstrap,
    RemoveEndpoint,
    RemoveEtcdMember,
    RenewKubeconfig,
    TakeEtcdSnapshot,
    UpdateHost,
)
from controllers.kernel.plan import Blocked, Failed, Plan, Settled, Wait
from controllers.kernel.reconciler import Reconciler
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, Key, Kind, Obj
from controllers.kernel.view import HostNeed, HostReads
from nodewright.apiserver.values import ApiError, WatchOptions
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.store import Change
from nodewright.sim.bootstraps import Bootstraps
from nodewright.sim.clock import VirtualClock
from nodewright.sim.cloud import Cloud
from nodewright.sim.faults import Faults
from nodewright.sim.invariants import Bounds, Guard, bounds
from nodewright.sim.plane import OUTAGE, AnswerLost, Plane
from nodewright.sim.timers import Timers
from nodewright.sim.users import DEPLOYMENT
from providers.base.errors import ProviderError
from providers.simulated.world import World

Say = Callable[[str], None]
RETRY_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
RELIST_SECONDS = 300.0
STALE_SECONDS = 180.0
FAILED_RETRY_SECONDS = 60.0


class Crash(BaseException):
    """The process died before this action."""


@dataclass(frozen=True, slots=True)
class Outside:
    """Everything that outlives the process."""

    plane: Plane
    world: World
    clock: VirtualClock
    random: Random
    faults: Faults
    say: Say
    guard: Guard
    remove_member: Callable[[RemoveEtcdMember], None]


class _Complete:
    """As a reflector has it: what was read counts for a while after the last sign of life."""

    def __init__(self, outside: Outside) -> None:
        self._out = outside
        self._born = outside.clock()

    @property
    def complete(self) -> bool:
        since = self._out.plane.down_since
        return since is None or (self._out.clock() - since).total_seconds() < STALE_SECONDS

    @property
    def current_for(self) -> float | None:
        plane, now = self._out.plane, self._out.clock()
        if plane.down_since is not None and now - plane.down_since > OUTAGE:
            return None
        if plane.returned_at is None or plane.returned_at <= self._born:
            return float("inf")
        return (now - plane.returned_at).total_seconds()


class Process:
    def __init__(self, outside: Outside, reconcilers: Iterable[Reconciler[Any]]) -> None:
        self._out = outside
        self._reconcilers = tuple(reconcilers)
        self._cloud = Cloud(outside.world, outside.clock)
        self._bootstraps = Bootstraps(outside.plane, outside.clock, outside.random, self._may_die)
        kinds = sorted(
            {kind for reconciler in self._reconcilers for kind in reconciler.reads}, key=lambda kind: kind.name
        )
        self._cache = Cache(kinds)
        self._queue: dict[tuple[str, Key], Reconciler[Any]] = {}
        self._timers = Timers()
        self._failures: dict[tuple[str, Key], int] = {}
        self._backlog: dict[Kind, deque[Any]] = {kind: deque() for kind in kinds}
        self._watches: dict[Kind, Any] = {}
        self._lossy: dict[Kind, datetime] = {}
        complete = _Complete(outside)
        for kind in kinds:
            self._cache.keep_complete(kind, complete)
            self._cache.listen(kind, self._wake)
        for kind in kinds:
            self._relist(kind)

    # What the engine asks and does

    def ready(self) -> int:
        """Keys that a reconcile could run for now."""
        for reconciler, key in self._timers.due(self._out.clock()):
            self._queue[reconciler.name, key] = reconciler
        return len(self._queue)

    def next_due(self) -> datetime | None:
        """When something falls due that only time brings: a delayed key, or the relist that repairs a lost event."""
        moments = (self._timers.next_at(), *self._lossy.values())
        return min((moment for moment in moments if moment is not None), default=None)

    def poll(self) -> int:
        """Fetch what the watches have; how many events wait to be delivered."""
        if self._out.plane.down_since is not None:
            return 0
        waiting = 0
        for kind in self._watches:
            self._fetch(kind)
            waiting += len(self._backlog[kind])
        return waiting

    def _fetch(self, kind: Kind) -> None:
        """A watch that fell behind what the plane remembers is begun again with a list, as a reflector does."""
        try:
            while self._watches[kind].pending:
                self._backlog[kind].extend(self._watches[kind].poll())
        except ApiError as error:
            if error.code != 410:
                raise
            self._relist(kind)

    def deliver(self, everything: bool = False) -> None:
        """Hand some waiting events of some kind to the cache, or all of them; one may get lost on the way."""
        now = self._out.clock()
        if self._out.plane.down_since is not None:
            return
        for kind in [kind for kind, at in self._lossy.items() if at <= now]:
            del self._lossy[kind]
            self._relist(kind)
        kinds = [kind for kind in self._backlog if self._backlog[kind]]
        if not everything and kinds:
            kinds = [self._out.random.choice(kinds)]
        for kind in kinds:
            backlog = self._backlog[kind]
            for _ in range(len(backlog) if everything else self._out.random.randint(1, len(backlog))):
                event = backlog.popleft()
                if self._out.random.random() < self._out.faults.lost_event:
                    self._lossy.setdefault(kind, now + timedelta(seconds=RELIST_SECONDS))
                    self._out.say(f"the {event.type} of {kind} {event.object['metadata']['name']} is lost")
                    continue
                self._cache.watched(kind, event.type, _own(event.object))

    def run_one(self) -> None:
        """One reconcile of a random waiting key. Raises Crash."""
        slot = self._out.random.choice(list(self._queue)) if len(self._queue) < 64 else next(iter(self._queue))
        reconciler, key = self._queue.pop(slot), slot[1]
        self._timers.drop(reconciler, key)
        view = self._cache.view(self._out.clock())
        need = reconciler.needs(key, view)
        hosts = self._read(need) if need is not None else None
        observed = reconciler.observe(key, view, hosts)
        if observed is None:
            return
        plan = reconciler.plan(observed)
        for note in plan.notes:
            self._out.say(f"{reconciler.name} {key.name}: {note}")
        if self._execute(reconciler, key, plan):
            self._failures.pop(slot, None)
            self._after(reconciler, key, plan)

    # Inside

    def _read(self, need: HostNeed) -> HostReads:
        reads = self._cloud.read(need)
        return reads if need.bootstrap is None else replace(reads, bootstrap=self._bootstraps.look(need.bootstrap))

    def _may_die(self, before: str) -> None:
        if self._out.random.random() < self._out.faults.crash:
            raise Crash(f"before {before}")

    def _execute(self, reconciler: Reconciler[Any], key: Key, plan: Plan) -> bool:
        """All steps in order; False if one failed and the key was put back."""
        for step in plan.steps:
            actions = list(step)
            self._out.random.shuffle(actions)
            failed = None
            for action in actions:
                if self._out.random.random() < self._out.faults.crash:
                    raise Crash(f"{reconciler.name} {key.name}: before “{action.why}”")
                try:
                    self._perform(reconciler, key, action)
                except (ApiError, AnswerLost, ProviderError) as error:
                    failed = error
                    self._out.say(f"{reconciler.name} {key.name}: {action.why} … failed: {error}")
            if failed is not None:
                self._retry(reconciler, key)
                return False
        return True

    def _perform(self, reconciler: Reconciler[Any], key: Key, action: Action) -> None:
        if isinstance(action, CreateHost | UpdateHost | DeleteHost | RebootHost):
            self._cloud.perform(action)
            self._later(reconciler, key, 0.0)
        elif isinstance(action, EnsureBootstrap | RemoveBootstrap):
            self._bootstraps.perform(action)
            self._later(reconciler, key, 0.0)
        elif isinstance(action, RemoveEtcdMember):
            self._out.remove_member(action)
            self._later(reconciler, key, 0.0)
        elif isinstance(action, TakeEtcdSnapshot | RenewKubeconfig | EnsureEndpoint | RemoveEndpoint):
            self._later(reconciler, key, 0.0)  # no certificates and no endpoints are played
        else:
            answer = self._guarded(action)
            kind = action.kind if isinstance(action, Create | CreateFromTemplate) else action.target.kind
            if answer is not None and not isinstance(action, Event):
                self._cache.wrote(kind, _own(answer))
            elif isinstance(action, Delete):
                self._cache.deleted(kind, action.target.key, action.target.uid)
        self._out.say(f"{reconciler.name} {key.name}: {action.why}")

    def _guarded(self, action: ApiAction) -> Obj | None:
        """Carry it out under the eyes of the guard. What is refused promises nothing; what is not heard of does."""
        guard, seen, believed = self._out.guard, self._cache.stores[MACHINE], self._believed()
        guard.before(action, seen, believed)
        try:
            answer = self._out.plane.perform(action)
        except AnswerLost:
            guard.done(action, seen, believed)
            raise
        guard.done(action, seen, believed)
        return answer

    def _after(self, reconciler: Reconciler[Any], key: Key, plan: Plan) -> None:
        match plan.outcome:
            case Settled():
                return
            case Wait(after=after) | Blocked(after=after):
                self._later(reconciler, key, after)
            case Failed():
                self._later(reconciler, key, FAILED_RETRY_SECONDS)

    def _retry(self, reconciler: Reconciler[Any], key: Key) -> None:
        failures = self._failures.get((reconciler.name, key), 0)
        self._failures[reconciler.name, key] = failures + 1
        self._later(reconciler, key, RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])

    def _later(self, reconciler: Reconciler[Any], key: Key, seconds: float) -> None:
        self._timers.set(reconciler, key, self._out.clock() + timedelta(seconds=max(seconds, 0.001)))

    def _wake(self, change: Change, from_list: bool) -> None:
        del from_list
        view = self._cache.view(self._out.clock())
        for reconciler in self._reconcilers:
            if reconciler.kind == change.kind:
                self._queue[reconciler.name, change.key] = reconciler
            for wake in reconciler.wakes:
                if wake.kind != change.kind:
                    continue
                both = change.old is not None and change.new is not None
                if wake.ignores and both and wake.ignores(change.old, change.new):  # type: ignore[arg-type]
                    continue
                for obj in (change.old, change.new):
                    if obj is not None:
                        for key in sorted(wake.keys(obj, view)):  # equal seeds, equal stories
                            self._add(reconciler, key, wake.gathers(key, view) if wake.gathers else 0.0)

    def _add(self, reconciler: Reconciler[Any], key: Key, seconds: float) -> None:
        """Put the key into the queue, in ``seconds``: once for all changes that come within them."""
        if seconds:
            self._later(reconciler, key, seconds)
        else:
            self._queue[reconciler.name, key] = reconciler

    def _relist(self, kind: Kind) -> None:
        resource = self._out.plane.resource(kind)
        listed = self._out.plane.list_page(kind)
        self._backlog[kind].clear()
        options = WatchOptions(resource_version=listed.resource_version)
        self._watches[kind] = self._out.plane.store.watch(resource, "", options)
        self._cache.listed(kind, [_own(obj) for obj in listed.items], listed.resource_version)

    def _believed(self) -> Bounds:
        there = self._cache.stores.get(MACHINE_DEPLOYMENT)
        deployment = there.get(DEPLOYMENT) if there is not None else None
        return bounds(deployment) if deployment else Bounds(0, 0)


def _own(obj: Obj) -> dict[str, Any]:
    """The cache strips what it is given, the plane's objects are shared: hand over a copy of the outer levels."""
    meta = dict(obj["metadata"])
    if meta.get("annotations"):
        meta["annotations"] = dict(meta["annotations"])
    return {**obj, "metadata": meta}
