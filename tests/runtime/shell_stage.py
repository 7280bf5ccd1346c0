"""A stage on which the shell runs one reconciler, in virtual time, with an API server that is a fake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from controllers.kernel.actions import Action
from controllers.kernel.plan import Outcome, Plan, Settled, steps
from controllers.kernel.reconciler import Wake
from controllers.kernel.refs import MACHINE, MACHINE_SET, NODE, Key, Kind, Obj, Ref, key_of, uid_of
from controllers.kernel.view import HostNeed, HostReads, View
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.reconciling.shell import Controller, Facts
from nodewright.runtime.settings.options import ReconcilerOptions
from nodewright.runtime.writes.executor import ExecutorDeps
from tests.builders.clock import NOW
from tests.builders.world import merged
from tests.runtime import cloud_scene
from tests.runtime.test_executor import FakeApi
from tests.runtime.virtual_time import now, virtual_time

MS = Key("default", "ms")


@dataclass
class Reconciler:
    """Does what the test says, and remembers what it was shown."""

    decide: Callable[[Key, HostReads | None], Plan]
    hosts_needed: bool = False
    name: str = "tests"
    kind: Kind = MACHINE_SET
    reads: tuple[Kind, ...] = (MACHINE_SET, MACHINE)
    reconciles: list[tuple[Key, float]] = field(default_factory=list)
    seen: list[HostReads | None] = field(default_factory=list)

    @property
    def wakes(self) -> tuple[Wake, ...]:
        return (
            Wake(MACHINE_SET, lambda obj, _view: (key_of(obj),)),
            Wake(MACHINE, _owner_keys, lambda old, new: old["spec"] == new["spec"]),
            Wake(NODE, lambda _obj, _view: (MS,)),
        )

    def needs(self, key: Key, view: View) -> HostNeed | None:
        obj = view.get(self.kind, key)
        if obj is None or not self.hosts_needed:
            return None
        return HostNeed(uid_of(obj), cloud_scene.CONFIG, 5.0)

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> tuple[Key, HostReads | None] | None:
        if view.get(self.kind, key) is None:
            return None
        self.reconciles.append((key, now()))
        self.seen.append(hosts)
        return key, hosts

    def plan(self, observed: tuple[Key, HostReads | None]) -> Plan:
        return self.decide(*observed)


def _owner_keys(obj: Obj, _view: View) -> Iterable[Key]:
    for reference in obj["metadata"].get("ownerReferences") or ():
        yield Key("default", reference["name"])


class Always:
    def __init__(self, complete: bool = True) -> None:
        self.complete = complete
        self.current_for: float | None = float("inf")


class Api(FakeApi):
    """Answers a patch with the whole object, as a server does."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache(())
        self.patches: list[dict[str, Any]] = []

    async def merge_patch(
        self, target: Ref, patch: Mapping[str, Any], *, subresource: str = "", resource_version: str = ""
    ) -> dict[str, Any]:
        answer = await super().merge_patch(target, patch)
        self.patches.append(dict(patch))
        known = self.cache.stores[target.kind].get(target.key) if target.kind in self.cache.stores else None
        version = {"metadata": {"resourceVersion": answer["metadata"]["resourceVersion"]}}
        return merged(merged(known, patch), version) if known is not None else answer


class Stage:
    def __init__(
        self, decide: Callable[[Key, HostReads | None], Plan], *, hosts: bool = False, workers: int = 4
    ) -> None:
        self.reconciler = Reconciler(decide, hosts)
        self.api = Api()
        self.hosts = cloud_scene.Scene()
        self.cache = self.api.cache = Cache([MACHINE_SET, MACHINE, NODE])
        self.gate = {kind: Always() for kind in self.cache.stores}
        for kind, gate in self.gate.items():
            self.cache.keep_complete(kind, gate)
        executor_deps = ExecutorDeps(
            self.api, self.cache, self.hosts.directory.submit, lambda _event: None, lambda: NOW
        )
        options = ReconcilerOptions(workers=workers, resync=1000)
        self.controller = Controller(self.reconciler, Facts(self.cache, self.hosts.directory), executor_deps, options)
        self.controller.start()

    def show(self, kind: Kind, obj: Any, type_: str = "MODIFIED") -> None:
        self.cache.watched(kind, type_, obj if isinstance(obj, dict) else obj.build())

    async def quiet(self) -> None:
        """Until nobody works (timers may be set)."""
        await asyncio.sleep(0.001)
        while not self.controller.queue.idle:  # noqa: ASYNC110  (virtual time)
            await asyncio.sleep(0.001)

    def hold_writes(self) -> asyncio.Event:
        """The API server answers no write until the event is set."""
        answers, ask = asyncio.Event(), self.api._ask

        async def patient(verb: str, name: str) -> None:
            await answers.wait()
            await ask(verb, name)

        self.api._ask = patient  # type: ignore[method-assign]
        return answers

    @property
    def reconciles(self) -> int:
        return len(self.reconciler.reconciles)

    async def close(self) -> None:
        await self.controller.stop(grace=0)
        await self.hosts.directory.close(grace=0)


def always(outcome: Outcome | None = None, *groups: list[Action]) -> Callable[[Key, HostReads | None], Plan]:
    return lambda _key, _hosts: Plan(steps(*groups), outcome or Settled())


def once(*groups: list[Action]) -> Callable[[Key, HostReads | None], Plan]:
    """Actions the first time, nothing afterwards."""
    plans = [Plan(steps(*groups))]
    return lambda _key, _hosts: plans.pop() if plans else Plan()


def story(test: Any) -> Any:
    """In virtual time; ``stage(...)`` is closed at the end."""

    @virtual_time
    async def run() -> None:
        stages: list[Stage] = []

        def stage(*args: Any, **kwargs: Any) -> Stage:
            stages.append(Stage(*args, **kwargs))
            return stages[-1]

        try:
            await test(stage)
        finally:
            for one in stages:
                await one.close()

    def plain() -> None:
        run()

    plain.__name__, plain.__doc__ = test.__name__, test.__doc__
    return plain
