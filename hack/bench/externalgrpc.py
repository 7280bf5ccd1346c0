"""The gRPC gateway under the load of an autoscaler's loop: 15 000 Nodes in 100 groups, beside a trivial echo server.

Server and client are processes of their own. The echo takes and gives the same bytes and looks at nothing, so that it
costs what gRPC itself does.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from api import names
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from hack.bench.figures import Figure
from hack.realplane import cpu_seconds

GROUPS, NODES_OF_A_GROUP = 100, 150
PER_SECOND, SECONDS = 1000, 15
MOST_UNDER_WAY = 200
AT_ONCE, CALLS = 32, 30_000
METHOD = "/clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/NodeGroupForNode"


def gateway() -> list[Figure]:
    with _server("gateway") as (address, pid):
        latencies = asyncio.run(_steady(address))
        rate, cost = asyncio.run(_flat_out(address, pid))
        memory = _memory(pid)
    with _server("echo") as (address, pid):
        echo_latencies = asyncio.run(_steady(address))
        echo_rate, echo_cost = asyncio.run(_flat_out(address, pid))
    return [
        Figure("grpc_nodegroupfornode_p50_ms", _percentile(latencies, 50), "ms", "lower"),
        Figure("grpc_nodegroupfornode_p99_ms", _percentile(latencies, 99), "ms", "lower", "goal", 1.0),
        Figure("grpc_echo_p99_ms", _percentile(echo_latencies, 99), "ms", "lower"),
        Figure("grpc_calls_per_second", rate, "calls/s", "higher", "trivial grpc.aio echo", echo_rate),
        Figure("grpc_cpu_us_per_call", cost * 1e6, "µs", "lower", "trivial grpc.aio echo", echo_cost * 1e6),
        # The lesser of both: where the client is the bottleneck, only the cost tells the servers apart.
        Figure("grpc_ratio_to_echo", min(rate / echo_rate, echo_cost / cost), "", "higher", "goal", 0.7),
        Figure("grpc_gateway_memory_mib", memory, "MiB", "lower", "goal", 500.0),
    ]


async def _steady(address: str) -> list[float]:
    """Seconds of each call; they are sent by the clock, whether or not earlier ones have come back."""
    import grpc  # noqa: PLC0415

    found: list[float] = []
    async with grpc.aio.insecure_channel(address) as channel, asyncio.TaskGroup() as group:
        call = channel.unary_unary(METHOD)
        requests = _requests()
        await asyncio.gather(*(call(each) for each in requests[:100]))
        began, slots = time.perf_counter(), asyncio.Semaphore(MOST_UNDER_WAY)

        async def one(request: bytes) -> None:
            sent = time.perf_counter()
            await call(request)
            found.append(time.perf_counter() - sent)
            slots.release()

        for number in range(PER_SECOND * SECONDS):
            if (early := began + number / PER_SECOND - time.perf_counter()) > 0:
                await asyncio.sleep(early)
            await slots.acquire()
            group.create_task(one(requests[number % len(requests)]))
    return found


async def _flat_out(address: str, pid: int) -> tuple[float, float]:
    """Calls a second with so many at once, and the server's processor seconds a call."""
    import grpc  # noqa: PLC0415

    async with grpc.aio.insecure_channel(address) as channel:
        call = channel.unary_unary(METHOD)
        requests = _requests()
        numbers = iter(range(CALLS))

        async def work() -> None:
            for number in numbers:
                await call(requests[number % len(requests)])

        used, began = cpu_seconds(pid), time.perf_counter()
        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        return CALLS / (time.perf_counter() - began), (cpu_seconds(pid) - used) / CALLS


def _requests() -> list[bytes]:
    """One for each Node, as the Cluster Autoscaler sends them: with labels and annotations."""
    from nodewright.gateways.externalgrpc.wire import cloudprovider_pb2 as wire  # noqa: PLC0415

    labels = {f"node.example.com/label-{number}": f"value-{number}" for number in range(12)}
    return [
        wire.NodeGroupForNodeRequest(
            node=wire.ExternalGrpcNode(providerID=_provider_id(group, node), name=f"node-{group}-{node}", labels=labels)
        ).SerializeToString()
        for group in range(GROUPS)
        for node in range(NODES_OF_A_GROUP)
    ]


@contextmanager
def _server(which: str) -> Iterator[tuple[str, int]]:
    """Address and process id of a server in a process of its own, which ends with its standard input."""
    command = [sys.executable, "-m", "hack.bench.externalgrpc", which]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process.pid
        process.stdin.close()


async def _until_told(address: str) -> None:
    print(address, flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def _serve_gateway() -> None:
    from nodewright.gateways.externalgrpc.changes import Changes  # noqa: PLC0415
    from nodewright.gateways.externalgrpc.fleet import KINDS, Fleet  # noqa: PLC0415
    from nodewright.gateways.externalgrpc.reads import ReadOptions, Reads  # noqa: PLC0415
    from nodewright.gateways.externalgrpc.scaler import Scaler  # noqa: PLC0415
    from nodewright.gateways.externalgrpc.server import GrpcServer, ServerOptions  # noqa: PLC0415
    from nodewright.runtime.cache.cache import Cache  # noqa: PLC0415
    from nodewright.runtime.kube.client import KubeClient  # noqa: PLC0415
    from nodewright.runtime.kube.connection import Connection  # noqa: PLC0415
    from nodewright.runtime.options import utc_now  # noqa: PLC0415
    from nodewright.runtime.recorder import EventRecorder  # noqa: PLC0415

    cache = Cache(KINDS)
    fleet = Fleet(cache, utc_now)
    deployments, sets, machines = _objects()
    for kind, objects in ((CLUSTER, []), (MACHINE_DEPLOYMENT, deployments), (MACHINE_SET, sets), (MACHINE, machines)):
        cache.listed(kind, objects, "1")
    client = KubeClient(Connection("http://127.0.0.1:1"), "bench")  # reads alone are asked for
    scaler = Scaler(client, cache, fleet, EventRecorder(client, "bench", utc_now))
    async with GrpcServer(ServerOptions(), Reads(fleet, ReadOptions()), Changes(fleet, scaler)) as server:
        await _until_told(server.address)


async def _serve_echo() -> None:
    import grpc  # noqa: PLC0415

    async def echo(request: bytes, _: object) -> bytes:
        return request

    service, _, method = METHOD.lstrip("/").partition("/")
    server = grpc.aio.server()
    handlers = {method: grpc.unary_unary_rpc_method_handler(echo)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await _until_told(f"127.0.0.1:{port}")
    await server.stop(1)


def _objects() -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """MachineDeployments, MachineSets and Machines as the API server would list them."""
    deployments, sets, machines = [], [], []
    for group in range(GROUPS):
        name = f"group-{group}"
        bounds = {names.AUTOSCALER_MIN_ANNOTATION: "0", names.AUTOSCALER_MAX_ANNOTATION: "1000"}
        deployment = _object("MachineDeployment", name, {"replicas": NODES_OF_A_GROUP})
        deployment["metadata"]["annotations"] = bounds
        machine_set = _object("MachineSet", f"{name}-1", {"replicas": NODES_OF_A_GROUP}, deployment)
        deployments.append(deployment)
        sets.append(machine_set)
        for node in range(NODES_OF_A_GROUP):
            machine = _object("Machine", f"{name}-1-{node}", {"providerID": _provider_id(group, node)}, machine_set)
            machine["status"] = {
                "phase": "Running",
                "nodeRef": {"kind": "Node", "name": f"node-{group}-{node}"},
                "addresses": [{"type": "InternalIP", "address": f"10.{group}.0.{node}"}],
                "conditions": [
                    {"type": type_, "status": "True", "reason": type_, "lastTransitionTime": "2026-11-20T08:00:00Z"}
                    for type_ in ("Ready", "HostReady", "NodeReady", "Available", "UpToDate")
                ],
            }
            machines.append(machine)
    return deployments, sets, machines


def _object(kind: str, name: str, spec: dict[str, Any], owner: dict[str, Any] | None = None) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"{kind}-{name}", "resourceVersion": "1"}
    if owner is not None:
        found = owner["metadata"]
        meta["ownerReferences"] = [
            {"kind": owner["kind"], "name": found["name"], "uid": found["uid"], "controller": True}
        ]
    return {"apiVersion": names.API_VERSION, "kind": kind, "metadata": meta, "spec": spec}


def _provider_id(group: int, node: int) -> str:
    return f"bench://zone-{group}/instance-{node:06d}"


def _memory(pid: int) -> float:
    """Resident, in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _percentile(found: list[float], percent: int) -> float:
    """In milliseconds."""
    return statistics.quantiles(found, n=100)[percent - 1] * 1000


if __name__ == "__main__":
    asyncio.run({"gateway": _serve_gateway, "echo": _serve_echo}[sys.argv[1]]())
