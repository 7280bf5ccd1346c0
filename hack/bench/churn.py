"""Machines that are made and deleted again, on the embedded plane with all controllers: what stays in memory?"""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

from controllers.kernel.refs import MACHINE, MACHINE_SET, ref_of
from hack.bench import live
from hack.bench.figures import Figure
from nodewright.apiserver.values import ListOptions
from nodewright.cli.embedded.session import Session, SessionOptions, session
from nodewright.runtime.kube.client import KubeClient

WAVES, SIZE, WARM = 20, 150, 5
"""3000 Machines; the first waves fill what is bounded (the change log of the plane)."""
PAD = 12 * 1024
_PAGE_MIB = 4096 / 2**20


def churn() -> list[Figure]:
    live._quiet()
    return asyncio.run(_churn())


async def _churn() -> list[Figure]:
    before = 0.0
    async with session(SessionOptions(), asyncio.Event()) as running, KubeClient(running.connection, "bench") as client:
        for wave in range(WAVES):
            if wave == WARM:
                before = _rss_mib()
            await _wave(running, client, wave)
        after = _rss_mib()
    return [Figure("churn_rss_mib", after - before, "MiB", "lower")]


async def _wave(running: Session, client: KubeClient, wave: int) -> None:
    body = live.machine_set(SIZE)
    body["metadata"]["name"] = f"churn-{wave}"
    body["spec"]["template"]["metadata"]["annotations"] = {"pad": "x" * PAD}
    made = await client.create(MACHINE_SET, body)
    await live._until(lambda: live._ready(running) == SIZE)
    await client.delete(ref_of(MACHINE_SET, made), "Foreground")
    await live._until(lambda: _machines(running) == 0)


def _machines(running: Session) -> int:
    store = running.plane.store
    found = store.resources.find(MACHINE.group, MACHINE.version, MACHINE.plural)
    assert found is not None
    return len(store.list(found, "", ListOptions()).items)


def _rss_mib() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_MIB
