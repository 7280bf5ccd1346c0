"""A scale-down under load, with a guarded Deployment, on a real control plane with its scheduler and controllers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from controllers.kernel.conditions import find, is_true
from controllers.kernel.refs import NODE, POD, POD_DISRUPTION_BUDGET, Key, Kind, Ref, ref_of
from hack.cloudpool.pool import Pool, serving
from hack.cloudpool.scene import node_body, options_for
from hack.realplane import CONTROLLER_MANAGER, SCHEDULER, SERVERS, RealPlane
from nodewright.gateways.cloudpool.proxy import CloudpoolProxy
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from tests.realplane import REAL, require

pytestmark = REAL

DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments")
WITHOUT = ("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",)
REPLICAS, LEAST = 12, 8
NODES, LEFT = 6, 3
BOOT, STOP = 0.3, 1
"""Seconds until a pod is Ready, and until one that was asked to go has ended."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPlane]:
    require((*SERVERS, CONTROLLER_MANAGER, SCHEDULER))
    with RealPlane(tmp_path_factory.mktemp("plane"), WITHOUT, controller_manager=True, scheduler=True) as running:
        yield running


@dataclass
class Prober:
    """Counts what serves, as often as it can. ``least``: the fewest that were ever seen once all were there."""

    kube: KubeClient
    least: int = REPLICAS
    looks: int = 0

    async def run(self) -> None:
        while True:
            pods = (await self.kube.list_page(POD, namespace="default")).items
            self.looks += 1
            self.least = min(self.least, sum(1 for pod in pods if _serves(pod)))


def _serves(pod: dict[str, Any]) -> bool:
    guarded = pod["metadata"]["labels"].get("app") == "web"
    return guarded and "deletionTimestamp" not in pod["metadata"] and is_true(pod["status"].get("conditions"), "Ready")


@dataclass
class Kubelets:
    """Start what is bound, stop what has to go after its grace, and note whoever was not evicted."""

    kube: KubeClient
    killed: list[str] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self) -> None:
        page = await self.kube.list_page(POD)
        seen: set[tuple[str, bool]] = set()
        for pod in page.items:
            self._take(pod, seen)
        async for batch in self.kube.watch(POD, page.resource_version):
            for event in batch:
                if event["type"] in {"ADDED", "MODIFIED"}:
                    self._take(event["object"], seen)

    def _take(self, pod: dict[str, Any], seen: set[tuple[str, bool]]) -> None:
        going = "deletionTimestamp" in pod["metadata"]
        key = (pod["metadata"]["uid"], going)
        if pod["spec"].get("nodeName") and key not in seen:
            seen.add(key)
            task = asyncio.create_task(self._stop(pod) if going else self._start(pod))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _start(self, pod: dict[str, Any]) -> None:
        await asyncio.sleep(BOOT)
        ready = [{"type": "Ready", "status": "True"}]
        await self._may_be_gone(
            self.kube.patch_status(ref_of(POD, pod), {"phase": "Running", "conditions": [*_said(pod), *ready]})
        )

    async def _stop(self, pod: dict[str, Any]) -> None:
        evicted = find(pod["status"].get("conditions"), "DisruptionTarget")
        if pod["metadata"]["labels"].get("app") == "web" and (evicted or {}).get("reason") != "EvictionByEvictionAPI":
            self.killed.append(pod["metadata"]["name"])
        await asyncio.sleep(STOP)
        await self._may_be_gone(self.kube.delete(ref_of(POD, pod), grace_seconds=0))

    async def _may_be_gone(self, asked: Any) -> None:
        try:
            await asked
        except ApiError as error:
            if not (error.not_found or error.conflict):
                raise


def _said(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [c for c in pod["status"].get("conditions") or [] if c["type"] != "Ready"]


def deployment(name: str, replicas: int) -> dict[str, Any]:
    container = {"name": "c", "image": "example.com/c", "resources": {"requests": {"cpu": "200m", "memory": "64Mi"}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": STOP, "automountServiceAccountToken": False}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


async def prepare(kube: KubeClient, pool: Pool) -> None:
    for number in range(NODES):
        name = f"w{number}"
        body = node_body(name)
        created = await kube.create(NODE, body)
        await kube.patch_status(ref_of(NODE, created), body["status"])
        pool.add(name)
    await kube.create(DEPLOYMENT, deployment("web", REPLICAS))
    await kube.create(DEPLOYMENT, deployment("load", REPLICAS))
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": LEAST, "selector": {"matchLabels": {"app": "web"}}},
    }
    await kube.create(POD_DISRUPTION_BUDGET, budget)


async def all_serve(kube: KubeClient) -> None:
    """Wait until everybody runs, and the budget knows."""
    async with asyncio.timeout(300.0):
        while True:
            pods = (await kube.list_page(POD, namespace="default")).items
            budget = await kube.get(POD_DISRUPTION_BUDGET, Key("default", "web"))
            allowed = (budget.get("status") or {}).get("disruptionsAllowed")
            if sum(1 for pod in pods if _serves(pod)) == REPLICAS and allowed == REPLICAS - LEAST:
                return
            await asyncio.sleep(0.1)


async def changing_load(kube: KubeClient) -> None:
    """Somebody scales another Deployment up and down all the while."""
    replicas = REPLICAS
    while True:
        replicas = REPLICAS + 6 if replicas == REPLICAS else REPLICAS
        await kube.scale(Ref(DEPLOYMENT, Key("default", "load")), replicas)
        await asyncio.sleep(1.0)


@asynccontextmanager
async def at_work(*jobs: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        yield
        for task in tasks:
            assert not task.done(), task.exception()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_availability_never_falls_below_the_budget_and_nobody_is_killed(plane: RealPlane, tmp_path: Path) -> None:
    pool = Pool()
    connection = await load_kubeconfig([plane.kubeconfig])
    async with (
        serving(pool) as server,
        KubeClient(connection, "tests") as kube,
        KubeClient(connection, "cloudpool-proxy") as proxied,
        aiohttp.ClientSession() as session,
    ):
        pool.url = str(server.make_url("")).rstrip("/")
        await prepare(kube, pool)
        prober, kubelets = Prober(kube), Kubelets(kube)
        async with at_work(kubelets.run()):
            await all_serve(kube)
            async with (
                at_work(prober.run(), changing_load(kube)),
                CloudpoolProxy(proxied, options_for(pool, backend_timeout=30.0)) as proxy,
                asyncio.timeout(900.0),
            ):
                await proxy._watching.current(120.0)
                while pool.desired > LEFT:  # as an autoscaler does: it asks again until it has what it wants
                    async with session.post(f"{proxy.url}/pool/size", json={"desiredSize": LEFT}) as answer:
                        assert answer.status in {200, 500}, await answer.text()
                    await all_serve(kube)
        nodes = {node["metadata"]["name"] for node in (await kube.list_page(NODE)).items}
        pods = (await kube.list_page(POD, namespace="default")).items
    assert pool.chosen == []
    assert sorted(pool.terminated) == sorted({f"w{number}" for number in range(NODES)} - nodes)
    assert len(nodes) == LEFT
    assert {pod["spec"]["nodeName"] for pod in pods if "nodeName" in pod["spec"]} <= nodes
    assert kubelets.killed == []
    assert prober.looks > 50
    assert prober.least >= LEAST, f"only {prober.least} of {LEAST} served"
