"""Waves of Machines that are made and deleted again, and what the processes that served them keep in memory."""

from __future__ import annotations

import asyncio
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
STALLED_SECONDS = 120.0
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
        await until_none_is_left(lambda: self._unready(name, machines), f"{machines} Machines of {name} are Ready")
        await self.client.delete(ref_of(MACHINE_SET, made), "Foreground")
        await until_none_is_left(self._there, f"the Machines of {name} are gone")
        self.made += machines
        for program_name, program in self.programs.items():
            self.rss.setdefault(program_name, []).append(rss_mib(program.pid))

    async def _unready(self, name: str, machines: int) -> int:
        """Steps that are left: each Machine is made and becomes Ready."""
        status = (await self.client.get(MACHINE_SET, Key("default", name))).get("status") or {}
        made, ready = status.get("replicas") or 0, status.get("readyReplicas") or 0
        return max(machines - made, 0) + max(machines - ready, 0)

    async def _there(self) -> int:
        page = await self.client.list_page(MACHINE, 1, "", "default")
        return len(page.items) + page.remaining


async def until_none_is_left(
    left: Callable[[], Awaitable[int]], what: str, stalled: float = STALLED_SECONDS, poll: float = POLL_SECONDS
) -> None:
    """However long it takes, as long as ``left`` gets smaller than it ever was within ``stalled`` seconds.

    Raises AssertionError that names ``what`` and how much is left if it does not.
    """
    clock = asyncio.get_running_loop().time
    fewest: int | None = None
    since = clock()
    while True:
        try:
            found = await left()
        except ApiError as error:
            if error.code != 404:
                raise
        else:
            if found == 0:
                return
            if fewest is None or found < fewest:
                fewest, since = found, clock()
        if clock() - since > stalled:
            raise AssertionError(f"{what}: no progress for {stalled:.0f} s, {fewest} left")
        await asyncio.sleep(poll)


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
