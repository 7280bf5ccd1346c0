"""The gRPC gateway under the load of an autoscaler's loop: 15 000 Nodes in 100 groups, beside a trivial echo server.

Servers and client are processes of their own, and the servers take turns of a second: they are measured on the same
machine in the same seconds, whatever else it does. The echo takes and gives the same bytes and looks at nothing, so
that it costs what gRPC itself does. The latencies are those that a client in Go sees (``hack/grpcload.py``).
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from api import names
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from hack.bench.figures import Figure
from hack.binaries import BinaryMissing
from hack.grpcload import Latencies, Load, measure
from hack.realplane import cpu_seconds

if TYPE_CHECKING:
    from nodewright.gateways.externalgrpc.tls import ServerTls

GROUPS, NODES_OF_A_GROUP = 100, 150
PER_SECOND, SECONDS = 1000, 15
AT_ONCE, CALLS, TURNS = 32, 6_000, 5
METHOD = "/clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/NodeGroupForNode"


def gateway() -> list[Figure]:
    with (
        TemporaryDirectory() as folder,
        _server("gateway") as plain,
        _server("secure", folder) as secure,
        _server("echo") as echo,
    ):
        servers = {"gateway": plain.address, "secure": f"tls://{secure.address}", "echo": echo.address}
        latencies = _steady(servers, Path(folder))
        flat_out = _in_turns(plain, echo)
        memory = _memory(plain.pid)
    return [
        *latencies,
        Figure("grpc_handler_mean_us", plain.handler_seconds() * 1e6, "µs", "lower"),
        Figure(
            "grpc_calls_per_second", flat_out.rate, "calls/s", "higher", "trivial grpc.aio echo", flat_out.echo_rate
        ),
        Figure("grpc_cpu_us_per_call", flat_out.cost * 1e6, "µs", "lower", "the same echo", flat_out.echo_cost * 1e6),
        Figure("grpc_ratio_to_echo", flat_out.ratio, "", "higher", "goal", 0.7),
        Figure("grpc_gateway_memory_mib", memory, "MiB", "lower", "goal", 500.0),
    ]


def _steady(servers: Mapping[str, str], certificates: Path) -> list[Figure]:
    """None, and why, where the client can't be had."""
    try:
        found = measure(servers, Load(METHOD, _requests(), PER_SECOND, SECONDS, certificates))
    except BinaryMissing as missing:
        print(f"latencies are left out: {missing}")
        return []
    _show(found)
    told = found["gateway"].answered
    return [
        Figure("grpc_nodegroupfornode_p50_ms", told["p50"], "ms", "lower"),
        Figure("grpc_nodegroupfornode_p99_ms", told["p99"], "ms", "lower", "goal", 1.0),
        Figure("grpc_nodegroupfornode_p99_tls_ms", found["secure"].answered["p99"], "ms", "lower", "goal", 1.0),
        Figure("grpc_echo_p99_ms", found["echo"].answered["p99"], "ms", "lower"),
    ]


def _show(found: Mapping[str, Latencies]) -> None:
    for name, each in found.items():
        counted = ", ".join(
            f"≤{float(edge):g}: {count}" if edge != "more" else f"more: {count}"
            for edge, count in sorted(each.buckets.items())
        )
        told = each.answered
        print(f"{name}: p50 {told['p50']:g} ms, p99 {told['p99']:g} ms ({each.due['p99']:g} from when it was due)")
        print(f"  calls by ms: {counted}")
        if each.failed:
            print(f"  {each.failed} of them without an answer, the last because of: {each.why}")


@dataclass(frozen=True)
class _FlatOut:
    """Calls a second, the server's processor seconds a call, and what part of the echo's calls that is."""

    rate: float
    cost: float
    echo_rate: float
    echo_cost: float

    @property
    def ratio(self) -> float:
        """The lesser of both: where the client is the bottleneck, only the cost tells the servers apart."""
        return min(self.rate / self.echo_rate, self.echo_cost / self.cost)


def _in_turns(server: _Server, echo: _Server) -> _FlatOut:
    """Of pairs of turns the one whose ratio lies in the middle: the machine is never as fast for long."""
    pairs = [_FlatOut(*asyncio.run(_flat_out(server)), *asyncio.run(_flat_out(echo))) for _ in range(TURNS)]
    return sorted(pairs, key=lambda pair: pair.ratio)[TURNS // 2]


async def _flat_out(server: _Server) -> tuple[float, float]:
    """Calls a second with so many at once, and the server's processor seconds a call."""
    import grpc  # noqa: PLC0415

    async with grpc.aio.insecure_channel(server.address) as channel:
        call = channel.unary_unary(METHOD)
        requests = _requests()
        numbers = iter(range(CALLS))

        async def work() -> None:
            for number in numbers:
                await call(requests[number % len(requests)])

        used, began = cpu_seconds(server.pid), time.perf_counter()
        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        return CALLS / (time.perf_counter() - began), (cpu_seconds(server.pid) - used) / CALLS


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


class _Server:
    """One in a process of its own, which ends with its standard input, and then says what its handlers took."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout
        self.pid = process.pid
        self.address = self._stdout.readline().strip()
        self._told = ""

    def end(self) -> None:
        self._stdin.close()
        self._told = self._stdout.read().strip()

    def handler_seconds(self) -> float:
        """Time of a call, on average, once it has ended: what the gateway itself takes, without gRPC."""
        return float(self._told)


@contextmanager
def _server(*which: str) -> Iterator[_Server]:
    command = [sys.executable, "-m", "hack.bench.externalgrpc", *which]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        server = _Server(process)
        try:
            yield server
        finally:
            server.end()


async def _until_told(address: str) -> None:
    print(address, flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def _serve_secure(folder: str) -> None:
    """With new certificates in ``folder``, as ``nodewright gateway externalgrpc certs`` makes them."""
    from nodewright.gateways.externalgrpc.certificates import CertificateOptions, write_all  # noqa: PLC0415
    from nodewright.gateways.externalgrpc.tls import ServerTls, TlsFiles  # noqa: PLC0415

    await asyncio.to_thread(write_all, path := Path(folder), CertificateOptions(("127.0.0.1",)))
    await _serve_gateway(ServerTls(TlsFiles(path / "server.crt", path / "server.key", path / "ca.crt")))


async def _serve_gateway(tls: ServerTls | None = None) -> None:
    from nodewright.gateways.externalgrpc.changes import Changes  # noqa: PLC0415
    from nodewright.gateways.externalgrpc.fleet import KINDS, Fleet  # noqa: PLC0415
    from nodewright.gateways.externalgrpc.memory import settle  # noqa: PLC0415
    from nodewright.gateways.externalgrpc.reads import ReadOptions, Reads  # noqa: PLC0415
    from nodewright.gateways.externalgrpc.scaler import Scaler  # noqa: PLC0415
    from nodewright.gateways.externalgrpc.server import GrpcServer, ServerOptions  # noqa: PLC0415
    from nodewright.runtime.cache.cache import Cache  # noqa: PLC0415
    from nodewright.runtime.kube.client import KubeClient  # noqa: PLC0415
    from nodewright.runtime.kube.connection import Connection  # noqa: PLC0415
    from nodewright.runtime.settings.options import utc_now  # noqa: PLC0415
    from nodewright.runtime.telemetry import metrics  # noqa: PLC0415
    from nodewright.runtime.writes.recorder import EventRecorder  # noqa: PLC0415

    cache = Cache(KINDS)
    fleet = Fleet(cache, utc_now)
    deployments, sets, machines = _objects()
    for kind, objects in ((CLUSTER, []), (MACHINE_DEPLOYMENT, deployments), (MACHINE_SET, sets), (MACHINE, machines)):
        cache.listed(kind, objects, "1")
    settle()
    client = KubeClient(Connection("http://127.0.0.1:1"), "bench")  # reads alone are asked for
    scaler = Scaler(client, cache, fleet, EventRecorder(client, "bench", utc_now))
    async with GrpcServer(ServerOptions(tls=tls), Reads(fleet, ReadOptions()), Changes(fleet, scaler)) as server:
        await _until_told(server.address)
    spent = {
        sample.name.rpartition("_")[2]: sample.value
        for sample in next(iter(metrics.GRPC_SECONDS.collect())).samples
        if sample.labels["method"] == "NodeGroupForNode"
    }
    print(spent["sum"] / max(spent["count"], 1))


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


if __name__ == "__main__":
    serve: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
        "gateway": _serve_gateway,
        "secure": _serve_secure,
        "echo": _serve_echo,
    }
    from nodewright.gateways.externalgrpc.loop import new_event_loop

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(serve[sys.argv[1]](*sys.argv[2:]))
