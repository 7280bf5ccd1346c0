"""The proxy is killed at every step of a scale-down and started again: nothing stays closed, and nobody else goes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from api import names
from hack.cloudpool.pool import refuses
from hack.cloudpool.scene import Scene
from nodewright.gateways.cloudpool.proxy import CloudpoolProxy

STEPS = ("merge_patch", "evict", "evict", "pods_on", "pool", "merge_patch", "terminate", "delete")
"""What the proxy asks for one victim with two pods, after the choice."""


class Fuse:
    """Counts what the proxy asks for; at the call of that number, the process is dead: it asks for nothing any more.

    ``after``: that call still reaches its server, and its answer nobody.
    """

    def __init__(self, proxy: CloudpoolProxy, number: int, after: bool) -> None:
        self.blown = asyncio.Event()
        self.seen: list[str] = []
        self._left, self._after = number, after
        client, backend = proxy._watching.client, proxy._backend
        for name in ("merge_patch", "evict", "pods_on", "delete"):
            setattr(client, name, self._fused(name, getattr(client, name)))
        usual = backend.pool
        for name in ("terminate", "set_size"):
            setattr(backend, name, self._fused(name, getattr(backend, name)))
        asked = 0

        async def pool() -> Any:
            nonlocal asked
            asked += 1
            return await (usual() if asked == 1 else self._fused("pool", usual)())  # the first is for the choice

        backend.pool = pool  # type: ignore[method-assign]

    def _fused(self, name: str, usual: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **named: Any) -> Any:
            if self.blown.is_set():
                await asyncio.Event().wait()
            self.seen.append(name)
            self._left -= 1
            if self._left == 0:
                if self._after:
                    await usual(*args, **named)
                self.blown.set()
                await asyncio.Event().wait()
            return await usual(*args, **named)

        return call


async def _nobody_is_closed(stage: Scene) -> bool:
    for node in (await stage.nodes()).values():
        spec, annotations = node["spec"], node["metadata"].get("annotations") or {}
        keys = {taint["key"] for taint in spec.get("taints") or ()}
        if spec.get("unschedulable") or keys & {names.CLOUDPOOL_TAINT, names.DRAINING_TAINT}:
            return False
        if names.CLOUDPOOL_SCALE_DOWN_ANNOTATION in annotations:
            return False
    return True


POINTS = [(number, False) for number in range(1, 9)] + [(7, True), (8, True)]
QUICK = {(3, False, "at once"), (7, True, "later")}
CASES = [(*point, retried) for retried in ("at once", "later") for point in POINTS]


@pytest.mark.parametrize(
    ("number", "after", "retried"),
    [pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow) for case in CASES],
)
async def test_a_proxy_that_is_killed_leaves_nothing_closed_and_the_retry_ends_the_work(
    stage: Scene, number: int, after: bool, retried: str
) -> None:
    for name in ("n1", "n2", "n3"):
        await stage.node(name)
    for pod, node, cpu in (("a", "n1", "100m"), ("b", "n1", "100m"), ("c", "n2", "1"), ("d", "n3", "1")):
        await stage.pod(pod, node, cpu=cpu)
    proxy = await stage.start(backend_timeout=3.0)
    fuse = Fuse(proxy, number, after)
    asked = asyncio.create_task(stage.set_size(2))
    await asyncio.wait_for(fuse.blown.wait(), 300.0)
    assert fuse.seen == list(STEPS[:number])
    await stage.crash()
    await asyncio.gather(asked, return_exceptions=True)

    await stage.start(backend_timeout=3.0, scaler={"sweep_every": 0.1})
    if retried == "later":
        await stage.comes(lambda: _nobody_is_closed(stage))
    assert (await stage.set_size(2))[0] == 200
    await stage.comes(lambda: _nobody_is_closed(stage))
    assert stage.pool.terminated == ["n1"]
    assert stage.pool.chosen == []
    assert stage.pool.desired == 2
    await stage.comes(lambda: _is(stage, {"n2", "n3"}))
    assert await stage.pods() == {"c", "d"}


async def _is(stage: Scene, nodes: set[str]) -> bool:
    return set(await stage.nodes()) == nodes


@pytest.mark.slow
async def test_a_proxy_that_is_stopped_puts_back_what_it_was_emptying(stage: Scene) -> None:
    for name in ("n1", "n2"):
        await stage.node(name)
    await stage.pod("a", "n1", slow=True)
    await stage.pod("b", "n2", cpu="1")
    proxy = await stage.start()
    asked = asyncio.create_task(stage.set_size(1))
    await stage.comes(lambda: _is_closed(stage))
    await proxy._scaler.operations.close("the proxy is being stopped")
    status, body = await asked
    assert status == 500
    assert "the proxy is being stopped" in body["detail"]
    assert await _nobody_is_closed(stage)


async def _is_closed(stage: Scene) -> bool:
    return not await _nobody_is_closed(stage)


@pytest.mark.slow
async def test_a_backend_that_did_it_and_said_otherwise_is_believed_by_what_it_shows(stage: Scene) -> None:
    for name in ("n1", "n2"):
        await stage.node(name)
    await stage.pod("b", "n2", cpu="1")
    await stage.start()

    async def lies(request: Any) -> Any:
        stage.pool.machines["n1"]["machineState"] = "TERMINATING"
        stage.pool.desired -= 1
        return await refuses(500)(request)

    stage.pool.instead["POST /pool/terminate"] = lies
    assert (await stage.set_size(1))[0] == 200
    assert set(await stage.nodes()) == {"n2"}
    assert stage.pool.chosen == []


@pytest.mark.slow
async def test_a_pool_that_answers_from_its_cache_loses_nobody_for_what_has_gone(stage: Scene) -> None:
    for name in ("n1", "n2", "n3"):
        await stage.node(name)
    await stage.start()
    stage.pool.cached = [dict(machine) for machine in stage.pool.machines.values()]
    assert (await stage.set_size(2))[0] == 200
    assert (await stage.set_size(2))[0] == 200
    await stage.crash()
    await stage.start()
    assert (await stage.set_size(2))[0] == 200
    assert len(stage.pool.terminated) == 1
    assert stage.pool.chosen == []
    assert len(await stage.nodes()) == 2
