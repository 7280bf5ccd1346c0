"""Both namespaces on one control plane, and the controllers in a process of their own: ``nodewright run``."""

from __future__ import annotations

import asyncio
import re
import statistics
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from controllers.kernel.refs import LEASE, MACHINE, NAMESPACE, Key, Kind
from hack.children import free_ports
from hack.hostile import attacks, busy
from hack.hostile.server import hostile_server
from hack.program import Kubectl, Program, Run, Up
from hack.realplane import RealPlane
from nodewright.crds import load_crds
from nodewright.runtime.kube.client import ClientLimits, KubeClient
from nodewright.runtime.kube.kubeconfig import load_kubeconfig

CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
_CONTROLLERS = ("garbage-collector-controller", "namespace-controller", "serviceaccount-controller")
"""Those of kube-controller-manager whose work the embedded plane does itself."""
TENANTS = 3
"""Sequences of attacks at a time."""
_HELD = re.compile(
    r'^nodewright_reconcile_loop_held_seconds_bucket\{controller="([^"]+)",le="([^"]+)"\} (\S+)$', re.MULTILINE
)
_ROUNDS = re.compile(r'^nodewright_reconciles_total\{controller="([^"]+)",result="([^"]+)"\} (\S+)$', re.MULTILINE)


@dataclass
class Measured:
    """Seconds of the busy namespace's cycles, and what the process of the controllers has counted."""

    quiet: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    quiet_reactions: list[float] = field(default_factory=list)
    beside_reactions: list[float] = field(default_factory=list)
    """Seconds from a change of a MachineDeployment until the controllers had looked at it."""
    rss_mib: list[float] = field(default_factory=list)
    """After each pair of cycles."""
    rounds: dict[tuple[str, str], int] = field(default_factory=dict)
    held_before: dict[str, dict[str, int]] = field(default_factory=dict)
    held: dict[str, dict[str, int]] = field(default_factory=dict)
    """Reconciles that held the loop no longer than the bound (seconds of CPU), by controller and bound."""

    @property
    def ratio(self) -> float:
        """How much longer a cycle of the busy namespace takes beside the hostile one."""
        return statistics.median(self.beside) / statistics.median(self.quiet)

    def ratio_at(self, part: float) -> float:
        """The same of the cycle that ``part`` of all take no longer than; with few cycles 0.99 is the longest."""
        return _at(self.beside, part) / _at(self.quiet, part)

    @property
    def reaction(self) -> float:
        """Seconds, beside the hostile namespace."""
        return statistics.median(self.beside_reactions)

    @property
    def reaction_ratio(self) -> float:
        return statistics.median(self.beside_reactions) / statistics.median(self.quiet_reactions)

    def longer_than(self, bound: str = "0.05") -> dict[str, int]:
        """Reconciles by controller that held the loop for longer than ``bound`` seconds of CPU since the start.

        Those of the start are left out: the first one of a controller loads what it needs.
        """
        found = {name: _beyond(counts, bound) for name, counts in self.held.items()}
        before = {name: _beyond(counts, bound) for name, counts in self.held_before.items()}
        return {name: count - before.get(name, 0) for name, count in found.items() if count > before.get(name, 0)}


def _at(values: list[float], part: float) -> float:
    return sorted(values)[min(int(len(values) * part), len(values) - 1)]


def _beyond(counts: dict[str, int], bound: str) -> int:
    return counts["+Inf"] - counts[bound]


@dataclass
class Scene:
    """``begin`` and ``stop`` the attacks; ``busy`` is asked for cycles in between."""

    client: KubeClient
    busy: busy.Busy
    hostile: attacks.Hostile
    run: Program
    metrics_url: str
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    measured: Measured = field(default_factory=Measured)

    def begin(self) -> None:
        self.gate.set()

    async def stop(self) -> None:
        """No more attacks; returns once the Machines of those before are gone."""
        self.gate.clear()
        await busy.until(lambda: not self.hostile.active, "the attacks under way end")
        deadline = time.monotonic() + busy.LIMIT_SECONDS
        while await self.hostile_machines():
            if time.monotonic() > deadline:
                raise AssertionError(f"hostile Machines are still there after {busy.LIMIT_SECONDS:.0f} s")
            await self.hostile.withdraw()
            await asyncio.sleep(0.2)

    async def hostile_machines(self) -> int:
        return len((await self.client.list_page(MACHINE, 0, "", attacks.NAME)).items)

    async def holder(self) -> str:
        """Holder of the Lease of the controllers."""
        lease = await self.client.get(LEASE, Key("nodewright-system", "nodewright"))
        return str((lease.get("spec") or {}).get("holderIdentity") or "")

    async def pair(self) -> None:
        """One cycle alone and one beside the attacks; which comes first alternates."""
        steps = [self._cycle_alone, self._cycle_beside]
        for step in steps if len(self.measured.quiet) % 2 == 0 else reversed(steps):
            await step()
        self.measured.rss_mib.append(self.rss_mib())

    async def _cycle_alone(self) -> None:
        self.measured.quiet.append(await self.busy.cycle())
        self.measured.quiet_reactions += self.busy.reactions[-3:]

    async def _cycle_beside(self) -> None:
        self.begin()
        self.measured.beside.append(await self.busy.cycle())
        self.measured.beside_reactions += self.busy.reactions[-3:]
        await self.stop()

    def rss_mib(self) -> float:
        status = Path(f"/proc/{self.run.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    async def scrape(self) -> None:
        """Read the counts of the controllers' process. Raises OSError if it does not answer."""
        text = await asyncio.to_thread(_text_of, self.metrics_url)
        self.measured.rounds = {(name, result): int(float(n)) for name, result, n in _ROUNDS.findall(text)}
        held: dict[str, dict[str, int]] = {}
        for name, bound, number in _HELD.findall(text):
            held.setdefault(name, {})[bound] = int(float(number))
        if not self.measured.held_before:
            self.measured.held_before = held
        self.measured.held = held


def _text_of(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return str(answer.read().decode())


@asynccontextmanager
async def scene(folder: Path, *, real: bool = False, flood: int = 50, seed: int = 1) -> AsyncIterator[Scene]:
    """The busy namespace has its Machines; the hostile one has done nothing yet. Everything lies in ``folder``."""
    async with AsyncExitStack() as stack:
        kubeconfig = await _plane(stack, folder, real=real)
        connection = await load_kubeconfig([kubeconfig])
        limits = ClientLimits(in_flight=16, attempts=1)
        client = await stack.enter_async_context(KubeClient(connection, "busy"))
        tenant = await stack.enter_async_context(KubeClient(connection, "hostile", limits))
        await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": attacks.NAME}})
        if real:
            await _install(client)
        (port,) = free_ports(1)
        run = Run(
            folder,
            _unused_kubectl(kubeconfig, folder),
            f"--metrics-port={port}",
            "--workload-tls=plain",
            "--log-level=warning",
        )
        await asyncio.to_thread(run.start)
        stack.push_async_callback(asyncio.to_thread, run.stop)
        server = await stack.enter_async_context(hostile_server())
        own = busy.Busy(client)
        await stack.enter_async_context(own.watching())
        await own.begin()
        hostile = attacks.Hostile(tenant, server, lambda: (own.machines(), own.nodes()), flood, seed)
        found = Scene(client, own, hostile, run, f"http://127.0.0.1:{port}/metrics")
        await found.scrape()
        await stack.enter_async_context(_attacking(found))
        yield found


@asynccontextmanager
async def _attacking(found: Scene) -> AsyncIterator[None]:
    """The tasks of the attacks, which wait for the gate. Raises what one of them has died of."""
    tasks = [asyncio.create_task(found.hostile.go_on(found.gate)) for _ in range(TENANTS)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended


async def _plane(stack: AsyncExitStack, folder: Path, *, real: bool) -> Path:
    """Start it; its kubeconfig."""
    if not real:
        up = Up(folder, Path("kubectl"), "--in-memory", "--no-controllers")
        await asyncio.to_thread(up.start)
        stack.push_async_callback(asyncio.to_thread, up.stop)
        return up.kubeconfig
    plane = RealPlane(folder / "plane", controller_manager=True, controllers=_CONTROLLERS)
    await asyncio.to_thread(plane.__enter__)
    stack.push_async_callback(asyncio.to_thread, plane.__exit__, None, None, None)
    return plane.kubeconfig


async def _install(client: KubeClient) -> None:
    for crd in load_crds():
        await client.create(CRD, crd)


def _unused_kubectl(kubeconfig: Path, folder: Path) -> Kubectl:
    return Kubectl(Path("kubectl"), kubeconfig, folder / "kubectl-cache")
