"""The shell around a room: what wakes it, what it does with outcomes, and how it takes failures."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from controllers.kernel.actions import Create, CreateHost, Patch
from controllers.kernel.plan import Blocked, Failed, Outcome, Plan, Settled, Wait, steps
from controllers.kernel.refs import MACHINE, MACHINE_SET, NODE, Key, Ref, ref_of, uid_of
from controllers.kernel.view import HostAbsent, HostPresent, HostReads, HostUnknown
from nodewright.runtime.hosts.options import HostOptions
from nodewright.runtime.kube.errors import ApiError, NoAnswer
from nodewright.runtime.queues.queue import Lane
from providers.base.contract import HostIdentity, HostRequest
from providers.base.errors import ErrorClass
from tests.builders.objects import machine, machine_set
from tests.runtime import cloud_scene
from tests.runtime.shell_stage import MS, always, once, story
from tests.runtime.virtual_time import now


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
    answers = s.hold_writes()
    s.show(MACHINE_SET, machine_set("ms"), "ADDED")
    await asyncio.sleep(0.01)
    stopping = asyncio.create_task(s.controller.stop(grace=10))
    await asyncio.sleep(1)
    answers.set()
    await stopping
    assert s.api.asked == ["patch ms"]
