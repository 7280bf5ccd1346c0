"""What requests cost through our client, kubernetes_asyncio and openstacksdk (ADR 0008): `python -m hack.clients`.

Both ask an embedded API server in a process of its own, over TLS on loopback, one request after the other. CPU is this
process's alone, so the server is not counted.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import orjson
from kubernetes_asyncio import client, config
from openstack.compute.v2.server import Server

from controllers.kernel.refs import CONFIG_MAP, Key
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.kubeconfig import find_connection

CALLS, RUNS, OBJECTS = 300, 5, 500
Call = Callable[[], Awaitable[object]]


async def _cost(call: Call, calls: int) -> tuple[float, float]:
    """Milliseconds of CPU and of wall time per call; the median of ``RUNS``."""
    runs = []
    for _ in range(RUNS):
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(calls):
            await call()
        runs.append(((time.process_time() - cpu) / calls * 1000, (time.perf_counter() - wall) / calls * 1000))
    return median(cpu for cpu, _ in runs), median(wall for _, wall in runs)


async def _ours(path: Path) -> dict[str, tuple[float, float]]:
    connection = await find_connection(path)
    async with KubeClient(connection, "bench") as ours:
        for number in range(OBJECTS):
            body = {"metadata": {"name": f"c-{number}", "namespace": "default"}, "data": {"a": "b" * 200}}
            await ours.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", **body})
        return {
            "get": await _cost(lambda: ours.get(CONFIG_MAP, Key("default", "c-0")), CALLS),
            f"list of {OBJECTS}": await _cost(lambda: ours.list_page(CONFIG_MAP, namespace="default"), 20),
        }


async def _theirs(path: Path) -> dict[str, tuple[float, float]]:
    await config.load_kube_config(str(path))
    async with client.ApiClient() as api:
        core = client.CoreV1Api(api)
        return {
            "get": await _cost(lambda: core.read_namespaced_config_map("c-0", "default"), CALLS),
            f"list of {OBJECTS}": await _cost(lambda: core.list_namespaced_config_map("default", limit=500), 20),
            f"list of {OBJECTS}, bytes parsed by orjson": await _cost(lambda: _raw(core), 20),
        }


async def _raw(core: Any) -> object:
    answer = await core.list_namespaced_config_map("default", limit=500, _preload_content=False)
    return orjson.loads(await answer.read())


def _servers() -> None:
    """openstacksdk's resource layer: what it costs to make objects of a list of servers, and to read one field."""
    addresses = {"net": [{"addr": "10.0.0.7", "version": 4, "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01"}]}
    body = {
        "id": "0", "name": "m-1", "status": "ACTIVE", "created": "2026-01-01T00:00:00Z", "metadata": {"a": "b"},
        "addresses": addresses, "flavor": {"vcpus": 2, "ram": 2048, "disk": 20}, "image": {"id": "i"},
        "OS-EXT-STS:vm_state": "active", "OS-EXT-STS:task_state": None, "tags": ["x", "y"],
    }  # fmt: skip
    text = orjson.dumps({"servers": [{**body, "id": str(number)} for number in range(1000)]})
    for name, read in (
        ("plain dicts", lambda: [one["status"] for one in orjson.loads(text)["servers"]]),
        ("openstacksdk", lambda: [Server.existing(**one).status for one in orjson.loads(text)["servers"]]),
    ):
        runs = []
        for _ in range(RUNS):
            cpu = time.process_time()
            read()
            runs.append((time.process_time() - cpu) * 1000)
        print(f"{name}: list of 1000 servers: {median(runs):.1f} ms of CPU")


def _import_cost(module: str) -> str:
    code = (
        "import resource, sys, time;b=len(sys.modules);c=time.process_time();"
        f"import {module};"
        "print(f'{time.process_time()-c:.2f} s of CPU, {len(sys.modules)-b} modules, "
        "{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss/1024:.0f} MiB')"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    return sorted(run.stdout.strip() for run in runs)[1]


def main() -> None:
    for module in ("nodewright.runtime.kube.client", "kubernetes_asyncio.client", "kopf", "openstack"):
        print(f"import {module}: {_import_cost(module)}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        command = [sys.executable, "-m", "nodewright.cli", "up", "--no-controllers", "--in-memory"]
        server = subprocess.Popen([*command, "--kubeconfig", str(path)], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            while not server.stdout.readline().startswith("ready"):
                assert server.poll() is None, "the API server ended"
            for name, ask in (("ours", _ours), ("kubernetes_asyncio", _theirs)):
                for what, (cpu, wall) in asyncio.run(ask(path)).items():
                    print(f"{name}: {what}: {cpu:.2f} ms of CPU, {wall:.2f} ms")
        finally:
            server.terminate()
            server.wait()
    _servers()


if __name__ == "__main__":
    main()
