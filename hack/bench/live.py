"""The embedded plane, the controllers and the simulated cloud in one process: how fast, and at what cost."""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

from controllers.kernel.conditions import is_true
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, Kind
from hack.bench.figures import Figure
from hack.realplane import cpu_seconds
from nodewright.apiserver.app.stats import WRITES
from nodewright.apiserver.values import ListOptions
from nodewright.cli.embedded.session import Session, SessionOptions, session
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.telemetry.logs import configure

POLL_SECONDS = 0.02
LIMIT_SECONDS = 900.0
REST_SECONDS = 60.0
OWN_AGENT = "nodewright"
BOOT = {"bootSeconds": 0.5, "joinSeconds": 0.1, "deleteSeconds": 0.1}


def machine_set(replicas: int) -> dict[str, Any]:
    return _workers(MACHINE_SET, replicas, {"selector": {"matchLabels": {"pool": "bench"}}})


def machine_deployment(replicas: int) -> dict[str, Any]:
    return _workers(MACHINE_DEPLOYMENT, replicas, {"selector": {"matchLabels": {"pool": "bench"}}})


def _workers(kind: Kind, replicas: int, more: dict[str, Any]) -> dict[str, Any]:
    config = {"apiVersion": "simulated.nodewright.dev/v1alpha1", "kind": "SimulatedMachineConfig", **BOOT}
    template = {
        "metadata": {"labels": {"pool": "bench"}},
        "spec": {"providerConfig": {"value": config}, "versions": {"kubelet": "1.34.0"}},
    }
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": "bench", "namespace": "default"},
        "spec": {"replicas": replicas, "template": template, **more},
    }


async def _until(done: Callable[[], bool]) -> float:
    """Seconds until ``done``. Raises TimeoutError."""
    started = time.monotonic()
    async with asyncio.timeout(LIMIT_SECONDS):
        while not done():  # noqa: ASYNC110 (what is watched are plain counts)
            await asyncio.sleep(POLL_SECONDS)
    return time.monotonic() - started


def _ready(running: Session) -> int:
    """Ready Machines, read from the store itself so that counting costs no requests."""
    store = running.plane.store
    found = store.resources.find(MACHINE.group, MACHINE.version, MACHINE.plural)
    assert found is not None
    items = store.list(found, "", ListOptions()).items
    return sum(1 for machine in items if is_true((machine.get("status") or {}).get("conditions"), "Ready"))


def _own_writes(running: Session) -> int:
    """Writes of the controllers; the simulated kubelets and people are other clients."""
    counts = running.plane.stats.snapshot()
    return sum(n for key, n in counts.items() if key.user_agent.startswith(OWN_AGENT) and key.verb in WRITES)


def _quiet() -> None:
    """Logs cost time and would hide the tables."""
    configure(level="warning")


async def _demo() -> list[Figure]:
    async with session(SessionOptions(), asyncio.Event()) as running, KubeClient(running.connection, "bench") as client:
        started = time.monotonic()
        await client.create(MACHINE_DEPLOYMENT, machine_deployment(3))
        await _until(lambda: _ready(running) == 3)
        seconds = time.monotonic() - started
    return [Figure("demo_ready_seconds", seconds, "s", "lower", "goal", 5.0)]


async def _thousand() -> list[Figure]:
    async with session(SessionOptions(), asyncio.Event()) as running, KubeClient(running.connection, "bench") as client:
        running.plane.stats.reset()
        cpu = time.process_time()
        await client.create(MACHINE_SET, machine_set(1000))
        seconds = await _until(lambda: _ready(running) == 1000)
        cpu = time.process_time() - cpu
        writes = _own_writes(running) - 1  # the POST above is the person's
        await asyncio.sleep(5.0)  # the last status writes
        running.plane.stats.reset()
        await asyncio.sleep(REST_SECONDS)
        at_rest = _own_writes(running)
    return [
        Figure("machineset_1000_seconds", seconds, "s", "lower"),
        Figure("machineset_1000_cpu_seconds", cpu, "s", "lower"),
        Figure("writes_per_machine_ready", writes / 1000, "writes", "lower", "kubermatic machine-controller", 7.0),
        Figure("steady_writes_60s", at_rest, "writes", "lower", "goal", 0.0),
    ]


def plane_ready() -> list[Figure]:
    """From the start of the process to the line `ready`, the interpreter's own start included."""
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    seconds, cpu = [], []
    for _ in range(5):
        started = time.monotonic()
        command = [sys.executable, "-m", "nodewright.cli", "up", "--in-memory", "--no-controllers"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
            assert process.stdout is not None
            while not process.stdout.readline().startswith("ready"):
                if process.poll() is not None:
                    raise RuntimeError("`up` ended before it was ready")
            seconds.append(time.monotonic() - started)
            cpu.append(cpu_seconds(process.pid))
            process.terminate()
    return [
        Figure("plane_ready_seconds", statistics.median(seconds), "s", "lower", "goal", 1.0),
        Figure("plane_ready_cpu_seconds", statistics.median(cpu), "s", "lower"),
    ]


def demo() -> list[Figure]:
    _quiet()
    return asyncio.run(_demo())


def thousand() -> list[Figure]:
    _quiet()
    return asyncio.run(_thousand())


def simulation() -> list[Figure]:
    """10 000 Machines in the seeded simulation, and what the process then holds in memory: store, cache and cloud."""
    from nodewright.sim.scale import run  # noqa: PLC0415

    scaled = run(10_000)
    if scaled.ready != scaled.machines:
        raise RuntimeError(f"only {scaled.ready} of {scaled.machines} simulated Machines became Ready")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        Figure("simulation_10000_machines_seconds", scaled.seconds, "s", "lower"),
        Figure("rss_mib_10000_machines", peak, "MiB", "lower"),
    ]


def rolling() -> list[Figure]:
    """1000 Machines replaced with a surge of 10 % on the virtual clock: as few steps, and as fast, as can be?"""
    from nodewright.sim.rolling import run  # noqa: PLC0415

    rolled = run(1000, 100)
    if rolled.fewest_available < rolled.machines:
        raise RuntimeError(f"only {rolled.fewest_available} of {rolled.machines} were available at a time")
    return [
        Figure("rolling_1000_steps_ratio", rolled.steps / rolled.least_steps, "×", "lower", "goal", 1.1),
        Figure("rolling_1000_time_ratio", rolled.virtual_seconds / rolled.least_seconds, "×", "lower"),
    ]
