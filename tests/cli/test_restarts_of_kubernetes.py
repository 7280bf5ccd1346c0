"""etcd and kube-apiserver killed under load, by turns: the controllers, which nobody restarts, get over it.

Nothing that the API server has acknowledged is lost, nothing is made twice, and in the end all is as declared.
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
from hack.program import Kubectl, Run
from hack.realplane import SERVERS, RealPlane
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from tests.cli.aftermath import check_after_kill, everything, settle
from tests.cli.load import AckedWrites, Load
from tests.cli.processes import EXAMPLE
from tests.docs.pages import ROOT
from tests.realplane import REAL, require

pytestmark = REAL

KILLS = 20


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[RealPlane]:
    """One of its own: it will be killed."""
    require(SERVERS)
    with RealPlane(tmp_path / "plane") as plane:
        yield plane


@pytest.fixture
def controllers(plane: RealPlane, tmp_path: Path, kubectl_binary: Path) -> Iterator[Run]:
    kubectl = Kubectl(kubectl_binary, plane.kubeconfig, tmp_path / "kubectl-cache")
    kubectl("create", "-f", str(ROOT / "crds"))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s", timeout=240)
    with Run(tmp_path, kubectl, f"--simulated-cloud={tmp_path / 'cloud'}") as running:
        yield running


async def test_kills_of_etcd_and_kube_apiserver_under_load_cost_nothing_but_time(
    plane: RealPlane, controllers: Run, tmp_path: Path
) -> None:
    random, acked, names, cloud = Random(7), AckedWrites(), count(1), tmp_path / "cloud"
    connection = await load_kubeconfig([plane.kubeconfig])
    process = controllers.pid
    controllers.kubectl("apply", "-f", str(EXAMPLE))
    for number in range(KILLS):
        enough = asyncio.Event()
        load = asyncio.create_task(Load(acked, random, names).run(connection, enough, random.randint(30, 300)))
        await enough.wait()
        victim = SERVERS[number % len(SERVERS)]
        plane.stop(victim, signal.SIGKILL)
        await load
        plane.start(victim)
        await asyncio.to_thread(plane.wait_ready)
        async with KubeClient(connection, "check") as client:
            await check_after_kill(client, cloud, acked)
    assert acked.acknowledged > KILLS * 30
    async with KubeClient(connection, "check") as client:
        await settle(client, cloud)
        sets = (await everything(client, MACHINE_SET)).items
    assert len(sets) == 1, "one template makes one MachineSet, whatever dies"
    assert controllers.pid == process
    assert controllers.stop() == 0
