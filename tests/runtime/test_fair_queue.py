"""Namespaces take turns: for workers, for requests to the API server, and for provider calls."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from controllers.kernel.actions import CreateHost
from controllers.kernel.refs import MACHINE, Key, Ref
from controllers.kernel.view import HostNeed
from nodewright.runtime.kube.slots import Slots, working_for
from nodewright.runtime.queues.fair_queue import FairQueue
from nodewright.runtime.queues.queue import Lane, WorkQueue
from nodewright.runtime.settings.options import ReconcilerOptions
from providers.base.contract import HostIdentity, HostRequest, HostState
from tests.runtime.cloud_scene import CONFIG, Scene, scene
from tests.runtime.virtual_time import virtual_time


def _queue(share: int | None = None, kept: int = 0) -> WorkQueue[Key]:
    return WorkQueue(group_of=lambda key: key.namespace, share=share, kept=kept)


def test_groups_take_turns_and_keep_their_own_order() -> None:
    turns: FairQueue[str] = FairQueue()
    for item in ("h1", "h2", "h3"):
        turns.append("hostile", item)
    turns.append("busy", "b1")
    assert (len(turns), turns.of("hostile"), set(turns)) == (4, 3, {"h1", "h2", "h3", "b1"})
    assert [turns.pop() for _ in range(5)] == ["h1", "b1", "h2", "h3", None]


def test_a_group_that_may_not_is_passed_over_and_keeps_its_place() -> None:
    turns: FairQueue[str] = FairQueue()
    for group in ("a", "b"):
        turns.append(group, group + "1", "first")
        turns.append(group, group + "2")
    assert turns.pop(lambda group: group != "a") == "b1"
    assert turns.next_group() == "a"
    turns.remove("a", "first")
    assert [turns.pop(), turns.pop(), turns.pop()] == ["a2", "b2", None]
    assert not len(turns)


@virtual_time
async def test_a_key_waits_for_one_key_of_each_other_namespace_not_for_all_of_them() -> None:
    queue = _queue()
    for number in range(1000):
        queue.add(Key("hostile", f"m{number}"))
    queue.add(Key("busy", "a"))
    taken = [(await queue.get())[0].namespace for _ in range(3)]
    assert "busy" in taken


@virtual_time
async def test_a_namespace_has_only_its_share_of_the_workers() -> None:
    queue = _queue(share=2)
    for number in range(5):
        queue.add(Key("hostile", f"m{number}"), Lane.URGENT)
    held = [(await queue.get())[0] for _ in range(2)]
    third = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    assert not third.done(), "two of its keys are out"
    queue.add(Key("busy", "a"), Lane.RESYNC)
    assert (await third)[0] == Key("busy", "a"), "a slower lane's key of another namespace has a worker"
    fourth = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    assert not fourth.done()
    queue.done(held[0])
    assert (await fourth)[0].namespace == "hostile", "the next one is handed out once one is done"


@virtual_time
async def test_of_its_share_a_part_is_for_what_is_urgent_or_new() -> None:
    queue = _queue(share=3, kept=1)
    for number in range(5):
        queue.add(Key("busy", f"m{number}"))
    for _ in range(2):
        await queue.get()
    third = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    assert not third.done(), "two of its keys are out, and the third place is kept"
    queue.add(Key("busy", "new"), Lane.NEW)
    assert (await third)[0] == Key("busy", "new")
    queue.add(Key("busy", "going"), Lane.URGENT)
    fourth = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    assert not fourth.done(), "no more than its share, however urgent"
    queue.done(Key("busy", "new"))
    assert (await fourth)[0] == Key("busy", "going")


@virtual_time
async def test_every_key_is_handed_out_in_the_end() -> None:
    queue, seen = _queue(share=3, kept=1), Counter[Key]()
    keys = [Key(namespace, f"m{number}") for namespace in ("", "a", "b") for number in range(40)]
    for key in keys:
        queue.add(key)

    async def worker() -> None:
        while sum(seen.values()) < len(keys):
            key, _ = await queue.get()
            await asyncio.sleep(0.1)
            seen[key] += 1
            queue.done(key)

    tasks = [asyncio.create_task(worker()) for _ in range(8)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    assert seen == Counter(keys)


def test_there_are_workers_left_for_others() -> None:
    for workers in (2, 4, 32):
        options = ReconcilerOptions(workers)
        assert 0 <= options.workers_kept < options.workers_of_namespace < workers
    assert ReconcilerOptions(1).workers_of_namespace == 1


@virtual_time
async def test_requests_of_one_namespace_leave_slots_for_others() -> None:
    slots, log = Slots(6, 2), list[str]()
    release = asyncio.Event()

    async def request(name: str) -> None:
        async with slots.one():
            log.append(name)
            await release.wait()

    tasks = []
    with working_for("hostile"):
        tasks += [asyncio.create_task(request("hostile")) for _ in range(100)]
    await asyncio.sleep(1)
    assert log == ["hostile"] * 2
    with working_for("busy"):
        tasks.append(asyncio.create_task(request("busy")))
    tasks.append(asyncio.create_task(request("nobody's")))
    await asyncio.sleep(1)
    assert Counter(log) == {"hostile": 2, "busy": 1, "nobody's": 1}
    release.set()
    await asyncio.gather(*tasks)
    assert Counter(log) == {"hostile": 100, "busy": 1, "nobody's": 1}
    assert (slots._free, +slots._held, len(slots._waiting)) == (6, Counter(), 0)


@virtual_time
@pytest.mark.parametrize("released_first", [True, False])
async def test_a_request_that_is_cancelled_while_it_waits_keeps_no_slot(released_first: bool) -> None:
    slots, hold, got = Slots(1, 1), asyncio.Event(), list[str]()

    async def request(name: str, until: asyncio.Event | None = None) -> None:
        async with slots.one():
            got.append(name)
            if until is not None:
                await until.wait()

    first = asyncio.create_task(request("first", hold))
    await asyncio.sleep(0)
    second, third = (asyncio.create_task(request(name)) for name in ("second", "third"))
    await asyncio.sleep(0)
    if released_first:
        hold.set()
        await asyncio.sleep(0)  # the second one's turn has come, and it has not run yet
        second.cancel()
    else:
        second.cancel()
        hold.set()  # its turn comes up between its cancellation and its end
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert got == ["first", "third"]
    assert (slots._free, +slots._held, len(slots._waiting)) == (1, Counter(), 0)


def _create(namespace: str, uid: str) -> CreateHost:
    return CreateHost(
        Ref(MACHINE, Key(namespace, uid), uid), HostRequest(HostIdentity(uid, namespace, uid), CONFIG, "h1"), "why"
    )


@scene(calls_at_once=1)
async def test_provider_calls_take_turns(stage: Scene) -> None:
    for number in range(20):
        stage.directory.submit(_create("hostile", f"h{number}"))
    stage.directory.submit(_create("busy", "b"))
    await stage.settled()
    creates = [call for call in stage.cloud.calls if call != "list"]
    assert creates.index("create b") <= 2


@scene(calls_at_once=8, hosts_in_flight=10)
async def test_hosts_that_never_come_up_leave_places_to_other_namespaces(stage: Scene) -> None:
    stage.cloud.born = HostState.PENDING
    for number in range(30):
        stage.directory.submit(_create("hostile", f"h{number}"))
    await asyncio.sleep(5)
    assert len(stage.cloud.hosts) == 9
    told = stage.directory.look(HostNeed("h29", CONFIG, 60.0))
    assert told is not None
    assert "for namespace hostile come up as may at once (--hosts-in-flight)" in told.queued
    stage.directory.submit(_create("busy", "b"))
    await asyncio.sleep(5)
    assert "b" in stage.cloud.hosts
