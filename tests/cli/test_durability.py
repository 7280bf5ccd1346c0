"""SIGKILL at any moment loses nothing that was acknowledged, and makes nothing twice.

The kill comes after a random number of acknowledged writes, so it hits whatever the program is doing just then: a
group commit, a rollout of Machines, a host that is being made.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random

import pytest

from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, NODE, Key, Kind, Obj
from hack.program import Up
from nodewright.runtime.kube.client import KubeClient, Page
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from tests.cli.hosts import hosts_in
from tests.cli.load import CONFIG_MAP, MOST_REPLICAS, NAMESPACE, Ledger, Load
from tests.cli.processes import EXAMPLE

KILLS = 5
CONVERGE_SECONDS = 120
SURGE = 1


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    with Up(tmp_path, Path("kubectl"), f"--data-dir={tmp_path / 'data'}") as running:
        yield running


async def connection_of(up: Up) -> Connection:
    return await load_kubeconfig([up.kubeconfig])


async def everything(client: KubeClient, kind: Kind) -> Page:
    return await client.list_page(kind, limit=0)


def hosts_of(up: Up) -> dict[str, str]:
    return hosts_in(up.folder / "data" / "simulated")


def without_hosts_that_go(up: Up, machines: list[Obj]) -> list[str]:
    """UIDs that more than one live host was made for, though their Machine is not being replaced."""
    replaced = {m["metadata"]["uid"] for m in machines if (m.get("status") or {}).get("replacement")}
    return [uid for uid, number in Counter(hosts_of(up).values()).items() if number > 1 and uid not in replaced]


async def check_after_kill(up: Up, ledger: Ledger) -> None:
    """Everything acknowledged is there as it was acknowledged, deletions too; no Machine is above the limit."""
    async with KubeClient(await connection_of(up), "check") as client:
        page = await everything(client, CONFIG_MAP)
        maps = {m["metadata"]["name"]: m for m in page.items}
        for name, (uid, value) in ledger.kept.items():
            assert name in maps or name in ledger.unsure, f"{name} was acknowledged and is lost"
            if name in maps:
                assert maps[name]["metadata"]["uid"] == uid
                assert maps[name]["data"]["v"] == value or name in ledger.unsure
        assert not [name for name in ledger.gone if name in maps], "a deletion that was acknowledged is undone"
        assert int(page.resource_version) >= ledger.newest_version, "the server's counter went back"
        machines = (await everything(client, MACHINE)).items
        alive = [m for m in machines if not m["metadata"].get("deletionTimestamp")]
        assert len(alive) <= MOST_REPLICAS + SURGE
        assert without_hosts_that_go(up, machines) == []
        deployment = await client.get(MACHINE_DEPLOYMENT, Key(NAMESPACE, "workers"))
        assert deployment["spec"]["replicas"] in ledger.replicas


async def converged(client: KubeClient, up: Up) -> str:
    """What is not as it should be yet, "" if all is."""
    deployment = await client.get(MACHINE_DEPLOYMENT, Key(NAMESPACE, "workers"))
    want = deployment["spec"]["replicas"]
    machines = (await everything(client, MACHINE)).items
    nodes = (await everything(client, NODE)).items
    ready = [m for m in machines if _is_ready(m)]
    if len(machines) != want or len(ready) != want:
        return f"{want} replicas: {len(machines)} Machines, {len(ready)} ready"
    if {n["metadata"]["name"] for n in nodes} != {m["status"]["nodeRef"]["name"] for m in machines}:
        return f"{len(nodes)} Nodes are not those of the {want} Machines"
    if sorted(hosts_of(up).values()) != sorted(m["metadata"]["uid"] for m in machines):
        return f"{len(hosts_of(up))} hosts are not those of the {want} Machines"
    return ""


def _is_ready(machine: Obj) -> bool:
    conditions = (machine.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


async def start_deployment(up: Up) -> None:
    up.kubectl("apply", "-f", str(EXAMPLE))


@pytest.mark.slow
@pytest.mark.kubectl
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_kill_under_load_loses_nothing_and_makes_nothing_twice(up: Up, seed: int) -> None:
    random, ledger, names = Random(seed), Ledger(), count(1)
    await start_deployment(up)
    for _ in range(KILLS):
        enough = asyncio.Event()
        load = asyncio.create_task(
            Load(ledger, random, names).run(await connection_of(up), enough, random.randint(30, 600))
        )
        await enough.wait()
        up.stop(signal.SIGKILL)
        await load
        up.start()
        await check_after_kill(up, ledger)
    assert ledger.acknowledged > KILLS * 30
    async with KubeClient(await connection_of(up), "check") as client:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + CONVERGE_SECONDS
        while what := await converged(client, up):
            assert loop.time() < deadline, f"not settled after {CONVERGE_SECONDS} s: {what}"
            await asyncio.sleep(0.2)
        sets = (await everything(client, MACHINE_SET)).items
    assert len(sets) == 1, "one template makes one MachineSet, however often the program dies"
