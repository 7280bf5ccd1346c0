"""What the original gets wrong on the way, by number in docs/tasks/cloudpool-proxy.md; choices are tested beside it
(tests/controllers/cloudpool)."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import orjson
import pytest
from aiohttp import web
from yarl import URL

from api import names
from controllers.kernel.refs import NODE, POD, Key, Ref
from hack.cloudpool.pool import refuses
from hack.cloudpool.scene import Scene, scale_down


async def two(stage: Scene, **pod: Any) -> None:
    """Of two Nodes the first is the lesser used."""
    for name in ("n1", "n2"):
        await stage.node(name)
    await stage.pod("a", "n1", **pod)
    await stage.pod("b", "n2", cpu="1")
    await stage.start()


def closed(node: dict[str, Any]) -> bool:
    keys = {taint["key"] for taint in node["spec"].get("taints", ())}
    return bool(keys & {names.CLOUDPOOL_TAINT, names.DRAINING_TAINT} or node["spec"].get("unschedulable"))


async def test_defect_03_a_machine_that_is_not_terminated_keeps_its_node_and_is_chosen_again(stage: Scene) -> None:
    await two(stage)
    stage.pool.instead["POST /pool/terminate"] = refuses(500)
    status, body = await stage.set_size(1)
    assert (status, body["message"]) == (502, "failed to set desired size")
    nodes = await stage.nodes()
    assert set(nodes) == {"n1", "n2"}
    assert not closed(nodes["n1"])
    assert names.CLOUDPOOL_SCALE_DOWN_ANNOTATION not in nodes["n1"]["metadata"].get("annotations", {})
    del stage.pool.instead["POST /pool/terminate"]
    assert (await stage.set_size(1))[0] == 200
    assert (stage.pool.terminated, stage.pool.chosen) == (["n1"], [])


@pytest.mark.slow
async def test_defect_04_no_machine_ends_before_its_pods_have(stage: Scene) -> None:
    await two(stage, slow=True)
    asked = asyncio.create_task(stage.set_size(1))
    await stage.comes(lambda: _terminating(stage, "a"))
    assert stage.pool.terminated == []
    assert closed((await stage.nodes())["n1"])
    await stage.kill("a")
    assert (await asked)[0] == 200
    assert stage.pool.terminated == ["n1"]


async def _terminating(stage: Scene, pod: str) -> bool:
    return "deletionTimestamp" in (await stage.kube.get(POD, Key("default", pod)))["metadata"]


async def test_defect_06_a_pod_that_came_after_the_choice_is_evicted_too(stage: Scene) -> None:
    await two(stage, slow=True)
    asked = asyncio.create_task(stage.set_size(1))
    await stage.comes(lambda: _terminating(stage, "a"))
    await stage.pod("late", "n1", slow=True)
    await stage.kill("a")
    await stage.comes(lambda: _terminating(stage, "late"))
    assert stage.pool.terminated == []
    await stage.kill("late")
    assert (await asked)[0] == 200


@pytest.mark.slow
async def test_defect_07_an_unexpected_error_holds_up_nobody_after_it(stage: Scene, monkeypatch: Any) -> None:
    await two(stage)
    assert stage.proxy is not None
    usual = stage.proxy._scaler._objects
    monkeypatch.setattr(stage.proxy._scaler, "_objects", lambda: 1 / 0)
    assert (await stage.set_size(1))[0] == 500
    monkeypatch.setattr(stage.proxy._scaler, "_objects", usual)
    assert (await stage.set_size(1))[0] == 200


SPELLINGS = ["/pool/size/", "//pool/size", "/pool//size", "/pool/./size", "/pool/%73ize", "/pool/size?x=1",
             "/pool/size//"]  # fmt: skip
AMBIGUOUS = ["/x/../pool/size", "/x/%2e%2e/pool/size", "/pool/%2e/size", "/pool%2fsize", "/pool/size;v=1",
             "/pool/size%3bv=1", "/pool/size#x", "/pool/size%23x", "\\pool\\size", "/pool%5csize", "/pool/size%00",
             "/pool/size%20", "/pool/%2573ize", "/pool/size%zz", "http://127.0.0.1/pool/size", "@evil.test/pool/size",
             "*", "http:/pool/size", ":1@evil.test/pool/size"]  # fmt: skip
ALIASES = ["/cloudpools/a/terminate", "/cloudpools/a/pool/terminate", "/cloudpools/a/pool/size", "/terminate",
           "/POOL/SIZE", "/pool/Terminate", "/x/pool/size", "/cloudpools/a/membershipStatus"]  # fmt: skip


async def test_defect_08_no_spelling_of_the_path_gets_past_the_proxy(stage: Scene) -> None:
    for name in ("n1", "n2"):
        await stage.node(name)
    await stage.pod("bare", "n1", owners=[])
    await stage.pod("bare2", "n2", owners=[])
    proxy = await stage.start()
    host, port = proxy.url.removeprefix("http://").split(":")
    expected = {
        **dict.fromkeys(SPELLINGS, b" 500 "),
        **dict.fromkeys(AMBIGUOUS, b" 400 "),
        **dict.fromkeys(ALIASES, b" 403 "),
    }
    for spelling, status in expected.items():
        body = b'{"desiredSize": 1}'
        head = (
            f"POST {spelling} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head.encode() + body)
        first = await reader.readline()
        writer.close()
        assert status in first, (spelling, first)
    assert [call for call in stage.pool.calls if "POST" in str(call)] == []


@pytest.mark.slow
async def test_defect_09_an_eviction_that_is_refused_fails_or_comes_too_late_is_no_end(stage: Scene) -> None:
    for name in ("n1", "n2"):
        await stage.node(name)
    for pod in ("a", "b"):
        await stage.pod(pod, "n1", labels={"app": "shy"})
    await stage.pod("c", "n2", cpu="1")
    await stage.start()
    refused: list[str] = []

    async def refuse_once(target: Ref, grace_seconds: int | None = None) -> dict[str, Any]:
        from nodewright.runtime.kube.errors import ApiError  # noqa: PLC0415

        refused.append(target.key.name)
        if len(refused) < 3:
            raise ApiError([429, 500][len(refused) - 1], "Scripted", "not now")
        await stage.kube.delete(target, grace_seconds=0)
        return await usual(target, grace_seconds)

    assert stage.proxy is not None
    client = stage.proxy._watching.client
    usual = client.evict
    client.evict = refuse_once  # type: ignore[method-assign]
    assert (await stage.set_size(1))[0] == 200
    assert len(refused) >= 4, "refused, failed, and then both were gone already"
    assert await stage.pods() == {"c"}
    assert stage.pool.terminated == ["n1"]


@pytest.mark.slow
async def test_defect_10_a_node_is_patched_and_a_change_that_came_between_is_kept(stage: Scene) -> None:
    await two(stage, slow=True)
    assert stage.proxy is not None
    client = stage.proxy._watching.client
    usual, conflicts = client.merge_patch, []

    async def race(target: Ref, patch: Any, **more: Any) -> dict[str, Any]:
        if not conflicts:
            conflicts.append(patch)
            taint = {"key": "other", "value": "x", "effect": "PreferNoSchedule"}
            theirs = {"spec": {"taints": [taint], "podCIDRs": ["10.1.0.0/24"]}}
            await stage.kube.merge_patch(Ref(NODE, Key("", "n1")), theirs)
        return await usual(target, patch, **more)

    client.merge_patch = race  # type: ignore[method-assign, assignment]
    asked = asyncio.create_task(stage.set_size(1))
    await stage.comes(lambda: _terminating(stage, "a"))
    spec = (await stage.nodes())["n1"]["spec"]
    assert conflicts
    assert {taint["key"] for taint in spec["taints"]} >= {"other", names.CLOUDPOOL_TAINT}
    assert spec["podCIDRs"] == ["10.1.0.0/24"]
    await stage.kill("a")
    assert (await asked)[0] == 200


@pytest.mark.slow
async def test_defect_11_a_node_that_does_not_become_empty_is_put_back(stage: Scene) -> None:
    await two(stage, slow=True)
    await stage.stop()
    await stage.start(drain_timeout=0.3)
    status, body = await stage.set_size(1)
    assert status == 500
    assert "it did not become empty in time" in body["detail"]
    assert not closed((await stage.nodes())["n1"])
    assert stage.pool.terminated == []


async def test_defect_11_a_persons_own_cordon_stays(stage: Scene) -> None:
    for name, spec in (("n1", {"unschedulable": True}), ("n2", {})):
        await stage.node(name, **spec)
    await stage.pod("a", "n1", slow=True)
    await stage.pod("b", "n2", cpu="1")
    await stage.start(drain_timeout=0.3)
    assert (await stage.set_size(1))[0] == 500
    spec = (await stage.nodes())["n1"]["spec"]
    assert spec["unschedulable"] is True
    assert not {t["key"] for t in spec.get("taints", ())} & {names.CLOUDPOOL_TAINT, names.DRAINING_TAINT}


@pytest.mark.parametrize(("nodes", "pods"), [(2, 5), pytest.param(8, 30, marks=pytest.mark.slow)])
async def test_defect_18_the_calls_grow_with_the_pods_and_not_with_the_nodes_squared(
    stage: Scene, nodes: int, pods: int
) -> None:
    calls, _ = await scale_down(stage, nodes, pods)
    assert calls <= nodes * pods + nodes * 6 + 5, f"{calls} calls"


@pytest.mark.slow
async def test_defect_19_a_client_that_repeats_itself_joins_what_is_under_way(stage: Scene) -> None:
    await two(stage, slow=True)
    asked = [asyncio.create_task(stage.set_size(1)) for _ in range(5)]
    await stage.comes(lambda: _terminating(stage, "a"))
    status, shown = await stage.ask("GET", "/.nodewright/status")
    assert status == 200
    assert shown["operations"] == ["desired size 1"]
    assert "default/a" in shown["nodes"]["n1"]
    asked[0].cancel()
    await stage.kill("a")
    assert [(await each)[0] for each in asked[1:]] == [200] * 4
    assert stage.pool.terminated == ["n1"]


@pytest.mark.slow
async def test_defect_19_a_later_wish_supersedes_one_that_is_still_draining(stage: Scene) -> None:
    await two(stage, slow=True)
    first = asyncio.create_task(stage.set_size(1))
    await stage.comes(lambda: _terminating(stage, "a"))
    assert (await stage.set_size(2))[0] == 200
    status, body = await first
    assert status == 500
    assert "superseded by a later request: desired size 2" in body["detail"]
    assert stage.pool.terminated == []
    assert not closed((await stage.nodes())["n1"])


@pytest.mark.slow
async def test_defect_20_a_scale_down_that_falls_short_is_counted_and_an_error_if_asked_for(stage: Scene) -> None:
    from nodewright.runtime.telemetry import metrics  # noqa: PLC0415

    for name in ("n1", "n2", "n3"):
        await stage.node(name)
    await stage.pod("bare", "n2", owners=[])
    await stage.pod("bare2", "n3", owners=[])
    await stage.start()
    assert (await stage.set_size(1))[0] == 200
    assert metrics.CLOUDPOOL_MISSING._value.get() == 1
    assert stage.pool.terminated == ["n1"]
    await stage.stop()
    await stage.node("n4")
    await stage.start(scaler={"strict": True})
    status, body = await stage.set_size(1)
    assert status == 500
    assert "1 machines more should have gone" in body["detail"]
    assert "n2: Node n2: pod default/bare: no controller would make it anew" in body["detail"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "answer", "code"),
    [
        ("GET /pool", refuses(500), 502),
        ("GET /pool", refuses(200, "garbage"), 502),
        ("GET /pool/size", refuses(503), 502),
        ("POST /pool/size", refuses(500), 502),
    ],
)
async def test_defect_20_errors_have_the_codes_of_the_contract(
    stage: Scene, where: str, answer: Any, code: int
) -> None:
    await two(stage)
    assert (await stage.terminate("nobody"))[0] == 404
    stage.pool.instead[where] = answer
    status, body = await stage.set_size(5)
    assert status == code
    assert body["message"] == "failed to set desired size"
    assert body["detail"]


async def test_defect_22_what_passes_arrives_as_it_was_sent(stage: Scene) -> None:
    seen: list[web.Request] = []

    async def echo(request: web.Request) -> web.Response:
        seen.append(request)
        headers = {"Location": "/elsewhere", "X-Kept": "100%s", "Keep-Alive": "timeout=5"}
        return web.Response(status=302, headers=headers, text="100%!")

    stage.pool.instead["GET /pool/metadata"] = echo
    await stage.node("n1")
    await stage.start()
    assert stage.proxy is not None
    headers = {"X-Forwarded-For": "::1", "Te": "trailers", "X-Mine": "a", "Connection": "x-secret", "X-Secret": "s"}
    url = URL(f"{stage.proxy.url}/pool/metadata?a=1&b=%2F", encoded=True)
    async with stage.session.get(url, headers=headers, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["X-Kept"], await answer.text()) == (302, "100%s", "100%!")
        assert "Keep-Alive" not in answer.headers
    (request,) = seen
    assert request.raw_path == "/pool/metadata?a=1&b=%2F"
    assert request.headers["X-Forwarded-For"] == "::1, 127.0.0.1"
    assert request.headers["X-Mine"] == "a"
    assert "Te" not in request.headers
    assert "X-Secret" not in request.headers


@pytest.mark.slow
async def test_defect_22_errors_quote_the_backend_as_it_spoke(stage: Scene) -> None:
    await two(stage)
    stage.pool.instead["POST /pool/terminate"] = refuses(500, orjson.dumps({"message": "100% of it"}).decode())
    _, body = await stage.terminate("n1")
    assert "100% of it" in body["detail"]
    stage.pool.machines["n2"]["membershipStatus"]["evictable"] = False
    assert "its membershipStatus.evictable is false" in (await stage.terminate("n2"))[1]["detail"]


@pytest.mark.slow
async def test_a_backend_that_is_not_there_is_a_bad_gateway(stage: Scene) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        stage.pool.url = f"http://127.0.0.1:{free.getsockname()[1]}"
    await stage.start()
    status, body = await stage.ask("GET", "/pool")
    assert status == 502
    assert body["message"] == "failed to forward request to backend: failed to complete backend cloudpool request"
    status, body = await stage.set_size(1)
    assert status == 502
    assert body["detail"].startswith("failed to retrieve cloudpool: GET /pool:")
