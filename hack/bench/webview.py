"""What the web view costs on 10,000 Machines: how soon a page shows them, how much memory, how long each view takes."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from controllers.kernel.refs import MACHINE, Key, Ref
from hack import kubectl
from hack.bench.figures import Figure
from hack.fleet import fill, join
from hack.program import Program, Up
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.kubeconfig import load_kubeconfig

MANY = 10_000
VIEWS = ("rollouts", "deletions", "sizes", "accounts", "autoscaler")
MIB = 1024 * 1024
PODS = 2_000
SETTLES = 6.0
"""Seconds after which a process gives back what it took for reading lists."""


class Ui(Program):
    """`nodewright ui` against a kubeconfig."""

    opening = "Web view: "


def web() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="nodewright-web-") as name:
        folder = Path(name)
        with Up(folder, kubectl.require(), "--no-controllers", "--in-memory", "--no-web") as up:
            idle, started = _of_nothing(folder, up)
            asyncio.run(fill(up.kubeconfig, MANY))
            asyncio.run(join(up.kubeconfig, MANY, PODS))
            ui = _ui(folder, up)
            link = ui.start().split()[2]
            try:
                return asyncio.run(_measure(link, Began(ui.pid, idle, started), up.kubeconfig))
            except RuntimeError as error:
                raise RuntimeError(f"{error}\n{ui.log()}") from error
            finally:
                ui.stop()


@dataclass(frozen=True, slots=True)
class Began:
    """A process, and what such a one takes on an empty cluster: bytes of memory, and CPU seconds until it is there."""

    pid: int
    memory: int
    processor: float


def _ui(folder: Path, up: Up) -> Ui:
    return Ui(folder, up.kubectl, "ui", f"--kubeconfig={up.kubeconfig}")


def _of_nothing(folder: Path, up: Up) -> tuple[int, float]:
    ui = _ui(folder, up)
    ui.start()
    started = _processor(ui.pid)
    time.sleep(SETTLES)
    memory = _resident(ui.pid)
    ui.stop()
    return memory, started


async def _measure(link: str, began: Began, kubeconfig: Path) -> list[Figure]:
    url, _, token = link.partition("/#token=")
    pid, before = began.pid, began.memory
    jar, patience = aiohttp.CookieJar(unsafe=True), aiohttp.ClientTimeout(total=600)  # unsafe: of an address
    async with aiohttp.ClientSession(cookie_jar=jar, timeout=patience) as session:
        start = time.perf_counter()
        async with session.post(f"{url}/login", json={"token": token}) as answer:
            answer.raise_for_status()
        first = await _until(session, url, MANY, start)
        first_cpu = _processor(pid) - began.processor
        again = await _until(session, url, MANY, time.perf_counter())
        update = await _update(session, url, kubeconfig)
        await asyncio.sleep(SETTLES)
        shown = _resident(pid) - before
        views = {view: await _view(session, url, view) for view in VIEWS[:-1]}
        spent = _processor(pid)
        views[VIEWS[-1]] = await _view(session, url, VIEWS[-1])
        autoscaler_cpu = _processor(pid) - spent
        await asyncio.sleep(SETTLES)
        most = _resident(pid) - before
    return [
        Figure("web10k_first_view_seconds", round(first, 2), "s", "lower", "goal", 1.0),
        Figure("web10k_first_view_cpu_seconds", round(first_cpu, 2), "s", "lower"),
        Figure("web10k_next_view_seconds", round(again, 3), "s", "lower", "goal", 1.0),
        Figure("web10k_update_seconds", round(update, 3), "s", "lower", "goal", 1.0),
        Figure("web10k_memory_mib", round(shown / MIB, 1), "MiB", "lower", "goal", 100.0),
        Figure("web10k_memory_all_views_mib", round(most / MIB, 1), "MiB", "lower"),
        Figure("web10k_autoscaler_cpu_seconds", round(autoscaler_cpu, 2), "s", "lower"),
        *(Figure(f"web10k_{view}_seconds", round(seconds, 2), "s", "lower") for view, seconds in views.items()),
    ]


async def _until(session: aiohttp.ClientSession, url: str, total: int, start: float) -> float:
    """Seconds until the stream of a page counts ``total`` Machines."""
    async for name, value in _events(session, url):
        if name == "fleet" and _count(value) == total:
            return time.perf_counter() - start
    raise RuntimeError("the stream ended")


async def _update(session: aiohttp.ClientSession, url: str, kubeconfig: Path) -> float:
    """Seconds from the deletion of a Machine until the page counts one less."""
    async with KubeClient(await load_kubeconfig([kubeconfig]), "bench") as client:
        stream = _events(session, url)
        async for name, _ in stream:
            if name == "problems":
                break
        first = (await client.list_page(MACHINE, 1)).items[0]["metadata"]
        ref = Ref(MACHINE, Key(first["namespace"], first["name"]))
        start = time.perf_counter()
        await client.merge_patch(ref, {"metadata": {"finalizers": None}})
        await client.delete(ref)
        async for name, value in stream:
            if name == "fleet" and _count(value) == MANY - 1:
                return time.perf_counter() - start
    raise RuntimeError("the stream ended")


async def _view(session: aiohttp.ClientSession, url: str, view: str) -> float:
    start = time.perf_counter()
    async with session.get(f"{url}/api/{view}") as answer:
        body = await answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{view}: {body[:300]!r}")
    return time.perf_counter() - start


async def _events(session: aiohttp.ClientSession, url: str) -> AsyncIterator[tuple[str, Any]]:
    async with session.get(f"{url}/api/events", read_bufsize=16 * MIB) as answer:
        answer.raise_for_status()
        name = ""
        async for line in answer.content:
            field, _, text = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                name = text
            elif field == "data":
                yield name, json.loads(text)


def _count(fleet: Any) -> int:
    return int(fleet["total"])


def _processor(pid: int) -> float:
    """CPU seconds of the process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmRSS"))
