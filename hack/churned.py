"""Waves of Machines that are made and deleted again, and what the processes that served them keep in memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controllers.kernel.refs import MACHINE, MACHINE_SET, Key, ref_of
from hack.program import Kubectl, Program, Run, Up
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError
from nodewright.runtime.kube.kubeconfig import load_kubeconfig

PAD = 12 * 1024
"""Bytes of each Machine beside what it needs."""
LIMIT_SECONDS = 600.0
POLL_SECONDS = 0.25
_FAST = {
    "apiVersion": "simulated.nodewright.dev/v1alpha1",
    "kind": "SimulatedMachineConfig",
    "bootSeconds": 0.1,
    "joinSeconds": 0.05,
    "deleteSeconds": 0.05,
}


def rss_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@dataclass
class Churn:
    """``programs`` by name; ``rss`` has one row for each of them: MiB after each wave."""

    client: KubeClient
    programs: dict[str, Program]
    rss: dict[str, list[float]] = field(default_factory=dict)
    made: int = 0

    async def wave(self, machines: int) -> None:
        """Make a MachineSet of so many, wait until all were Ready, delete it, wait until all are gone."""
        name = f"churn-{self.made}"
        made = await self.client.create(MACHINE_SET, _set(name, machines))
        await _until(lambda: self._has(name, machines), f"{machines} Machines of {name} are Ready")
        await self.client.delete(ref_of(MACHINE_SET, made), "Foreground")
        await _until(self._is_empty, f"the Machines of {name} are gone")
        self.made += machines
        for program_name, program in self.programs.items():
            self.rss.setdefault(program_name, []).append(rss_mib(program.pid))

    async def _has(self, name: str, machines: int) -> bool:
        found = await self.client.get(MACHINE_SET, Key("default", name))
        return ((found.get("status") or {}).get("readyReplicas") or 0) >= machines

    async def _is_empty(self) -> bool:
        return not (await self.client.list_page(MACHINE, 1, "", "default")).items


async def _until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    """Raises AssertionError that names ``what`` after LIMIT_SECONDS."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        try:
            if await holds():
                return
        except ApiError as error:
            if error.code != 404:
                raise
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {LIMIT_SECONDS:.0f} s")
        await asyncio.sleep(POLL_SECONDS)


def _set(name: str, replicas: int) -> dict[str, Any]:
    labels = {"churn": name}
    template = {
        "metadata": {"labels": labels, "annotations": {"pad": "x" * PAD}},
        "spec": {"providerConfig": {"value": _FAST}, "versions": {"kubelet": "1.34.0"}},
    }
    return {
        "apiVersion": MACHINE_SET.api_version,
        "kind": MACHINE_SET.name,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


@asynccontextmanager
async def churning(folder: Path) -> AsyncIterator[Churn]:
    """The plane and the controllers in a process each, so that one's memory is not the other's."""
    async with AsyncExitStack() as stack:
        up = Up(folder, Path("kubectl"), "--in-memory", "--no-controllers")
        await asyncio.to_thread(up.start)
        stack.push_async_callback(asyncio.to_thread, up.stop)
        run = Run(folder, Kubectl(Path("kubectl"), up.kubeconfig, folder / "kubectl-cache"), "--log-level=warning")
        await asyncio.to_thread(run.start)
        stack.push_async_callback(asyncio.to_thread, run.stop)
        client = await stack.enter_async_context(KubeClient(await load_kubeconfig([up.kubeconfig]), "churn"))
        yield Churn(client, {"plane": up, "controllers": run})
