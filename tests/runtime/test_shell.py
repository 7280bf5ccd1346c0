"""The shell around a room: what wakes it, what it does with outcomes, and how it takes failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from controllers.kernel.actions import Action, Create, CreateHost, Patch
from controllers.kernel.plan import Blocked, Failed, Outcome, Plan, Settled, Wait, steps
from controllers.kernel.reconciler import Wake
from controllers.kernel.refs import MACHINE, MACHINE_SET, NODE, Key, Kind, Obj, Ref, key_of, ref_of, uid_of
from controllers.kernel.view import HostAbsent, HostNeed, HostPresent, HostReads, HostUnknown, View
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.hosts.options import HostOptions
from nodewright.runtime.kube.errors import ApiError, NoAnswer
from nodewright.runtime.queues.queue import Lane
from nodewright.runtime.reconciling.shell import Controller, Facts
from nodewright.runtime.settings.options import ReconcilerOptions
from nodewright.runtime.writes.executor import ExecutorDeps
from providers.base.contract import HostIdentity, HostRequest
from providers.base.errors import ErrorClass
from tests.builders.clock import NOW
from tests.builders.objects import machine, machine_set
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


@story
async def test_a_change_wakes_the_keys_that_the_room_names(stage: Any) -> None:
    s = stage(always())
    s.show(MACHINE_SET, machine_set("ms"), "ADDED")
    await s.quiet()
    s.show(MACHINE, machine("m").of(machine_set("ms")), "ADDED")
    await s.quiet()
    assert [key for key, _ in s.reconciler.reconciles] == [MS, MS]


@story
async def test_an_object_that_moves_to_another_owner_wakes_both(stage: Any) -> None:
    s = stage(always())
    for name in ("ms", "other"):
        s.show(MACHINE_SET, machine_set(name), "ADDED")
    s.show(MACHINE, machine("m").of(machine_set("ms")).version("5"), "ADDED")
    await s.quiet()
    s.reconciler.reconciles.clear()
    s.show(MACHINE, machine("m").of(machine_set("other")).kubelet("9").version("6"))
    await s.quiet()
    assert {key.name for key, _ in s.reconciler.reconciles} == {"ms", "other"}


@story
async def test_a_change_that_the_room_ignores_wakes_nobody(stage: Any) -> None:
    s = stage(always())
    s.show(MACHINE_SET, machine_set("ms"), "ADDED")
    m = machine("m").of(machine_set("ms"))
    s.show(MACHINE, m.version("5"), "ADDED")
    await s.quiet()
    before = s.reconciles
    s.show(MACHINE, m.version("6"))
    await s.quiet()
    assert s.reconciles == before


@story
async def test_ten_changes_while_a_round_runs_cause_one_more_round(stage: Any) -> None:
    s = stage(once([Patch(Ref(MACHINE_SET, MS, "u"), {}, "why")]))
    s.show(MACHINE_SET, machine_set("ms"), "ADDED")
    for number in range(10):
        s.show(MACHINE, machine(f"m-{number}").of(machine_set("ms")), "ADDED")
    await s.quiet()
    assert s.reconciles <= 2


@story
async def test_no_round_is_played_on_a_world_that_is_not_completely_read(stage: Any) -> None:
    s = stage(always())
    s.gate[MACHINE].complete = False
    s.show(MACHINE_SET, machine_set("ms"), "ADDED")
    await asyncio.sleep(10)
    assert s.reconciles == 0
    s.gate[MACHINE].complete = True
    await asyncio.sleep(2)
    assert s.reconciles == 1


@story
async def test_waiting_looks_again_after_that_time_and_blocked_too(stage: Any) -> None:
    outcomes: list[Outcome] = [Settled(), Blocked("somebody else", after=30), Wait(5, "host")]
    s = stage(lambda _key, _hosts: Plan(outcome=outcomes.pop()))
    s.show(MACHINE_SET, machine_set("ms"), "ADDED")
    await asyncio.sleep(100)
    moments = [moment for _, moment in s.reconciler.reconciles]
    assert [round(b - a) for a, b in pairwise(moments)] == [5, 30]


@story
async def test_settled_and_failed_wait_for_a_change(stage: Any) -> None:
    for outcome in (Settled(), Failed("InvalidConfiguration", "no")):
        s = stage(always(outcome))
        s.show(MACHINE_SET, machine_set("ms"), "ADDED")
        await asyncio.sleep(500)
        assert s.reconciles == 1


@story
async def test_everything_is_looked_at_once_in_a_while(stage: Any) -> None:
    s = stage(always())
    s.show(MACHINE_SET, machine_set("ms"), "ADDED")
    await asyncio.sleep(1500)
    assert s.reconciles == 2


@story
async def test_a_bug_in_a_room_is_tried_again_and_does_not_touch_other_keys(stage: Any) -> None:
    def decide(key: Key, _hosts: HostReads | None) -> Plan:
        if key.name == "bad" and s.reconciles < 10:
            raise ZeroDivisionError("a bug")
        return Plan()

    s = stage(decide)
    s.show(MACHINE_SET, machine_set("bad"), "ADDED")
    s.show(MACHINE_SET, machine_set("good"), "ADDED")
    await asyncio.sleep(100)
    keys = [key.name for key, _ in s.reconciler.reconciles]
    assert keys.count("good") == 1
    assert keys.count("bad") == 9
    gaps = [b[1] - a[1] for a, b in pairwise(s.reconciler.reconciles[2:])]
    assert gaps[-1] > gaps[0], "it backs off"


@story
async def test_a_bug_in_a_wake_is_survived(stage: Any) -> None:
    s = stage(always())
    s.show(MACHINE_SET, machine_set("ms"), "ADDED")
    s.show(MACHINE, {"metadata": {"name": "m", "uid": "u", "ownerReferences": [{}]}, "spec": {}}, "ADDED")
    s.show(MACHINE, machine("m-2").of(machine_set("ms")), "ADDED")
    await s.quiet()
    assert s.reconciles >= 1


@story
async def test_a_failed_action_is_tried_again_later_and_later(stage: Any) -> None:
    patch = Patch(Ref(MACHINE_SET, MS, "u"), {}, "why")
    s = stage(lambda _key, _hosts: Plan(steps([patch])) if s.reconciles <= 7 else Plan())
    s.api.fails["patch"] = [ApiError(403, "Forbidden", "no")] * 6
    s.show(MACHINE_SET, machine_set("ms"), "ADDED")
    await asyncio.sleep(60)
    assert len(s.api.asked) == 7
    gaps = [b[1] - a[1] for a, b in pairwise(s.reconciler.reconciles)]
    assert gaps[4] > gaps[0]


@story
async def test_a_plan_that_is_never_content_is_slowed_down(stage: Any) -> None:
    s = stage(always(None, [Patch(Ref(MACHINE_SET, MS, "u"), {}, "why")]))
    s.show(MACHINE_SET, machine_set("ms"), "ADDED")
    await asyncio.sleep(60)
    assert 60 < len(s.api.asked) < 400


@story
async def test_the_owner_is_not_planned_before_a_create_without_answer_is_resolved(stage: Any) -> None:
    body = machine("m-1").of(machine_set("ms")).build()
    s = stage(once([Create(MACHINE, body, "wanted")]))
    s.api.fails["create"] = [NoAnswer("cut", sent=True)] * 3
    s.show(MACHINE_SET, machine_set("ms"), "ADDED")
    for _ in range(3):
        await asyncio.sleep(0.01)
        s.show(MACHINE_SET, machine_set("ms").version(str(10 + s.reconciles)).labelled(x=str(now())))
    await asyncio.sleep(5)
    assert s.api.asked == ["create m-1"] * 4
    assert s.reconciler.reconciles[1][1] > s.reconciler.reconciles[0][1], "the second plan came after the answer"
    assert s.cache.stores[MACHINE].get(Key("default", "m-1")) is not None


@story
async def test_creates_without_answer_are_dropped_when_their_owner_is_gone(stage: Any) -> None:
    s = stage(once([Create(MACHINE, machine("m-1").of(machine_set("ms")).build(), "wanted")]))
    s.api.fails["create"] = [NoAnswer("cut", sent=True)] * 1000
    s.show(MACHINE_SET, machine_set("ms"), "ADDED")
    await asyncio.sleep(1)
    s.show(MACHINE_SET, machine_set("ms").version("9"), "DELETED")
    await asyncio.sleep(200)
    assert s.controller.queue.idle
    asked = len(s.api.asked)
    await asyncio.sleep(500)
    assert len(s.api.asked) == asked


def _host_of(obj: Any) -> CreateHost:
    body = obj.build()
    identity = HostIdentity(uid_of(body), "default", body["metadata"]["name"])
    return CreateHost(ref_of(MACHINE_SET, body), HostRequest(identity, cloud_scene.CONFIG, "h1"), "why")


@story
async def test_a_round_that_needs_a_host_waits_for_the_list_without_holding_a_worker(stage: Any) -> None:
    s = stage(always(), hosts=True)
    s.hosts.cloud.takes = 1.0
    for number in range(50):
        s.show(MACHINE_SET, machine_set(f"ms-{number}"), "ADDED")
    await s.quiet()
    assert s.reconciles == 0, "no round before the list is there"
    await asyncio.sleep(1.5)
    assert s.reconciles == 50
    assert all(reads is not None and reads.host == HostAbsent() for reads in s.reconciler.seen)
    assert s.hosts.cloud.lists() == 1


@story
async def test_the_end_of_a_provider_call_wakes_the_machine(stage: Any) -> None:
    obj = machine_set("ms")

    def decide(_key: Key, hosts: HostReads | None) -> Plan:
        assert hosts is not None
        return Plan(steps([_host_of(obj)])) if isinstance(hosts.host, HostAbsent) and not hosts.in_flight else Plan()

    s = stage(decide, hosts=True)
    s.show(MACHINE_SET, obj, "ADDED")
    await asyncio.sleep(1)
    assert isinstance(s.reconciler.seen[-1].host, HostPresent)
    assert [call for call in s.hosts.cloud.calls if call != "list"] == ["create uid-ms"]


@story
async def test_a_provider_that_is_down_lets_rounds_go_on_with_unknown(stage: Any) -> None:
    s = stage(always(), hosts=True)
    s.hosts.cloud.errors["list"] = [cloud_scene.error(ErrorClass.UNAVAILABLE)] * 2
    s.show(MACHINE_SET, machine_set("ms"), "ADDED")
    await asyncio.sleep(30)
    assert isinstance(s.reconciler.seen[0].host, HostUnknown)
    assert s.reconciler.seen[-1].host == HostAbsent()


@story
async def test_a_call_that_waits_for_its_turn_is_taken_back_when_its_machine_is_deleted(stage: Any) -> None:
    s = stage(always(), hosts=True)
    s.hosts.cloud.takes = 0.0
    obj = machine_set("ms")
    s.show(MACHINE_SET, obj, "ADDED")
    await asyncio.sleep(0.1)
    s.hosts.directory._scopes[next(iter(s.hosts.directory._scopes))]._options = HostOptions(calls_at_once=0)
    assert s.hosts.directory.submit(_host_of(obj))
    s.show(MACHINE_SET, machine_set("ms").version("7").deleting())
    await s.quiet()
    assert not s.hosts.directory.busy


@story
async def test_what_deletes_is_looked_at_first_then_what_is_new(stage: Any) -> None:
    s = stage(always())
    lanes: list[tuple[str, Lane]] = []
    s.controller.queue.add = lambda key, lane=Lane.NORMAL: lanes.append((key.name, lane))
    s.show(MACHINE_SET, machine_set("new"), "ADDED")
    s.show(MACHINE_SET, machine_set("going").version("7").deleting())
    s.show(NODE, {"metadata": {"name": "n", "uid": "n"}}, "ADDED")
    s.cache.listed(MACHINE_SET, [machine_set("found").version("90").build()], "95")
    s.show(MACHINE_SET, machine_set("found").version("96"))
    assert lanes[:3] == [("new", Lane.NEW), ("going", Lane.URGENT), ("ms", Lane.URGENT)]
    assert lanes[-1] == ("found", Lane.NORMAL)
    assert ("found", Lane.RESYNC) in lanes


@story
async def test_a_node_that_is_well_waits_for_machines_without_a_host(stage: Any) -> None:
    """The Nodes of the first of a thousand Machines would else keep the last ones from getting their hosts."""
    s = stage(always())
    lanes: list[tuple[str, Lane]] = []
    s.controller.queue.add = lambda key, lane=Lane.NORMAL: lanes.append((key.name, lane))
    for version, status in enumerate(("False", "True", "True", "Unknown")):
        node = {"metadata": {"name": "n", "uid": "n", "resourceVersion": str(version + 1)}}
        s.show(NODE, {**node, "status": {"conditions": [{"type": "Ready", "status": status}]}}, "MODIFIED")
    assert [lane for _, lane in lanes] == [Lane.URGENT, Lane.NORMAL, Lane.NORMAL, Lane.URGENT]


@story
async def test_a_stop_lets_running_rounds_end(stage: Any) -> None:
    s = stage(once([Patch(Ref(MACHINE_SET, MS, "u"), {}, "why")]))
    slow = asyncio.Event()
    ask = s.api._ask

    async def patient(verb: str, name: str) -> None:
        await slow.wait()
        await ask(verb, name)

    s.api._ask = patient
    s.show(MACHINE_SET, machine_set("ms"), "ADDED")
    await asyncio.sleep(0.01)
    stopping = asyncio.create_task(s.controller.stop(grace=10))
    await asyncio.sleep(1)
    slow.set()
    await stopping
    assert s.api.asked == ["patch ms"]
