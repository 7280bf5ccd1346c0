"""Provider calls that wait for their turn: they keep their place, they can be taken back, and they leave nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from controllers.kernel.actions import UpdateHost
from controllers.kernel.plan import Plan, steps
from controllers.kernel.refs import MACHINE_SET, Key
from controllers.kernel.view import HostNeed, HostPresent, HostReads, HostUnknown
from controllers.orphans.sweep import Orphan
from nodewright.runtime.hosts.options import HostOptions
from nodewright.runtime.hosts.scope import Scope
from nodewright.runtime.queues.fair_queue import FairQueue
from providers.base.contract import Host, HostState, Updated
from providers.base.errors import ErrorClass
from tests.builders.objects import machine_set
from tests.runtime.cloud_scene import CONFIG, Scene, create, delete, error, request, scene
from tests.runtime.shell_stage import story

NAMES = ("first", "often", "third", "fourth", "fifth")


def _host(uid: str) -> Host:
    return Host(f"h-{uid}", uid, uid, f"fake://{uid}", HostState.RUNNING, "h1")


def _deletes(calls: list[str]) -> list[str]:
    return [call.removeprefix("delete uid-") for call in calls if call.startswith("delete")]


def _removing(hook: Callable[[Key], bool] = lambda _key: False) -> Callable[[Key, HostReads | None], Plan]:
    """Deletes each host that is there; none of those that ``hook`` holds."""

    def decide(key: Key, hosts: HostReads | None) -> Plan:
        assert hosts is not None
        if not isinstance(hosts.host, HostPresent) or hosts.in_flight or hook(key):
            return Plan()
        found = hosts.host.host
        return Plan() if found.state is HostState.DELETING else Plan(steps([delete(found)]))

    return decide


def _scope(found: Scene) -> Scope:
    return next(iter(found.directory._scopes.values()))


async def _queued_deletions(s: Any) -> None:
    """Five deletions of which one may run at a time, for a minute each; lists take no time."""

    async def listed() -> tuple[Host, ...]:
        return tuple(s.hosts.cloud.hosts.values())

    s.hosts.cloud.list = listed
    for name in NAMES:
        s.hosts.cloud.hosts[f"uid-{name}"] = _host(f"uid-{name}")
        s.show(MACHINE_SET, machine_set(name), "ADDED")
    await s.quiet()
    await asyncio.sleep(1)
    _scope(s.hosts)._options = HostOptions(calls_at_once=1)
    s.hosts.cloud.takes = 60.0
    for number, name in enumerate(NAMES):
        s.show(MACHINE_SET, machine_set(name).version(str(10 + number)).deleting())
        await asyncio.sleep(0.1)


@story
async def test_a_deletion_keeps_its_place_however_often_its_machine_is_reconciled(stage: Any) -> None:
    s = stage(lambda key, hosts: Plan() if s.living(key) else _removing()(key, hosts), hosts=True)
    s.living = lambda key: "deletionTimestamp" not in s.cache.stores[MACHINE_SET].get(key)["metadata"]
    await _queued_deletions(s)
    for number in range(100):
        s.show(MACHINE_SET, machine_set("often").version(str(100 + number)).labelled(x=str(number)).deleting())
        await asyncio.sleep(3)
    assert _deletes(s.hosts.cloud.calls) == list(NAMES)


@story
async def test_a_deletion_keeps_its_place_while_its_host_cannot_be_listed(stage: Any) -> None:
    """A plan that does not know the host does not say that it stays."""
    s = stage(lambda key, hosts: Plan() if s.living(key) else _removing()(key, hosts), hosts=True)
    s.living = lambda key: "deletionTimestamp" not in s.cache.stores[MACHINE_SET].get(key)["metadata"]
    await _queued_deletions(s)

    async def refused() -> tuple[Host, ...]:
        raise error(ErrorClass.UNAVAILABLE)

    s.hosts.cloud.list = refused
    await asyncio.sleep(30)
    for number in range(3):
        s.show(MACHINE_SET, machine_set("often").version(str(100 + number)).labelled(x=str(number)).deleting())
        await asyncio.sleep(3)
    assert any(isinstance(hosts.host, HostUnknown) for hosts in s.reconciler.seen)
    assert [call.uid for call in _scope(s.hosts)._queued[0]] == [f"uid-{name}" for name in NAMES[1:]]


@story
async def test_a_deletion_that_is_decided_no_more_is_not_made(stage: Any) -> None:
    """A hook that was added while it waited."""
    held: set[str] = set()
    s = stage(lambda key, hosts: Plan() if s.living(key) else remove(key, hosts), hosts=True)
    s.living = lambda key: "deletionTimestamp" not in s.cache.stores[MACHINE_SET].get(key)["metadata"]
    remove = _removing(lambda key: key.name in held)
    await _queued_deletions(s)
    held.add("often")
    s.show(MACHINE_SET, machine_set("often").version("100").labelled(x="held").deleting())
    await asyncio.sleep(600)
    assert _deletes(s.hosts.cloud.calls) == [name for name in NAMES if name != "often"]
    assert list(s.hosts.cloud.hosts) == ["uid-often"]


@story
async def test_a_deletion_is_not_made_if_it_is_held_up_while_its_host_cannot_be_listed(stage: Any) -> None:
    """No plan knows the host then, and what somebody has said on the Machine counts all the same."""
    s = stage(lambda key, hosts: Plan() if s.living(key) else _removing()(key, hosts), hosts=True)
    s.living = lambda key: "deletionTimestamp" not in s.cache.stores[MACHINE_SET].get(key)["metadata"]
    await _queued_deletions(s)

    async def refused() -> tuple[Host, ...]:
        raise error(ErrorClass.UNAVAILABLE)

    s.hosts.cloud.list = refused
    await asyncio.sleep(30)
    marks = {NAMES[-1]: "pre-terminate.nodewright.dev/backup", NAMES[-2]: "cluster.x-k8s.io/paused"}
    for name, mark in marks.items():
        s.show(MACHINE_SET, machine_set(name).version("100").annotated(mark, "").deleting())
    await asyncio.sleep(3)
    waiting = [call.uid for call in _scope(s.hosts)._queued[0]]
    assert waiting == [f"uid-{name}" for name in NAMES[1:] if name not in marks]


@story
async def test_a_deletion_whose_machine_is_gone_is_not_made(stage: Any) -> None:
    """Somebody took its finalizer away: the host is an orphan, and what becomes of those is decided elsewhere."""
    s = stage(lambda key, hosts: Plan() if s.living(key) else _removing()(key, hosts), hosts=True)
    s.living = lambda key: "deletionTimestamp" not in s.cache.stores[MACHINE_SET].get(key)["metadata"]
    await _queued_deletions(s)
    s.show(MACHINE_SET, machine_set("often").version("100").deleting(), "DELETED")
    await asyncio.sleep(600)
    assert _deletes(s.hosts.cloud.calls) == [name for name in NAMES if name != "often"]


@scene(calls_at_once=1)
async def test_a_later_deletion_takes_the_place_of_the_earlier_one(stage: Scene) -> None:
    for uid in ("a", "b", "c"):
        assert stage.directory.submit(delete(_host(uid)))
    newer = Host("h-b-2", "b", "b", "fake://b-2", HostState.RUNNING, "h1")
    assert stage.directory.submit(delete(newer))
    assert _scope(stage)._waiting["b"].action.host is newer  # type: ignore[union-attr]
    await stage.settled()
    assert [call for call in stage.cloud.calls if call != "list"] == ["delete a", "delete b", "delete c"]


@scene(calls_at_once=1)
async def test_a_call_is_taken_back_wherever_it_waits(stage: Scene) -> None:
    """Its config was edited since: the Machine's home is another scope now."""
    for uid in ("a", "b"):
        assert stage.directory.submit(create(uid))
    stage.directory.submit(create("other", zone="z"))
    home = stage.directory._home
    home["b"] = home["other"]
    stage.directory.withdraw("b")
    await stage.settled()
    assert stage.cloud.calls.count("create b") == 0
    assert list(stage.cloud.hosts) == ["a"]


class _Counted(str):
    """Counts how often it is compared: what a search through a queue would do."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        _Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("waiting", [100, 1000])
def test_what_is_asked_of_one_machine_costs_the_same_however_many_calls_wait(waiting: int) -> None:
    @scene(calls_at_once=1)
    async def run(stage: Scene) -> None:
        for number in range(waiting):
            stage.directory.submit(create(_Counted(f"uid-{number}")))
        _Counted.compared = 0
        for number in range(1, waiting):
            _scope(stage).queued(f"uid-{number}")
        for number in reversed(range(1, waiting)):
            assert _scope(stage).withdraw(f"uid-{number}")
        assert _Counted.compared <= 10 * waiting
        await stage.settled()
        assert list(stage.cloud.hosts) == ["uid-0"]

    run()


def test_items_with_a_key_are_replaced_in_their_place_and_removed() -> None:
    turns: FairQueue[str] = FairQueue()
    for item in ("a", "b", "c"):
        turns.append("", item, item)
    turns.append("", "newer b", "b")
    turns.remove("", "a")
    with pytest.raises(KeyError):
        turns.remove("", "a")
    assert (len(turns), [turns.pop(), turns.pop(), turns.pop()]) == (2, ["newer b", "c", None])
    for _ in range(2):
        turns.append("", "same")
    assert [turns.pop(), turns.pop(), turns.pop()] == ["same", "same", None]


def _left(stage: Scene) -> dict[str, object]:
    """What is kept by UID or by namespace, of all scopes; what is empty is left out."""
    parts: dict[str, object] = {"home": stage.directory._home}
    for key, scope in stage.directory._scopes.items():
        names = ["in_flight", "waiting", "running_of", "creating", "namespace_of", "answers", "gone", "orphans"]
        parts |= {f"{key} {name}": getattr(scope, f"_{name}") for name in names}
        parts[f"{key} attempts"] = scope._attempts._attempts
        parts[f"{key} queued"] = [call for turns in scope._queued for call in turns]
        poller = stage.directory._pollers[key]
        parts |= {f"{key} asked": poller._asked, f"{key} polled for": poller._waiting}
    return {name: part for name, part in parts.items() if part}


@scene()
async def test_a_machine_that_is_gone_leaves_nothing(stage: Scene) -> None:
    await stage.look()
    for call in ("create", "update", "delete"):
        stage.cloud.errors[call] = [error(ErrorClass.CONFLICT), None]
        for number in range(2):
            uid = f"{call}-{number}"
            host = _host(uid)
            await stage.look(uid)
            actions = {"create": create(uid), "update": UpdateHost(create(uid).machine, request(uid), host, False, "")}
            assert stage.directory.submit(actions.get(call) or delete(host))
            await stage.settled()
            stage.directory.forget(uid)
    stage.directory.forget("u1")
    await asyncio.sleep(0.1)
    assert _left(stage) == {}


@scene()
async def test_a_machine_that_goes_while_its_call_runs_leaves_nothing(stage: Scene) -> None:
    """What the call answers would be put back for nobody."""
    stage.cloud.answer = Updated()
    await stage.look()
    for call in ("create", "update", "delete"):
        stage.cloud.errors[call] = [error(ErrorClass.CONFLICT), None]
        for number in range(2):
            uid = f"{call}-{number}"
            actions = {
                "create": create(uid),
                "update": UpdateHost(create(uid).machine, request(uid), _host(uid), False, ""),
                "delete": delete(_host(uid)),
            }
            assert stage.directory.submit(actions[call])
            await asyncio.sleep(0)
            stage.directory.forget(uid)
            await stage.settled()
    stage.directory.forget("u1")
    await asyncio.sleep(0.1)
    assert _left(stage) == {}


@scene()
async def test_an_orphan_that_could_not_be_removed_and_went_by_itself_leaves_nothing(stage: Scene) -> None:
    stage.cloud.hosts["lost"] = _host("lost")
    stage.cloud.errors["delete"] = [error(ErrorClass.CONFLICT)]
    await stage.look()
    assert stage.directory.remove(Orphan(_scope(stage).name, _host("lost"), "nobody's", True))
    await stage.settled()
    assert _scope(stage).attempt("lost", "") is not None, "it backs off"
    del stage.cloud.hosts["lost"]
    await stage.look(fresh=0.0)
    stage.directory.forget("u1")
    await asyncio.sleep(0.1)
    assert _left(stage) == {}


@scene()
async def test_a_machine_that_was_looked_for_everywhere_leaves_nothing(stage: Scene) -> None:
    await stage.look("a")
    await stage.look("b", config={**CONFIG, "zone": "b"})
    for cloud in stage.clouds.values():
        cloud.takes = 1000
    stage.directory.look(HostNeed("u1", None, 0.0))
    for uid in ("a", "b", "u1"):
        stage.directory.forget(uid)
    assert _left(stage) == {}
