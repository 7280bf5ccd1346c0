"""The thin client: what it sends, what it makes of answers, and what it never sends twice."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from controllers.kernel.refs import MACHINE, NODE, POD, Key, Ref
from nodewright import __version__
from nodewright.runtime.kube.client import ClientLimits, KubeClient
from nodewright.runtime.kube.connection import Connection, StaticToken
from nodewright.runtime.kube.errors import ApiError, NoAnswer
from tests.runtime.conftest import QUICK
from tests.runtime.stub_server import StubServer, answers, hangs_up, status, text, until

M1 = Ref(MACHINE, Key("default", "m-1"), "uid-1")
BODY = {"metadata": {"name": "m-1", "namespace": "default"}}


async def test_it_says_which_controller_of_which_version_it_is(client: KubeClient, stub: StubServer) -> None:
    await client.named("machineset").create(MACHINE, BODY)
    assert stub.requests[0].headers["User-Agent"] == f"nodewright/{__version__} (machineset)"


async def test_paths_are_those_of_the_kubernetes_api(client: KubeClient, stub: StubServer) -> None:
    await client.get(MACHINE, Key("ns", "m"))
    await client.get(NODE, Key("", "n"))
    await client.create(MACHINE, BODY)
    await client.patch_status(M1, {"phase": "Running"})
    await client.scale(M1, 3)
    await client.evict(Ref(POD, Key("ns", "p"), "u"))
    assert [request.path for request in stub.requests] == [
        "/apis/cluster.k8s.io/v1alpha1/namespaces/ns/machines/m",
        "/api/v1/nodes/n",
        "/apis/cluster.k8s.io/v1alpha1/namespaces/default/machines",
        "/apis/cluster.k8s.io/v1alpha1/namespaces/default/machines/m-1/status",
        "/apis/cluster.k8s.io/v1alpha1/namespaces/default/machines/m-1/scale",
        "/api/v1/namespaces/ns/pods/p/eviction",
    ]


async def test_a_patch_carries_the_uid_and_the_resource_version_it_was_planned_for(
    client: KubeClient, stub: StubServer
) -> None:
    await client.merge_patch(M1, {"metadata": {"labels": {"a": "b"}}}, resource_version="7")
    assert stub.requests[0].content_type == "application/merge-patch+json"
    want = {"metadata": {"labels": {"a": "b"}, "uid": "uid-1", "resourceVersion": "7"}}
    assert orjson.loads(stub.bodies[0]) == want


async def test_a_delete_carries_the_uid_it_was_planned_for(client: KubeClient, stub: StubServer) -> None:
    await client.delete(M1, "Foreground")
    sent = orjson.loads(stub.bodies[0])
    assert sent["preconditions"] == {"uid": "uid-1"}
    assert sent["propagationPolicy"] == "Foreground"


async def test_a_delete_may_be_meant_for_one_state_of_the_object(client: KubeClient, stub: StubServer) -> None:
    await client.delete(M1, resource_version="7")
    assert orjson.loads(stub.bodies[0])["preconditions"] == {"uid": "uid-1", "resourceVersion": "7"}


async def test_an_eviction_carries_the_uid_of_the_pod(client: KubeClient, stub: StubServer) -> None:
    await client.evict(Ref(POD, Key("ns", "p"), "uid-p"))
    assert orjson.loads(stub.bodies[0])["deleteOptions"] == {"preconditions": {"uid": "uid-p"}}


async def test_a_bearer_token_is_sent_but_never_shown() -> None:
    connection = Connection("https://x", tokens=StaticToken("s3cret"), client_key=b"k3y")
    assert "s3cret" not in repr(connection)
    assert "k3y" not in repr(connection)


async def test_an_error_is_told_by_its_status(client: KubeClient, stub: StubServer) -> None:
    stub.script = [answers(409, "AlreadyExists")]
    with pytest.raises(ApiError) as caught:
        await client.create(MACHINE, BODY)
    assert caught.value.already_exists
    assert not caught.value.conflict
    assert not caught.value.ambiguous


async def test_another_uid_is_a_conflict_however_the_server_words_it(client: KubeClient, stub: StubServer) -> None:
    stub.script = [answers(422, "Invalid", causes=[{"field": "metadata.uid"}])]
    with pytest.raises(ApiError) as caught:
        await client.merge_patch(M1, {})
    assert caught.value.conflict


async def test_an_error_page_of_a_proxy_is_an_error_too(client: KubeClient, stub: StubServer) -> None:
    stub.script = [text(413, "<html>too large</html>")]
    with pytest.raises(ApiError, match="too large"):
        await client.create(MACHINE, BODY)


@pytest.mark.parametrize("fault", [answers(500, "InternalError"), answers(503, "ServiceUnavailable"), hangs_up])
async def test_a_read_is_sent_again_after_a_passing_failure(client: KubeClient, stub: StubServer, fault) -> None:  # type: ignore[no-untyped-def]
    stub.script = [fault, fault]
    await client.get(MACHINE, M1.key)
    assert len(stub.requests) == 3


async def test_a_read_is_not_sent_again_for_ever(client: KubeClient, stub: StubServer) -> None:
    stub.script = [answers(500, "InternalError")] * 50
    with pytest.raises(ApiError):
        await client.get(MACHINE, M1.key)
    assert len(stub.requests) == QUICK.attempts


@pytest.mark.parametrize(
    ("fault", "error"),
    [(answers(500, "InternalError"), ApiError), (answers(504, "Timeout"), ApiError), (hangs_up, NoAnswer)],
)
async def test_a_create_without_a_clear_answer_is_not_sent_again_but_told_as_ambiguous(
    client: KubeClient,
    stub: StubServer,
    fault,
    error,  # type: ignore[no-untyped-def]
) -> None:
    stub.script = [fault]
    with pytest.raises(error) as caught:
        await client.create(MACHINE, BODY)
    assert caught.value.ambiguous
    assert len(stub.requests) == 1


async def test_a_write_that_was_turned_away_is_sent_again_when_the_server_says(
    client: KubeClient, stub: StubServer
) -> None:
    stub.script = [answers(429, "TooManyRequests", {"Retry-After": "0"})]
    await client.create(MACHINE, BODY)
    assert len(stub.requests) == 2


async def test_a_wait_that_is_too_long_is_left_to_the_caller(client: KubeClient, stub: StubServer) -> None:
    stub.script = [answers(429, "TooManyRequests", {"Retry-After": "3600"})]
    with pytest.raises(ApiError) as caught:
        await client.create(MACHINE, BODY)
    assert caught.value.retry_after == 3600
    assert len(stub.requests) == 1


async def test_an_eviction_that_a_budget_refuses_is_not_sent_again(client: KubeClient, stub: StubServer) -> None:
    stub.script = [answers(429, "TooManyRequests", {"Retry-After": "1"})]
    with pytest.raises(ApiError) as caught:
        await client.evict(Ref(POD, Key("ns", "p"), "u"))
    assert caught.value.code == 429
    assert len(stub.requests) == 1


async def test_a_server_that_is_not_there_surely_did_nothing() -> None:
    async with KubeClient(Connection("http://127.0.0.1:1"), "tests", QUICK) as client:
        with pytest.raises(NoAnswer) as caught:
            await client.create(MACHINE, BODY)
    assert not caught.value.ambiguous


async def test_a_server_that_does_not_answer_in_time_may_have_acted(stub: StubServer) -> None:
    async def never(_request):  # type: ignore[no-untyped-def]
        await asyncio.Event().wait()

    stub.script = [never]
    async with KubeClient(Connection(stub.url), "tests", ClientLimits(request_timeout=0.05)) as client:
        with pytest.raises(NoAnswer) as caught:
            await client.create(MACHINE, BODY)
    assert caught.value.ambiguous


async def test_no_more_requests_are_in_flight_than_allowed(stub: StubServer) -> None:
    running, most, release = 0, 0, asyncio.Event()

    async def slow(_request):  # type: ignore[no-untyped-def]
        nonlocal running, most
        running += 1
        most = max(most, running)
        await release.wait()
        running -= 1
        return await answers(404, "NotFound")(_request)

    stub.script = [slow] * 10
    async with KubeClient(Connection(stub.url), "tests", ClientLimits(in_flight=3)) as client:
        reads = [asyncio.create_task(client.get(MACHINE, M1.key)) for _ in range(10)]
        await until(lambda: running == 3)
        release.set()
        results = await asyncio.gather(*reads, return_exceptions=True)
    assert most == 3
    assert all(isinstance(result, ApiError) for result in results)


async def test_a_refused_token_is_fetched_anew_once(stub: StubServer) -> None:
    class Rotating:
        value = "old"

        async def token(self) -> str:
            return self.value

        def reject(self) -> None:
            self.value = "new"

    stub.script = [answers(401, "Unauthorized")]
    async with KubeClient(Connection(stub.url, tokens=Rotating()), "tests", QUICK) as client:
        await client.get(MACHINE, M1.key)
    assert [r.headers["Authorization"] for r in stub.requests] == ["Bearer old", "Bearer new"]


async def test_a_watched_object_may_be_larger_than_any_buffer(client: KubeClient, stub: StubServer) -> None:
    batches = client.watch(MACHINE, "100")
    assert await anext(batches) == [], "it is accepted"
    first = asyncio.ensure_future(anext(batches))
    await until(lambda: bool(stub.streams))
    stub.put("m-1", blob="x" * 3_000_000)
    events = await first
    assert len(events[0]["object"]["spec"]["blob"]) == 3_000_000
    await batches.aclose()  # type: ignore[attr-defined]


async def test_a_watch_that_says_nothing_is_given_up(stub: StubServer) -> None:
    async with KubeClient(Connection(stub.url), "tests", ClientLimits(watch_silence=0.05)) as client:
        with pytest.raises(NoAnswer):
            async for _ in client.watch(MACHINE, "100"):
                pass


async def test_a_watch_that_is_refused_tells_why(client: KubeClient, stub: StubServer) -> None:
    stub.script = [answers(410, "Expired")]
    with pytest.raises(ApiError) as caught:
        async for _ in client.watch(MACHINE, "1"):
            pass
    assert caught.value.expired


def test_the_stub_speaks_status() -> None:
    assert status(410, "Expired")["kind"] == "Status"
