"""A proxy between a client, a cloudpool and a cluster, all of them over real HTTP on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp

from controllers.kernel.refs import NAMESPACE, NODE, POD, POD_DISRUPTION_BUDGET, Key, Kind, Ref
from hack.cloudpool.pool import Pool, serving
from nodewright.apiserver.app import APIServer, APIServerConfig
from nodewright.gateways.cloudpool.backend import BackendOptions
from nodewright.gateways.cloudpool.listener import ListenerOptions
from nodewright.gateways.cloudpool.proxy import CloudpoolProxy, ProxyOptions
from nodewright.gateways.cloudpool.scaler import ScalerOptions
from nodewright.runtime.kube.client import ClientLimits, KubeClient
from nodewright.runtime.kube.errors import ApiError
from nodewright.runtime.kube.kubeconfig import load_kubeconfig

SLOW = "example.com/slow"
REPLICA_SET = Kind("apps", "v1", "ReplicaSet", "replicasets")


def options_for(pool: Pool, **more: Any) -> ProxyOptions:
    return ProxyOptions(
        BackendOptions(pool.url, more.pop("backend_timeout", 30.0)),
        more.pop("listener", ListenerOptions(port=0)),
        ScalerOptions(**{"api_timeout": 30.0, **more.pop("scaler", {})}),
        more.pop("drain_timeout", 60.0),
    )


def node_body(name: str, cpu: str = "4", **spec: Any) -> dict[str, Any]:
    offer = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"providerID": f"test:///here/{name}", **spec},
        "status": {
            "capacity": offer,
            "allocatable": offer,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-20T08:00:00Z"}],
        },
    }


def pod_body(name: str, node: str, cpu: str = "100m", **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": more.pop("namespace", "default"), "labels": more.pop("labels", {"app": "web"})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        # What takes its time to stop does so until ``Scene.kill`` takes this away.
        "metadata": {**meta, "ownerReferences": more.pop("owners", []), "finalizers": [SLOW] * more.pop("slow", False)},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "example.com/c", "resources": {"requests": {"cpu": cpu}}}],
            **more.pop("spec", {}),
        },
    }


@dataclass
class Scene:
    """``kube`` is the administrator's client, ``requests`` counts what the proxy asked of the API server."""

    plane: APIServer
    kube: KubeClient
    proxy_client: KubeClient
    pool: Pool
    session: aiohttp.ClientSession
    proxy: CloudpoolProxy | None = None
    options: ProxyOptions | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    async def node(self, name: str, machine: bool = True, **more: Any) -> None:
        body = node_body(name, **more)
        created = await self.kube.create(NODE, body)
        target = Ref(NODE, Key("", name), created["metadata"]["uid"])
        await self.kube.patch_status(target, body["status"])
        if machine:
            self.pool.add(name)

    async def pod(self, name: str, node: str, phase: str = "Running", **more: Any) -> None:
        space = more.setdefault("namespace", "default")
        more.setdefault("owners", [await self.owner(space)])
        body = pod_body(name, node, **more)
        created = await self.kube.create(POD, body)
        target = Ref(POD, Key(body["metadata"]["namespace"], name), created["metadata"]["uid"])
        ready = [{"type": "Ready", "status": "True"}]
        await self.kube.patch_status(target, {"phase": phase, "conditions": ready if phase == "Running" else []})

    async def owner(self, namespace: str = "default") -> dict[str, Any]:
        """The owner that recreates the pods of the namespace; a garbage collector asks whether it is there."""
        if namespace not in self.extra:
            if namespace not in {"default", "kube-system"}:
                await self.kube.create(
                    NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
                )
            labels = {"app": "web"}
            template = {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "example.com/c"}]},
            }
            spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
            meta = {"name": "web", "namespace": namespace}
            body = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec}
            self.extra[namespace] = (await self.kube.create(REPLICA_SET, body))["metadata"]["uid"]
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": self.extra[namespace]}
        return {**reference, "controller": True}

    async def budget(self, name: str, app: str, namespace: str = "default", **spec: Any) -> None:
        meta = {"name": name, "namespace": namespace}
        selector = {"matchLabels": {"app": app}} if app else {}
        body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta}
        await self.kube.create(POD_DISRUPTION_BUDGET, {**body, "spec": {"selector": selector, **spec}})

    async def nodes(self) -> dict[str, Any]:
        return {node["metadata"]["name"]: node for node in (await self.kube.list_page(NODE)).items}

    async def pods(self, node: str = "") -> set[str]:
        found = (await self.kube.list_page(POD)).items
        return {pod["metadata"]["name"] for pod in found if not node or pod["spec"].get("nodeName") == node}

    async def gone(self, kind: Kind, name: str, namespace: str = "") -> bool:
        try:
            await self.kube.get(kind, Key(namespace, name))
        except ApiError as error:
            return error.not_found
        return False

    async def kill(self, pod: str, namespace: str = "default") -> None:
        """As a kubelet, once the pod has stopped."""
        await self.kube.merge_patch(Ref(POD, Key(namespace, pod)), {"metadata": {"finalizers": None}})

    async def comes(self, ask: Callable[[], Awaitable[bool]]) -> None:
        """Wait until the answer is yes."""
        async with asyncio.timeout(60.0):
            while not await ask():  # noqa: ASYNC110  (the facts are in servers, which know no events of ours)
                await asyncio.sleep(0.01)

    async def start(self, **more: Any) -> CloudpoolProxy:
        self.options = options_for(self.pool, **more)
        self.proxy = CloudpoolProxy(self.proxy_client, self.options)
        await self.proxy.__aenter__()
        await self.proxy._watching.current(60.0)
        return self.proxy

    async def stop(self) -> None:
        if self.proxy is not None:
            await self.proxy.__aexit__(None, None, None)
            self.proxy = None

    async def crash(self) -> None:
        """End the proxy without giving it time for anything."""
        assert self.proxy is not None
        tasks = list(self.proxy._scaler.operations._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.stop()

    async def ask(self, method: str, path: str, **what: Any) -> tuple[int, Any]:
        assert self.proxy is not None
        async with self.session.request(method, self.proxy.url + path, **what) as answer:
            text = await answer.text()
            return answer.status, await answer.json() if answer.content_type == "application/json" and text else text

    async def set_size(self, size: int) -> tuple[int, Any]:
        return await self.ask("POST", "/pool/size", json={"desiredSize": size})

    async def terminate(self, machine: str, decrement: bool = True) -> tuple[int, Any]:
        return await self.ask("POST", "/pool/terminate", json={"machineId": machine, "decrementDesiredSize": decrement})

    def proxy_calls(self) -> int:
        """Requests that the proxy's client has sent so far, watches and lists of its caches left out."""
        return sum(self.plane_counts().values())

    def plane_counts(self) -> dict[str, int]:
        from nodewright.runtime.telemetry import metrics  # noqa: PLC0415

        found: dict[str, int] = {}
        for family in metrics.KUBE_REQUESTS.collect():
            for sample in family.samples:
                if sample.name.endswith("_total") and sample.labels["controller"] == "cloudpool-proxy":
                    verb = f"{sample.labels['verb']} {sample.labels['resource']}"
                    found[verb] = found.get(verb, 0) + int(sample.value)
        return found


async def scale_down(stage: Scene, nodes: int, pods: int) -> tuple[int, float]:
    """By ``nodes`` of twice as many, with that many ``pods`` on each; requests to the API server, and seconds."""
    for number in range(2 * nodes):
        await stage.node(f"n{number:02}", cpu="16")
    await stage.owner()
    going = [stage.pod(f"p{number:02}-{pod}", f"n{number:02}") for number in range(nodes) for pod in range(pods)]
    staying = [stage.pod(f"q{number}", f"n{number:02}", cpu="4") for number in range(nodes, 2 * nodes)]
    await asyncio.gather(*going, *staying)
    await stage.start()
    before, started = stage.proxy_calls(), asyncio.get_running_loop().time()
    assert await stage.set_size(nodes) == (200, "")
    took = asyncio.get_running_loop().time() - started
    assert sorted(stage.pool.terminated) == [f"n{number:02}" for number in range(nodes)]
    assert stage.pool.chosen == []
    assert len(await stage.pods()) == nodes
    return stage.proxy_calls() - before, took


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    pool = Pool()
    async with APIServer(APIServerConfig()) as plane, serving(pool) as server:
        pool.url = str(server.make_url("")).rstrip("/")
        connection = await load_kubeconfig([plane.kubeconfig_path])
        limits = ClientLimits(backoff=0.01, request_timeout=30.0)
        async with (
            KubeClient(connection, "tests") as kube,
            KubeClient(replace(connection), "cloudpool-proxy", limits) as proxy_client,
            aiohttp.ClientSession() as session,
        ):
            stage = Scene(plane, kube, proxy_client, pool, session)
            try:
                yield stage
            finally:
                await stage.stop()
