"""The MachineSet controller beside a real kube-apiserver, and that server's own limit measured in the same breath.

As in the peers' figures only Machine objects are made, no hosts: `nodewright run --controllers=machineset` with its
default settings, in a process of its own. Everything shares one machine: etcd, kube-apiserver, controller and this.
What a round has made stays until the end, since nobody is there who would finish deletions.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import statistics
import tempfile
import time
import urllib.request
import uuid
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from api import names
from controllers.kernel.refs import MACHINE, MACHINE_SET, Key, Kind
from hack import kubectl as stock
from hack.bench.figures import Figure
from hack.bench.live import machine_set
from hack.program import Kubectl, Run
from hack.realplane import RealPlane, cpu_seconds
from nodewright.crds import load_crds
from nodewright.runtime.kube.client import ClientLimits, KubeClient
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from nodewright.runtime.telemetry.logs import configure

MACHINES = 1000
MANY = 10_000
IN_FLIGHT = 50
RECONCILES = 3
"""Raw rounds and the controller's take turns: one machine varies by half from minute to minute."""
LIMIT_SECONDS = 300.0
CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
_REQUESTS = re.compile(r'^nodewright_kube_requests_total\{[^}]*verb="([^"]+)"[^}]*\} (\S+)$', re.MULTILINE)
_READS = ("get", "list", "watch", "version")


@dataclass
class Measured:
    """What the rounds took."""

    raw: list[float] = field(default_factory=list)
    controlled: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    requests: int = 0
    memory: float = 0.0
    sync: float = 0.0
    restart_writes: int = 0

    def figures(self) -> list[Figure]:
        raw, controlled, cpu = (statistics.median(each) for each in (self.raw, self.controlled, self.cpu))
        return [
            Figure("real_raw_1000_creates_seconds", raw, "s", "lower"),
            Figure("real_machineset_1000_seconds", controlled, "s", "lower", "raw creates, 50 in flight", raw),
            Figure("real_machineset_share_of_raw", raw / controlled, "", "higher", "gardener MCM, limits lifted", 0.76),
            Figure("real_cpu_ms_per_machine", cpu, "ms", "lower", "goal (gardener MCM 1.2, Go)", 3.0),
            Figure("real_machineset_1000_requests", self.requests, "requests", "lower"),
            Figure("real_machineset_1000_rss_mib", self.memory, "MiB", "lower", "gardener MCM (Go)", 44.0),
            Figure("real_restart_10000_sync_seconds", self.sync, "s", "lower"),
            Figure("real_restart_10000_writes", self.restart_writes, "writes", "lower", "goal", 0.0),
        ]


class Controller:
    """`nodewright run --controllers=machineset` and what it costs."""

    def __init__(self, folder: Path, kubectl: Kubectl) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._metrics = f"http://127.0.0.1:{port}/metrics"
        flags = ("--controllers=machineset", "--no-simulated-kubelets", "--log-level=warning")
        self.program = Run(folder, kubectl, *flags, f"--metrics-port={port}")

    def requests(self) -> dict[str, int]:
        """By verb, since its start."""
        with urllib.request.urlopen(self._metrics, timeout=10) as answer:
            text = answer.read().decode()
        counts: dict[str, int] = {}
        for verb, number in _REQUESTS.findall(text):
            counts[verb] = counts.get(verb, 0) + int(float(number))
        return counts

    def writes(self) -> int:
        return sum(number for verb, number in self.requests().items() if verb not in _READS)

    def cpu(self) -> float:
        return cpu_seconds(self.program.pid)

    def memory_mib(self) -> float:
        status = Path(f"/proc/{self.program.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024


class Bench:
    """One plane, one client, and the rounds."""

    def __init__(self, plane: RealPlane, client: KubeClient, controller: Controller) -> None:
        self._plane = plane
        self._client = client
        self._controller = controller
        self._measured = Measured()

    async def run(self) -> Measured:
        for number in range(RECONCILES):
            self._measured.raw.append(await self._raw(number))
            await self._controlled(number)
        await self._restart()
        return self._measured

    async def _raw(self, number: int) -> float:
        bodies = iter([_machine(f"raw-{number}-{n}") for n in range(MACHINES)])

        async def work() -> None:
            for body in bodies:
                await self._client.create(MACHINE, body)

        async def all_of_them() -> None:
            await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))

        return await self._seen(MACHINES, all_of_them())

    async def _controlled(self, number: int) -> None:
        cpu, requests = self._controller.cpu(), sum(self._controller.requests().values())
        self._measured.controlled.append(await self._made(f"bench-{number}", MACHINES))
        self._measured.cpu.append((self._controller.cpu() - cpu) * 1000 / MACHINES)
        self._measured.requests = sum(self._controller.requests().values()) - requests
        self._measured.memory = self._controller.memory_mib()

    async def _restart(self) -> None:
        await self._made("bench-many", MANY - 2 * RECONCILES * MACHINES)
        self._controller.program.stop()
        started = time.monotonic()
        await asyncio.to_thread(self._controller.program.start)
        self._measured.sync = time.monotonic() - started
        await asyncio.sleep(5.0)  # in which it looks at all of them
        self._measured.restart_writes = self._controller.writes()

    async def _made(self, name: str, replicas: int) -> float:
        """A MachineSet of that name: seconds until its Machines are there; returns once its status says so."""
        body = machine_set(replicas)
        template = {**body["spec"]["template"], "metadata": {"labels": {"pool": name}}}
        spec = {**body["spec"], "selector": {"matchLabels": {"pool": name}}, "template": template}
        metadata = {**body["metadata"], "name": name}
        seconds = await self._seen(
            replicas, self._client.create(MACHINE_SET, {**body, "metadata": metadata, "spec": spec})
        )
        async with asyncio.timeout(LIMIT_SECONDS):
            while True:
                found = await self._client.get(MACHINE_SET, Key("default", name))
                if (found.get("status") or {}).get("replicas") == replicas:
                    return seconds
                await asyncio.sleep(0.1)

    async def _seen(self, number: int, work: Coroutine[Any, Any, Any]) -> float:
        """Seconds from the begin of ``work`` until a watch has told of so many new Machines."""
        version = (await self._client.list_page(MACHINE, limit=1)).resource_version
        accepted = asyncio.Event()

        async def watch() -> None:
            left, at = number, version
            while left:
                async with contextlib.aclosing(self._client.watch(MACHINE, at)) as batches:
                    async for batch in batches:
                        accepted.set()
                        left -= sum(event["type"] == "ADDED" for event in batch)
                        at = batch[-1]["object"]["metadata"]["resourceVersion"] if batch else at
                        if left <= 0:
                            return

        async with asyncio.timeout(LIMIT_SECONDS):
            watching = asyncio.create_task(watch())
            await accepted.wait()
            started = time.monotonic()
            await work
            await watching
        return time.monotonic() - started


def _machine(name: str) -> dict[str, Any]:
    """As large as what the controller makes, and of the same fields: the server works on each of them.

    A Machine with a pool and a spec alone (half the size) costs the server a fifth less; its owner is of a kind that
    wakes no controller.
    """
    owner = {"apiVersion": MACHINE.api_version, "kind": "RawCreates", "name": "bench", "uid": str(uuid.UUID(int=0))}
    return {
        "apiVersion": MACHINE.api_version,
        "kind": MACHINE.name,
        "metadata": {
            "namespace": "default",
            "name": name,
            "labels": {"pool": "raw", names.MACHINESET_NAME_LABEL: "bench"},
            "annotations": {names.PROPAGATED_ANNOTATION: '{"labels":["pool"]}', names.ORDINAL_ANNOTATION: "0"},
            "finalizers": [names.MACHINE_FINALIZER],
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": machine_set(1)["spec"]["template"]["spec"],
    }


@contextlib.asynccontextmanager
async def _client(plane: RealPlane) -> AsyncIterator[KubeClient]:
    connection = await load_kubeconfig([plane.kubeconfig])
    async with KubeClient(connection, "bench", ClientLimits(in_flight=IN_FLIGHT)) as client:
        for crd in load_crds():
            await client.create(CRD, crd)
        yield client


async def _measure(folder: Path, plane: RealPlane) -> Measured:
    kubectl = Kubectl(stock.require(), plane.kubeconfig, folder / "kubectl-cache")
    async with _client(plane) as client:
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        controller = Controller(folder, kubectl)
        with controller.program:
            return await Bench(plane, client, controller).run()


def real() -> list[Figure]:
    """0 → 1000 Machines of one MachineSet, and a restart with 10 000. The plane is to be there (``missing``)."""
    configure(level="warning")
    os.environ.pop("KUBECONFIG", None)
    with tempfile.TemporaryDirectory(prefix="nodewright-bench-") as name:
        folder = Path(name)
        with RealPlane(folder / "plane") as plane:
            return asyncio.run(_measure(folder, plane)).figures()
