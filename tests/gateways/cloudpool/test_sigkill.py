"""The real process of the proxy dies by SIGKILL in a scale-down: nothing stays closed, and nobody else goes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from api import names
from controllers.kernel.refs import POD
from hack.cloudpool.scene import Scene
from tests.gateways.cloudpool.gateway_process import running

Cue = Callable[[Scene], Awaitable[None]]


async def while_the_pods_stop(stage: Scene) -> None:
    """Both have been asked to go, and one has."""

    async def asked() -> bool:
        pods = (await stage.kube.list_page(POD)).items
        return all("deletionTimestamp" in pod["metadata"] for pod in pods if pod["spec"]["nodeName"] == "n1")

    await stage.comes(asked)
    await stage.kill("a")


async def once_the_node_is_closed(stage: Scene) -> None:
    async def closed() -> bool:
        return names.CLOUDPOOL_SCALE_DOWN_ANNOTATION in (
            (await stage.nodes())["n1"]["metadata"].get("annotations") or {}
        )

    await stage.comes(closed)


class Backend:
    """A pool that hangs when it is asked to terminate, having done it or not."""

    def __init__(self, does_it: bool) -> None:
        self._does_it = does_it

    async def __call__(self, stage: Scene) -> None:
        asked = asyncio.Event()

        async def hangs(request: web.Request) -> web.StreamResponse:
            del stage.pool.instead["POST /pool/terminate"]
            if self._does_it:
                stage.pool._terminate(json.loads(await request.read()))
            asked.set()
            await asyncio.sleep(3600)
            return web.Response()

        stage.pool.instead["POST /pool/terminate"] = hangs
        await free(stage)
        await asyncio.wait_for(asked.wait(), 300.0)


async def free(stage: Scene) -> None:
    """Let the pods of the victim stop."""
    for pod in ("a", "b"):
        if pod in await stage.pods("n1"):
            await stage.kill(pod)


CUES: dict[str, Cue] = {
    "once the Node is closed": once_the_node_is_closed,
    "while the pods stop": while_the_pods_stop,
    "the backend was asked, in vain": Backend(does_it=False),
    "the backend was asked, and did it": Backend(does_it=True),
}


async def nobody_is_closed(stage: Scene) -> bool:
    for node in (await stage.nodes()).values():
        keys = {taint["key"] for taint in node["spec"].get("taints") or ()}
        marked = names.CLOUDPOOL_SCALE_DOWN_ANNOTATION in (node["metadata"].get("annotations") or {})
        if marked or node["spec"].get("unschedulable") or keys & {names.CLOUDPOOL_TAINT, names.DRAINING_TAINT}:
            return False
    return True


def config(stage: Scene, folder: Path) -> str:
    file = folder / "config.json"
    api = {"url": stage.plane.url, "auth": {"kubeConfigPath": str(stage.plane.kubeconfig_path)}, "timeout": "20s"}
    file.write_text(json.dumps({"apiServer": api, "backend": {"url": stage.pool.url, "timeout": "3s"}}))
    return f"--config-file={file}"


async def ask(stage: Scene, url: str, size: int) -> tuple[int, Any]:
    async with stage.session.post(f"{url}/pool/size", json={"desiredSize": size}) as answer:
        return answer.status, await answer.text()


@pytest.mark.slow
@pytest.mark.parametrize("cue", CUES)
@pytest.mark.parametrize("retried", ["at once", "later"])
async def test_a_proxy_that_is_killed_and_started_again_ends_the_clients_work_and_no_more(
    stage: Scene, tmp_path: Path, cue: str, retried: str
) -> None:
    for name in ("n1", "n2", "n3"):
        await stage.node(name)
    for pod, node, cpu in (("a", "n1", "100m"), ("b", "n1", "100m"), ("c", "n2", "1"), ("d", "n3", "1")):
        await stage.pod(pod, node, cpu=cpu, slow=node == "n1")
    arguments = ("cloudpool-proxy", config(stage, tmp_path), "--port=0")
    async with running(*arguments) as (url, process):
        asked = asyncio.create_task(ask(stage, url, 2))
        await CUES[cue](stage)
        process.kill()
        assert await process.wait() == -9
        with pytest.raises(aiohttp.ClientError):
            await asked

    async with running(*arguments) as (url, _):
        if retried == "later":
            await stage.comes(lambda: nobody_is_closed(stage))
        again = asyncio.create_task(ask(stage, url, 2))
        while not again.done():
            await free(stage)
            await asyncio.wait({again}, timeout=0.1)
        assert await again == (200, "")
        await stage.comes(lambda: nobody_is_closed(stage))

        async def two_are_left() -> bool:
            return set(await stage.nodes()) == {"n2", "n3"}

        await stage.comes(two_are_left)
    assert stage.pool.terminated == ["n1"]
    assert stage.pool.chosen == []
    assert stage.pool.desired == 2
    assert await stage.pods() == {"c", "d"}
