"""What a workload cluster's API server answers is judged: no redirect, no unbounded body, no type taken on trust."""

from __future__ import annotations

import asyncio
import resource
import sys
from dataclasses import replace
from typing import Any

import orjson
import pytest

from controllers.kernel.refs import MACHINE, NODE, POD, Key, Ref
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.reflector import Reflector, ReflectorOptions
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.connection import Connection, StaticToken
from nodewright.runtime.kube.errors import (
    ApiError,
    KubeError,
    MalformedAnswerError,
    NoAnswer,
    error_from_answer,
)
from nodewright.runtime.kube.servers import checked_sockets
from nodewright.runtime.workloads.metering import Meter, Metered
from nodewright.runtime.workloads.options import WorkloadOptions
from providers.base.addresses import AddressPolicy, networks
from tests.runtime.hostile import MIB, SECRET_WORDS, Answer, Hostile, endless, gzip_bomb, head, json, says
from tests.runtime.stub_server import until

LIMITS = replace(WorkloadOptions().client, request_timeout=30.0, attempts=1, backoff=0.001)
POD_A = {"metadata": {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "1"}}
LIST = {"metadata": {"resourceVersion": "1"}, "items": [POD_A]}
WORDS = SECRET_WORDS.encode()


async def refusal(answer: Answer, **limits: Any) -> KubeError:
    async with (
        Hostile(answer).serve() as server,
        KubeClient(Connection(server.url), "tests", replace(LIMITS, **limits)) as client,
    ):
        with pytest.raises(KubeError) as caught:
            await client.list_page(POD)
        assert SECRET_WORDS not in caught.value.plain
        return caught.value


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
@pytest.mark.parametrize("verb", ["list", "watch", "delete"])
async def test_no_redirect_is_followed(status: int, verb: str) -> None:
    async with Hostile(json(LIST)).serve() as inner:
        to = f"Location: {inner.url}/{SECRET_WORDS}"
        async with Hostile(says(WORDS, status, to)).serve() as outer:
            async with KubeClient(Connection(outer.url, tokens=StaticToken("t")), "tests", LIMITS) as client:
                with pytest.raises(ApiError) as caught:
                    await _ask(client, verb)
            assert inner.asked == []
            assert caught.value.code == status
            assert SECRET_WORDS not in f"{caught.value}{caught.value.plain}"


REFUSALS: dict[str, Answer] = {
    "an error page": says(WORDS, 403, "Content-Type: text/html"),
    "a Status": json({"kind": "Status", "reason": SECRET_WORDS, "message": SECRET_WORDS, "code": 403}, 403),
    "a status line": lambda _: [b"HTTP/9.9 " + WORDS + b"\r\n\r\n"],
    "no HTTP": lambda _: [WORDS + b"\r\n\r\n"],
    "a bad header": lambda _: [b"HTTP/1.1 200 OK\r\n" + WORDS + b"\x00: \x01\r\n\r\n"],
    "a bad length": lambda _: [b"HTTP/1.1 200 OK\r\nContent-Length: -" + WORDS + b"\r\n\r\n"],
    "a bad chunk": lambda _: [head(200, "Transfer-Encoding: chunked"), WORDS + b"\r\n"],
    "text": says(WORDS),
    "half of it": lambda _: [head(200, "Content-Length: 9999"), b'{"items": ["' + WORDS],
    "nothing": lambda _: [],
    "an interim answer": lambda _: [b"HTTP/1.1 103 " + WORDS + b"\r\n\r\n"] * 3,
    "no body": says(b"", 204),
    "wrong codes": json(
        {"kind": "Status", "code": WORDS.decode(), "details": {"retryAfterSeconds": WORDS.decode()}}, 500
    ),
    "long headers": lambda _: [b"HTTP/1.1 200 OK\r\nX: " + WORDS * 10_000 + b"\r\n\r\n"],
    "many headers": lambda _: [b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 100_000],
}


@pytest.mark.parametrize("answer", REFUSALS.values(), ids=REFUSALS)
async def test_no_word_of_an_answer_is_said_on_a_status(answer: Answer) -> None:
    error = await refusal(answer, request_timeout=10.0)
    assert error.plain


GARBAGE: dict[str, Any] = {
    "no JSON": b"{",
    "not UTF-8": b'{"items": "\xff"}',
    "a list": [],
    "a text": "x",
    "null": None,
    "deep": b"[" * 100_000,
    "deep and closed": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "items no list": LIST | {"items": {"a": 1}},
    "items a text": LIST | {"items": "abc"},
    "items of numbers": LIST | {"items": [1]},
    "items of null": LIST | {"items": [None]},
    "metadata a text": LIST | {"metadata": "x"},
    "version a number": LIST | {"metadata": {"resourceVersion": 7}},
    "version too long": LIST | {"metadata": {"resourceVersion": "1" * 5000}},
    "continue an object": LIST | {"metadata": {"continue": {}}},
    "no metadata": LIST | {"items": [{}]},
    "metadata a list": LIST | {"items": [{"metadata": []}]},
}
META: dict[str, Any] = {
    "name": [None, "", 1, ["a"], "x" * 300],
    "namespace": [None, "", 1, {}, "x" * 100],
    "uid": [1, [], "x" * 300],
    "resourceVersion": [1, {}, "1" * 5000],
    "labels": [[1], "a", {"a": 1}, {"a": None}, {"a": {}}],
    "annotations": [[1], "a", {"a": ["b"]}],
    "ownerReferences": [{"a": 1}, "a", [1], [{"uid": 1}], [{"kind": []}]],
    "finalizers": [{"a": 1}, "a", [1]],
    "deletionTimestamp": [1, {}],
}
for _field, _values in META.items():
    for _index, _value in enumerate(_values):
        GARBAGE[f"{_field} {_index}"] = LIST | {"items": [{"metadata": POD_A["metadata"] | {_field: _value}}]}
for _part in ("spec", "status"):
    GARBAGE[_part] = LIST | {"items": [POD_A | {_part: [1]}]}


@pytest.mark.parametrize("body", GARBAGE.values(), ids=GARBAGE)
async def test_wrong_types_are_told_as_a_malformed_answer(body: Any) -> None:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    error = await refusal(says(raw, 200, "Content-Type: application/json"))
    assert isinstance(error, MalformedAnswerError)


@pytest.mark.parametrize(
    "line",
    [
        b"1",
        b"null",
        b"[]",
        b"{}",
        b"x",
        b'{"type": "ADDED"}',
        b'{"type": [], "object": {}}',
        b'{"type": "ADDED", "object": 1}',
        b'{"type": "ADDED", "object": {}}',
        b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": 5}}}',
        b'{"type": "BOOKMARK", "object": {"metadata": 5}}',
        b'{"type": "' + WORDS + b'", "object": {}}',
        b"[" * 100_000,
    ],
)
async def test_a_garbled_event_ends_the_watch_with_a_malformed_answer(line: bytes) -> None:
    async with (
        Hostile(lambda _: [head(), line + b"\n"]).serve() as server,
        KubeClient(Connection(server.url), "tests", LIMITS) as client,
    ):
        with pytest.raises(MalformedAnswerError) as caught:
            async for _ in client.watch(POD, "1"):
                pass
    assert SECRET_WORDS not in str(caught.value)


BODIES: dict[str, Answer] = {
    "told at once": lambda _: [head(200, f"Content-Length: {2 << 30}"), *(b"x" * MIB for _ in range(100))],
    "without a length": endless(b'{"items":[', b'{"a":"' + b"x" * MIB + b'"},'),
    "a huge text": endless(b'{"items":"', b"x" * MIB),
    "spaces": endless(b"", b" " * MIB),
    "refused": lambda _: [head(500), *(b"x" * MIB for _ in range(100))],
    "compressed": says(gzip_bomb(256 * MIB), 200, "Content-Encoding: gzip"),
    "compressed otherwise": says(gzip_bomb(MIB), 200, "Content-Encoding: br, gzip"),
    "many little objects": says(b'{"items":[' + b"{}," * (5 * MIB) + b"{}]}"),
}


@pytest.mark.parametrize("answer", BODIES.values(), ids=BODIES)
async def test_a_body_without_end_is_cut_off(answer: Answer) -> None:
    async with Hostile(answer).serve() as server:
        async with KubeClient(Connection(server.url), "tests", LIMITS) as client:
            with pytest.raises((MalformedAnswerError, ApiError)):
                await client.list_page(POD)
        assert server.sent < 64 * MIB


async def test_a_line_of_a_watch_without_end_is_cut_off() -> None:
    async with Hostile(endless(b'{"type":"', b"x" * MIB)).serve() as server:
        async with KubeClient(Connection(server.url), "tests", LIMITS) as client:
            with pytest.raises(NoAnswer, match="longer than"):
                async for _ in client.watch(POD, "1"):
                    pass
        assert server.sent < 64 * MIB


@pytest.mark.parametrize("watching", [False, True])
async def test_a_body_that_drips_is_given_up(watching: bool) -> None:
    limits = replace(LIMITS, request_timeout=0.3, watch_silence=0.3)
    async with (
        Hostile(endless(b"", b" "), pause=0.01).serve() as server,
        KubeClient(Connection(server.url), "tests", limits) as client,
    ):
        with pytest.raises(NoAnswer):
            await _ask(client, "watch" if watching else "list")


def test_two_gigabytes_cost_little_memory() -> None:
    """In a process of its own: the peak of this one is that of all tests before."""
    import subprocess  # noqa: PLC0415

    code = "import asyncio; from tests.runtime.test_hostile_servers import peak; asyncio.run(peak())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 300 << 10, "KiB"


async def peak() -> None:
    """Print by how many KiB the peak of memory grows with endless lists and events of every kind."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    little = b'{"metadata":{"name":"a","namespace":"b"},"x":[' + b"[]," * 1000 + b"[]]},"
    shapes = (b'{"a":"' + b"x" * MIB + b'"},', b"{}," * MIB, little * 100)
    for shape in shapes:
        for answer in (endless(b'{"items":[', shape), endless(b"", shape), endless(b"\n", shape + b"\n")):
            async with (
                Hostile(answer).serve() as server,
                KubeClient(Connection(server.url), "tests", LIMITS) as client,
            ):
                for asked in (client.list_page(POD), _watched(client)):
                    try:
                        await asked
                    except KubeError:
                        continue
                    raise AssertionError("it was taken")
    sys.stdout.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))


async def _watched(client: KubeClient) -> None:
    async for _ in client.watch(POD, "1", seconds=0):
        pass


async def _ask(client: KubeClient, verb: str) -> None:
    if verb == "list":
        await client.list_page(POD)
    elif verb == "delete":
        await client.delete(Ref(POD, Key("default", "a")))
    else:
        await _watched(client)


async def _take(source: Metered, taken: list[int]) -> None:
    async for batch in source.watch(POD, "1"):
        taken.append(len(batch))


async def test_a_list_without_end_in_pages_is_over_the_budget_of_its_cluster() -> None:
    pages = orjson.dumps(
        {
            "metadata": {"resourceVersion": "1", "continue": "again"},
            "items": [POD_A | {"spec": {"x": "y" * 1000}} for _ in range(500)],
        }
    )
    async with (
        Hostile(says(pages)).serve() as server,
        KubeClient(Connection(server.url), "tests", LIMITS) as client,
    ):
        cache = Cache([POD])
        options = ReflectorOptions(backoff=0.001, longest_backoff=0.01)
        reflector = Reflector(Metered(client, Meter(8 * MIB)), cache, POD, options)
        running = asyncio.create_task(reflector.run())
        await until(lambda: "take more than 8 MiB" in reflector.plain_problem)
        assert not reflector.complete
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_events_without_end_are_over_the_budget_too() -> None:
    def answer(target: str) -> Any:
        if "watch=" not in target:
            return json({"metadata": {"resourceVersion": "1"}, "items": []})(target)
        pods = ({"metadata": POD_A["metadata"] | {"name": f"p{n}"}, "spec": {"x": "y" * 9000}} for n in range(5000))
        return [head(), *(orjson.dumps({"type": "ADDED", "object": pod}) + b"\n" for pod in pods)]

    async with Hostile(answer).serve() as server, KubeClient(Connection(server.url), "tests", LIMITS) as client:
        found = Metered(client, Meter(8 * MIB))
        await found.list_page(POD)
        taken: list[int] = []
        with pytest.raises(KubeError, match="take more than 8 MiB"):
            await _take(found, taken)
        assert 0 < sum(taken) < 1500


async def test_pages_without_items_end() -> None:
    async with (
        Hostile(json({"metadata": {"continue": "again"}, "items": []})).serve() as server,
        KubeClient(Connection(server.url), "tests", LIMITS) as client,
    ):
        reflector = Reflector(client, Cache([POD]), POD, ReflectorOptions(backoff=0.001, longest_backoff=0.01))
        running = asyncio.create_task(reflector.run())
        await until(lambda: "without items" in reflector.plain_problem)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_page_that_is_too_large_is_asked_for_in_smaller_ones() -> None:
    pods = [{"metadata": POD_A["metadata"] | {"name": f"p{n}"}, "spec": {"x": "y" * 9000}} for n in range(100)]

    def answer(target: str) -> Any:
        from yarl import URL  # noqa: PLC0415

        query = URL(target).query
        if "watch" in query:
            return [head()]
        start, size = int(query.get("continue", "0")), int(query["limit"])
        more = {"continue": str(start + size)} if start + size < len(pods) else {}
        return json({"metadata": {"resourceVersion": "5", **more}, "items": pods[start : start + size]})(target)

    limits = replace(LIMITS, largest_answer=200_000)
    async with Hostile(answer).serve() as server, KubeClient(Connection(server.url), "tests", limits) as client:
        cache = Cache([POD])
        options = ReflectorOptions(page_size=80, backoff=0.001, longest_backoff=0.01)
        running = asyncio.create_task(Reflector(client, cache, POD, options).run())
        await until(lambda: len(cache.stores[POD]) == len(pods))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("verb", ["get", "create", "patch", "delete", "pods_on"])
async def test_the_answer_to_one_request_is_judged_like_a_list(verb: str) -> None:
    async with (
        Hostile(json({"kind": "Pod", "metadata": {"name": 5}, "items": [1]})).serve() as server,
        KubeClient(Connection(server.url), "tests", LIMITS) as client,
    ):
        key = Key("default", "a")
        asked = {
            "get": lambda: client.get(POD, key),
            "create": lambda: client.create(POD, POD_A),
            "patch": lambda: client.merge_patch(Ref(POD, key), {}),
            "delete": lambda: client.delete(Ref(POD, key)),
            "pods_on": lambda: client.pods_on("n"),
        }[verb]
        with pytest.raises(MalformedAnswerError):
            await asked()


@pytest.mark.parametrize("details", [1, [], {"causes": 1}, {"causes": [1]}, {"retryAfterSeconds": float("1e999")}])
@pytest.mark.parametrize("code", ["x", None, True, 10**30, -1, 200])
def test_any_status_is_an_error_that_can_be_asked(details: Any, code: Any) -> None:
    for status in (409, 422, 500):
        body = repr({"kind": "Status", "code": code, "details": details, "message": 5, "reason": []})
        text = body.replace("'", '"').replace("None", "null").replace("True", "true").replace("inf", "1e999")
        error = error_from_answer(status, text.encode(), "inf")
        assert error.code == status
        assert error.retry_after is None
        assert isinstance(error.conflict, bool)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "[::1]", "[::ffff:127.0.0.1]"]
)
async def test_the_address_that_is_connected_to_is_what_counts(host: str) -> None:
    """However it is written, and whatever a name resolves to at that moment."""
    async with Hostile(json(LIST)).serve() as server:
        port = server.url.rpartition(":")[2]
        refused = Connection(f"http://{host}:{port}", sockets=checked_sockets(AddressPolicy(loopback=False)))
        async with KubeClient(refused, "tests", LIMITS) as client:
            with pytest.raises(NoAnswer) as caught:
                await client.list_page(POD)
        assert server.asked == []
        assert not caught.value.ambiguous
        allowed = AddressPolicy(allowed=networks(["127.0.0.0/8"]), loopback=False)
        async with KubeClient(Connection(server.url, sockets=checked_sockets(allowed)), "tests", LIMITS) as client:
            assert (await client.list_page(POD)).items


@pytest.mark.parametrize(
    "server", ["http://" + "a" * 300, "http://a..b", "http://" + "a." * 200, "http://xn--\u00e4", "http://[::1%25x]:1"]
)
async def test_a_host_that_is_none_is_no_answer(server: str) -> None:
    async with KubeClient(Connection(server), "tests", LIMITS) as client:
        with pytest.raises(KubeError):
            await client.list_page(NODE)


async def test_a_token_that_no_header_can_carry_is_no_answer() -> None:
    async with KubeClient(Connection("http://127.0.0.1:1", tokens=StaticToken("a\r\nX: y")), "tests", LIMITS) as client:
        with pytest.raises(NoAnswer):
            await client.get(MACHINE, Key("default", "a"))
