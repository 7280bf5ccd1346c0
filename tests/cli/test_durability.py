"""SIGKILL at any moment loses nothing that was acknowledged, and makes nothing twice.

The kill comes after a random number of acknowledged writes, so it hits whatever the program is doing just then: a
group commit, a rollout of Machines, a host that is being made.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random

import pytest

from controllers.kernel.refs import MACHINE_SET
from hack.program import Up
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from tests.cli.aftermath import check_after_kill, everything, settle
from tests.cli.load import AckedWrites, Load
from tests.cli.processes import EXAMPLE

KILLS = 5


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    with Up(tmp_path, Path("kubectl"), f"--data-dir={tmp_path / 'data'}") as running:
        yield running


async def connection_of(up: Up) -> Connection:
    return await load_kubeconfig([up.kubeconfig])


def cloud_of(up: Up) -> Path:
    return up.folder / "data" / "simulated"


async def start_deployment(up: Up) -> None:
    up.kubectl("apply", "-f", str(EXAMPLE))


@pytest.mark.slow
@pytest.mark.kubectl
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_kill_under_load_loses_nothing_and_makes_nothing_twice(up: Up, seed: int) -> None:
    random, acked, names = Random(seed), AckedWrites(), count(1)
    await start_deployment(up)
    for _ in range(KILLS):
        enough = asyncio.Event()
        load = asyncio.create_task(
            Load(acked, random, names).run(await connection_of(up), enough, random.randint(30, 600))
        )
        await enough.wait()
        up.stop(signal.SIGKILL)
        await load
        up.start()
        async with KubeClient(await connection_of(up), "check") as client:
            await check_after_kill(client, cloud_of(up), acked)
    assert acked.acknowledged > KILLS * 30
    async with KubeClient(await connection_of(up), "check") as client:
        await settle(client, cloud_of(up))
        sets = (await everything(client, MACHINE_SET)).items
    assert len(sets) == 1, "one template makes one MachineSet, however often the program dies"
