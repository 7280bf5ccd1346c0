"""Whoever the proxy depends on is down, slow or talks nonsense: the right code in time, and nothing half done."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.kernel.refs import POD, Key
from hack.children import held_ports
from hack.cloudpool.pool import Instead, hangs, refuses
from hack.cloudpool.scene import Scene
from tests.gateways.cloudpool.test_crashes import _is_closed, _nobody_is_closed
from tests.runtime.stub_server import hangs_up

SICK: dict[str, Instead] = {
    "hangs up": hangs_up,
    "is slow": hangs,
    "answers 500": refuses(500),
    "talks nonsense": refuses(200, "<html>"),
    "says too little": refuses(200, '{"machines": [{"id": "n1"}]}'),
}


async def two(stage: Scene, **options: Any) -> None:
    for name in ("n1", "n2"):
        await stage.node(name)
    await stage.pod("a", "n1")
    await stage.pod("b", "n2", cpu="1")
    await stage.start(backend_timeout=2.0, **options)


async def test_a_backend_that_is_sick_is_a_bad_gateway_in_time_and_nothing_is_done(stage: Scene) -> None:
    await two(stage)
    for what, answer in SICK.items():
        stage.pool.instead["GET /pool"] = answer
        async with asyncio.timeout(180.0):
            size, one = await asyncio.gather(stage.set_size(1), stage.terminate("n1"))
        assert (size[0], one[0]) == (502, 502), what
        assert size[1]["detail"].startswith("failed to retrieve cloudpool: GET /pool"), what
        assert await stage.pods() == {"a", "b"}, what
    assert await _nobody_is_closed(stage)


async def test_a_backend_that_is_not_there_is_told_in_plain_words_and_at_the_start(stage: Scene) -> None:
    proxy = await stage.start()
    assert await proxy.trouble(5.0) == ""
    stage.pool.instead["GET /pool/size"] = refuses(500, "not started")
    assert await proxy.trouble(5.0) == "GET /pool/size: it answered 500: not started"
    await stage.stop()
    with held_ports(1) as [port]:
        stage.pool.url = f"http://127.0.0.1:{port}"
        proxy = await stage.start()
        refused = f"can't connect to 127.0.0.1:{port}: Connection refused"
        assert await proxy.trouble(5.0) == f"GET /pool/size: {refused}"
        assert (await stage.set_size(1))[1]["detail"] == f"failed to retrieve cloudpool: GET /pool: {refused}"
        assert (await stage.ask("GET", "/pool"))[1]["detail"] == refused


@pytest.mark.slow
@pytest.mark.parametrize("what", ["hangs up", "is slow", "answers 500"])
async def test_a_backend_that_gets_sick_at_the_end_is_told_and_the_node_is_put_back(stage: Scene, what: str) -> None:
    await two(stage, scaler={"sweep_every": 0.1})
    stage.pool.instead["POST /pool/terminate"] = SICK[what]
    async with asyncio.timeout(180.0):
        status, body = await stage.set_size(1)
    assert status == 502
    assert "failed to terminate machine n1" in body["detail"]
    assert set(await stage.nodes()) == {"n1", "n2"}
    await stage.comes(lambda: _nobody_is_closed(stage))
    del stage.pool.instead["POST /pool/terminate"]
    assert (await stage.set_size(1))[0] == 200
    assert (stage.pool.terminated, stage.pool.chosen) == (["n1"], [])


@pytest.mark.slow
async def test_an_api_server_that_is_gone_is_told_in_time_and_the_pool_is_not_asked_for_anything(stage: Scene) -> None:
    await two(stage, scaler={"api_timeout": 0.5})
    await stage.plane.__aexit__(None, None, None)
    async with asyncio.timeout(180.0):
        size, one = await asyncio.gather(stage.set_size(1), stage.terminate("n1"))
    assert (size[0], one[0]) == (500, 500)
    assert "failed to retrieve kubernetes worker nodes" in size[1]["detail"]
    assert [call for call, _ in stage.pool.calls if call.startswith("POST")] == []
    assert (await stage.ask("GET", "/pool"))[0] == 200, "what needs no cluster goes on"


@pytest.mark.slow
async def test_an_api_server_that_goes_in_the_middle_leaves_the_machine_alone(stage: Scene) -> None:
    for name in ("n1", "n2"):
        await stage.node(name)
    await stage.pod("a", "n1", slow=True)
    await stage.pod("b", "n2", cpu="1")
    await stage.start(scaler={"api_timeout": 0.5}, drain_timeout=2.0)
    asked = asyncio.create_task(stage.set_size(1))
    await stage.comes(lambda: _is_closed(stage))
    assert "deletionTimestamp" not in (await stage.kube.get(POD, Key("default", "b")))["metadata"]
    await stage.plane.__aexit__(None, None, None)
    async with asyncio.timeout(180.0):
        status, body = await asked
    assert status == 500
    assert body["detail"].startswith("scale-down failed")
    assert stage.pool.terminated == []
