"""The reflector: whatever happens to the stream, the store becomes equal to the server, and no deletion is missed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from controllers.kernel.refs import MACHINE, Kind
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.reflector import Reflector, ReflectorOptions
from nodewright.runtime.cache.store import Change
from nodewright.runtime.kube.client import KubeClient, Page
from tests.runtime.stub_server import StubServer, answers, hangs_up, status, text, until

QUICK = ReflectorOptions(page_size=2, backoff=0.001, longest_backoff=0.01, failures_before_list=3)


class Following:
    """A reflector at work, its cache, and the changes that listeners heard."""

    def __init__(self, client: KubeClient, stub: StubServer) -> None:
        self.stub = stub
        self.cache = Cache([MACHINE])
        self.reflector = Reflector(client, self.cache, MACHINE, QUICK)
        self.heard: list[Change] = []
        self.cache.listen(MACHINE, lambda change, _from_list: self.heard.append(change))

    def in_sync(self) -> bool:
        store = self.cache.stores[MACHINE]
        seen = {key.name: (store.get(key) or {})["metadata"]["resourceVersion"] for key in store.keys()}  # noqa: SIM118
        return seen == {name: obj["metadata"]["resourceVersion"] for name, obj in self.stub.objects.items()}

    async def watching(self) -> None:
        await until(lambda: bool(self.stub.streams))

    async def synced(self) -> None:
        await until(self.in_sync)

    def lists(self) -> int:
        return sum("watch" not in r.query and "continue" not in r.query for r in self.stub.requests)

    def watched_from(self) -> list[str]:
        return [r.query["resourceVersion"] for r in self.stub.requests if "watch" in r.query]

    def deletions(self) -> list[str]:
        return [change.key.name for change in self.heard if change.new is None]


@pytest.fixture
async def following(client: KubeClient, stub: StubServer) -> AsyncIterator[Following]:
    for name in ("a", "b", "c", "d", "e"):
        stub.put(name)
    follower = Following(client, stub)
    task = asyncio.create_task(follower.reflector.run())
    await asyncio.wait_for(follower.reflector.synced.wait(), 120)
    await follower.watching()
    yield follower
    assert not task.done(), "a reflector never ends by itself"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_it_reads_all_pages_and_then_watches_from_there(following: Following) -> None:
    assert following.in_sync()
    assert following.watched_from() == ["105"]
    assert following.reflector.complete


async def test_changes_arrive_as_they_happen(following: Following, stub: StubServer) -> None:
    stub.put("f")
    stub.put("a", x=1)
    stub.remove("b")
    await following.synced()
    assert following.deletions() == ["b"]


async def test_a_clean_end_in_the_middle_of_a_burst_loses_nothing_and_lists_nothing(
    following: Following, stub: StubServer
) -> None:
    for number in range(50):
        stub.put(f"n-{number}")
        if number % 10 == 5:
            stub.write(None)
            await asyncio.sleep(0.002)
    await following.synced()
    assert following.lists() == 1


async def test_a_watch_goes_on_from_the_last_bookmark(following: Following, stub: StubServer) -> None:
    stub.version = 900
    stub.say({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "900"}}})
    await until(lambda: following.reflector._version == "900")
    stub.write(None)
    await until(lambda: len(following.watched_from()) == 2)
    assert following.watched_from()[-1] == "900"


async def test_objects_deleted_while_the_watch_was_too_old_are_reported(following: Following, stub: StubServer) -> None:
    stub.streams.clear()  # the server stops talking to the running watch
    stub.remove("b")
    stub.put("z")
    stub.compact()
    stream_410 = {"type": "ERROR", "object": status(410, "Expired")}
    following.reflector._heard()
    stub.script = []
    await _end_watch(following, stream_410)
    await following.synced()
    assert following.deletions() == ["b"]
    assert following.lists() == 2


async def _end_watch(following: Following, event: dict[str, Any]) -> None:
    """Let the running watch say a last word: reconnect it first, since the test has cut it off from the stub."""
    for request in following.stub.requests:
        if "watch" in request.query and request.transport is not None:
            request.transport.close()
    await until(lambda: bool(following.stub.streams) or following.lists() > 1)
    following.stub.say(event)


async def test_410_as_an_event_lists_anew(following: Following, stub: StubServer) -> None:
    stub.say({"type": "ERROR", "object": status(410, "Expired")})
    await until(lambda: following.lists() == 2)
    stub.put("f")
    await following.synced()


async def test_410_as_an_answer_lists_anew(following: Following, stub: StubServer) -> None:
    stub.script = [answers(410, "Gone")]
    stub.write(None)
    await until(lambda: following.lists() == 2)
    stub.put("f")
    await following.synced()


@pytest.mark.parametrize("code", [429, 500, 504])
async def test_another_error_event_only_interrupts(following: Following, stub: StubServer, code: int) -> None:
    stub.say({"type": "ERROR", "object": status(code, "InternalError")})
    stub.put("f")
    await following.synced()
    assert following.lists() == 1


@pytest.mark.parametrize(
    "fault",
    [
        answers(500, "InternalError"),
        answers(429, "TooManyRequests", {"Retry-After": "0"}),
        answers(503, "ServiceUnavailable"),
        text(502, "bad gateway"),
        hangs_up,
    ],
    ids=["500", "429", "503", "502", "cut"],
)
async def test_a_watch_that_is_refused_is_tried_again(following: Following, stub: StubServer, fault) -> None:  # type: ignore[no-untyped-def]
    stub.script = [fault]
    stub.write(None)
    stub.put("f")
    await following.synced()
    assert following.lists() == 1


async def test_a_connection_cut_in_the_middle_of_an_event_loses_nothing(following: Following, stub: StubServer) -> None:
    stub.write(b'{"type":"ADDED","object":{"metadata":{"na')
    stub.write(None)
    stub.put("f")
    await following.synced()


async def test_a_watch_that_says_nothing_is_begun_again_without_a_list(client: KubeClient, stub: StubServer) -> None:
    client._limits = replace(client._limits, watch_silence=0.01)
    follower = Following(client, stub)
    task = asyncio.create_task(follower.reflector.run())
    await until(lambda: len(follower.watched_from()) > 8)
    assert follower.lists() == 1
    assert follower.reflector.problem == ""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_garbage_in_the_stream_is_survived(following: Following, stub: StubServer) -> None:
    stub.write(b"<html>who are you?</html>\n")
    stub.put("f")
    await following.synced()


async def test_an_event_that_comes_in_pieces_is_put_together(following: Following, stub: StubServer) -> None:
    obj = {"metadata": {"name": "f", "namespace": "default", "uid": "u", "resourceVersion": "106"}}
    stub.objects["f"] = obj
    for piece in (b'{"type":"ADDED","object":{"metadata":{"name":"f","names', b'pace":"default","uid":"u",'):
        stub.write(piece)
        await asyncio.sleep(0.01)
    stub.write(b'"resourceVersion":"106"}}}\n')
    await following.synced()


async def test_a_server_that_stays_away_makes_it_list_anew_when_it_is_back(
    following: Following, stub: StubServer
) -> None:
    stub.script = [hangs_up] * 20
    stub.write(None)
    stub.remove("c")
    await until(lambda: not stub.script)
    await following.synced()
    assert following.deletions() == ["c"]
    assert following.lists() >= 2


async def test_a_list_whose_continue_token_expired_is_taken_in_one_piece(
    following: Following, stub: StubServer
) -> None:
    stub.say({"type": "ERROR", "object": status(410, "Expired")})
    stub.script = [None, answers(410, "Expired")]
    await until(lambda: following.lists() >= 3)
    await following.synced()
    whole = [r for r in stub.requests if "watch" not in r.query and "limit" not in r.query]
    assert len(whole) == 1


async def test_a_kind_that_is_not_served_yet_is_waited_for(client: KubeClient, stub: StubServer) -> None:
    stub.script = [answers(404, "NotFound")] * 5
    stub.put("a")
    follower = Following(client, stub)
    task = asyncio.create_task(follower.reflector.run())
    await until(lambda: "NotFound" in follower.reflector.problem)
    assert not follower.reflector.complete
    await asyncio.wait_for(follower.reflector.synced.wait(), 120)
    assert follower.in_sync()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_listener_that_fails_does_not_stop_the_reflector(following: Following, stub: StubServer) -> None:
    def broken(_change: Change, _from_list: bool) -> None:
        following.cache._listeners[MACHINE].remove(broken)
        raise ValueError("a bug")

    following.cache.listen(MACHINE, broken)
    stub.put("f")
    await following.synced()
    stub.put("g")
    await following.synced()


@pytest.mark.parametrize("seed", range(4))
async def test_the_store_equals_the_server_after_any_sequence_of_faults(
    following: Following, stub: StubServer, seed: int
) -> None:
    dice = random.Random(seed)
    faults = [answers(410, "Expired"), answers(500, "InternalError"), hangs_up, None, answers(429, "TooManyRequests")]
    for _ in range(60):
        match dice.randrange(7):
            case 0:
                stub.write(None)
            case 1:
                stub.say({"type": "ERROR", "object": status(dice.choice([410, 500, 429]), "Scripted")})
            case 2:
                stub.script.append(dice.choice(faults))
            case 3:
                stub.compact()
            case _:
                name = f"n-{dice.randrange(12)}"
                if name in stub.objects and dice.random() < 0.5:
                    stub.remove(name)
                else:
                    stub.put(name, x=dice.random())
        if dice.random() < 0.3:
            await asyncio.sleep(0.002)
    stub.script.clear()
    await following.synced()
    alive: dict[str, bool] = {}
    for change in following.heard:
        alive[change.key.name] = change.new is not None
    assert {name for name, there in alive.items() if there} == set(stub.objects), "listeners know what the store knows"


class Burst:
    """A source with nothing in it, and then many changes at once."""

    def __init__(self, count: int) -> None:
        self._events = [
            {
                "type": "ADDED",
                "object": {"metadata": {"name": f"m{n}", "namespace": "d", "uid": f"{n}", "resourceVersion": f"{n}"}},
            }
            for n in range(1, count + 1)
        ]

    async def list_page(self, _kind: Kind, _limit: int = 500, _continue: str = "") -> Page:
        return Page([], "1", "")

    async def watch(self, _kind: Kind, _version: str, _seconds: int = 300) -> AsyncIterator[list[dict[str, Any]]]:
        yield self._events
        await asyncio.Event().wait()


@pytest.mark.parametrize(("pause", "seen"), [(0.0, 9), (5.0, 2)])
async def test_what_takes_several_turns_does_not_wait_for_a_whole_burst(pause: float, seen: int) -> None:
    cache, done = Cache([MACHINE]), asyncio.Event()
    taken: list[int] = []

    async def answer() -> None:
        for _ in range(4):
            await asyncio.sleep(0)
        taken.append(len(list(cache.stores[MACHINE])))
        done.set()

    tasks = []

    def first(_change: Change, _from_list: bool) -> None:
        if not tasks:
            tasks.append(asyncio.create_task(answer()))

    cache.listen(MACHINE, first)
    reflector = Reflector(Burst(40), cache, MACHINE, ReflectorOptions(batch=2, pause=pause))
    task = asyncio.create_task(reflector.run())
    await asyncio.wait_for(done.wait(), 120)
    task.cancel()
    assert taken == [pytest.approx(seen, abs=1)]
