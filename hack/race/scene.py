"""One rival on a cluster of its own: a real etcd, kube-apiserver, kube-controller-manager and kube-scheduler.

What is counted: seconds until the last pod has its Node, CPU seconds and peak memory of the rival's processes, and
their writes as the API server's audit log has them. Whoever plays the kubelets of its Nodes is one of the rival's
processes (kwok), or in its process: both rivals' Nodes and pods are counted, down to the pod that is Running.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from controllers.kernel.conditions import is_true
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, NODE, POD, Kind
from hack.program import Kubectl
from hack.race.results import Result
from hack.race.rivals import Rival
from hack.race.stages import Stages
from hack.race.workloads import Workload, budget
from hack.realplane import RealPlane, cpu_seconds
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.kubeconfig import load_kubeconfig

LIMIT_SECONDS = 1200.0
LOOK_SECONDS = 5.0
QUIET_SECONDS = 60.0
"""Consolidation has ended once no Node has come or gone for so long."""
REST_CORES, REST_SECONDS = 0.2, 3
"""A cluster is at rest once all of its parts have used less than this for so long."""
AUDIT = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: Metadata
    verbs: [create, update, patch, delete, deletecollection]
  - level: None
"""


class QuickPlane(RealPlane):
    """Its scheduler and controllers send up to a thousand requests a second, not 50 and 20: it is not they who race."""

    def component_flags(self, name: str) -> list[str]:
        return [*super().component_flags(name), "--kube-api-qps=1000", "--kube-api-burst=2000"]


class Watched:
    """Pods with a Node, and Nodes, as a watch shows them."""

    def __init__(self, client: KubeClient, rival: Rival) -> None:
        self._client = client
        self._rival = rival
        self.bound: set[str] = set()
        self.pods: set[str] = set()
        self.running: set[str] = set()
        self.least_running = 0
        self.nodes: dict[str, str] = {}
        self.last_change = time.monotonic()
        self.stages = Stages()
        self._changed = asyncio.Event()

    def __str__(self) -> str:
        pods = f"{len(self.bound)} of {len(self.pods)} pods have a Node, {len(self.running)} run"
        return f"{pods}, {len(self.nodes)} Nodes"

    async def follow(self) -> None:
        """Until cancelled."""
        followed = {POD: self._pod, NODE: self._node}
        if self._rival.has_machines:
            followed |= {MACHINE: self._machine, MACHINE_DEPLOYMENT: self._group}
        await asyncio.gather(*(self._follow(kind, seen) for kind, seen in followed.items()))

    async def until(self, done: Callable[[], bool]) -> None:
        """Raises TimeoutError, and OSError if the rival has ended."""
        async with asyncio.timeout(LIMIT_SECONDS):
            while not done():
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), LOOK_SECONDS)
                _cpu(self._rival)

    async def until_quiet(self) -> float:
        """The time (monotonic) of the last Node that came or went, this one if none does. Raises TimeoutError."""
        self.last_change = time.monotonic()
        async with asyncio.timeout(LIMIT_SECONDS):
            while True:
                seen = self.last_change
                await asyncio.sleep(max(seen + QUIET_SECONDS - time.monotonic(), 0.0))
                if seen == self.last_change:
                    return seen

    async def _follow(self, kind: Kind, seen: Callable[[dict[str, Any]], None]) -> None:
        version = (await self._client.list_page(kind, limit=1)).resource_version
        while True:
            async with contextlib.aclosing(self._client.watch(kind, version)) as batches:
                async for batch in batches:
                    for event in batch:
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "BOOKMARK":
                            seen(event)
                    self._changed.set()

    def _pod(self, event: dict[str, Any]) -> None:
        uid = event["object"]["metadata"]["uid"]
        if event["type"] == "DELETED":
            self.pods.discard(uid)
            self.bound.discard(uid)
            self._runs(uid, False)
            return
        self.stages.pod(event["object"])
        self.pods.add(uid)
        self._runs(uid, is_true(event["object"].get("status", {}).get("conditions"), "Ready"))
        if event["object"]["spec"].get("nodeName"):
            self.bound.add(uid)

    def _runs(self, uid: str, does: bool) -> None:
        (self.running.add if does else self.running.discard)(uid)
        self.least_running = min(self.least_running, len(self.running))

    def _node(self, event: dict[str, Any]) -> None:
        meta = event["object"]["metadata"]
        name, before = meta["name"], len(self.nodes)
        if event["type"] == "DELETED":
            self.nodes.pop(name, None)
        else:
            self.stages.node(event["object"])
            self.nodes[name] = (meta.get("labels") or {}).get("node.kubernetes.io/instance-type", "")
        if len(self.nodes) != before:
            self.last_change = time.monotonic()

    def _machine(self, event: dict[str, Any]) -> None:
        self.stages.machine(event["object"])

    def _group(self, event: dict[str, Any]) -> None:
        self.stages.group(event["object"])


class Scene:
    """A cluster with one rival at work."""

    def __init__(self, plane: RealPlane, kubectl: Kubectl, rival: Rival, prices: dict[str, float]) -> None:
        self._plane = plane
        self._kubectl = kubectl
        self._rival = rival
        self._prices = prices

    async def scale_out(self, watched: Watched, workloads: Sequence[Workload]) -> Result:
        """From the creation of the Deployments until each pod has a Node; what that cost is counted until each runs."""
        pods = sum(each.replicas for each in workloads)
        items = [each.body() for each in workloads]

        async def work() -> float:
            await self._create(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
            await watched.until(lambda: len(watched.bound) >= pods)
            ended = time.monotonic()
            await watched.until(lambda: len(watched.running) >= pods)
            return ended

        return await self.measured(watched, work)

    async def scale_in(self, watched: Watched, replicas: dict[str, int]) -> Result:
        """From fewer replicas until no Node comes or goes any more."""

        async def work() -> float:
            for name, count in replicas.items():
                await asyncio.to_thread(self._kubectl, "scale", "deployment", name, f"--replicas={count}")
            await watched.until(lambda: len(watched.pods) <= sum(replicas.values()))
            return await watched.until_quiet()

        return await self.measured(watched, work)

    async def drift(self, watched: Watched, names: Sequence[str]) -> Result:
        """From another template of Nodes until no Node of the old one is there and each pod runs.

        The Deployments of ``names`` have budgets.
        """
        await self._create(json.dumps({"apiVersion": "v1", "kind": "List", "items": [budget(name) for name in names]}))
        await watched.until(lambda: watched.bound == watched.running)
        old = set(watched.nodes)

        async def work() -> float:
            await asyncio.to_thread(self._rival.drift)
            await watched.until(lambda: not old & watched.nodes.keys() and watched.pods == watched.running)
            return time.monotonic()

        return await self.measured(watched, work)

    async def _create(self, text: str) -> None:
        await asyncio.to_thread(self._kubectl, "create", "-f", "-", stdin=text)

    async def measured(self, watched: Watched, work: Callable[[], Awaitable[float]]) -> Result:
        """``work`` returns when it ended (monotonic). What takes too long is a result with a problem."""
        cpu, writes, plane = _cpu(self._rival), self._writes(), self._plane.cpu_by_part()
        watched.least_running = len(watched.running)
        started, problem = time.monotonic(), ""
        try:
            ended = await work()
        except TimeoutError:
            ended = time.monotonic()
            problem = f"not done after {ended - started:.0f} s: {watched}"
        return Result(
            rival=self._rival.name,
            seconds=ended - started,
            cpu=_cpu(self._rival) - cpu,
            memory=sum(_peak_mib(pid) for pid in self._rival.pids),
            writes=self._writes() - writes,
            nodes=len(watched.nodes),
            cost=sum(self._prices.get(type_, 0.0) for type_ in watched.nodes.values()),
            least_running=watched.least_running,
            stages=watched.stages.since(started),
            plane_cpu={name: spent - plane[name] for name, spent in self._plane.cpu_by_part().items()},
            problem=problem,
        )

    def _writes(self) -> int:
        count = 0
        with (self._plane.folder / "audit.log").open() as lines:
            for line in lines:
                count += json.loads(line).get("userAgent", "").startswith(self._rival.agents)
        return count


async def at_rest(plane: RealPlane, rival: Rival) -> None:
    """Until nothing of what the rival's start set off is under way: its kinds, its groups. Raises TimeoutError, and
    OSError if it has ended.
    """
    async with asyncio.timeout(LIMIT_SECONDS):
        calm = 0
        while calm < REST_SECONDS:
            before = sum(plane.cpu_by_part().values()) + _cpu(rival)
            await asyncio.sleep(1)
            spent = sum(plane.cpu_by_part().values()) + _cpu(rival) - before
            calm = calm + 1 if spent < REST_CORES else 0


def _cpu(rival: Rival) -> float:
    """Raises OSError if one of its processes has ended."""
    return sum(cpu_seconds(pid) for pid in rival.pids)


def _peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@contextlib.asynccontextmanager
async def watching(plane: RealPlane, rival: Rival) -> AsyncIterator[Watched]:
    async with KubeClient(await load_kubeconfig([plane.kubeconfig]), "race") as client:
        watched = Watched(client, rival)
        following = asyncio.create_task(watched.follow())
        try:
            yield watched
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


def audited(folder: Path) -> tuple[str, ...]:
    """Flags of the API server, and the policy that they name, written to ``folder``."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    policy = folder / "audit.yaml"
    policy.write_text(AUDIT)
    return (f"--audit-policy-file={policy}", f"--audit-log-path={folder / 'audit.log'}", "--audit-log-maxsize=2000")
