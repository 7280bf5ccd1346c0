"""What must hold after a kill under load: nothing acknowledged is lost, nothing is there twice, and all settles."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, NODE, Key, Kind, Obj
from nodewright.runtime.kube.client import KubeClient, Page
from tests.cli.hosts import hosts_in
from tests.cli.load import CONFIG_MAP, MOST_REPLICAS, NAMESPACE, AckedWrites

CONVERGE_SECONDS = 120
SURGE = 1


async def everything(client: KubeClient, kind: Kind) -> Page:
    return await client.list_page(kind, limit=0)


def without_hosts_that_go(cloud: Path, machines: list[Obj]) -> list[str]:
    """UIDs that more than one live host was made for, though their Machine is not being replaced."""
    replaced = {m["metadata"]["uid"] for m in machines if (m.get("status") or {}).get("replacement")}
    return [uid for uid, number in Counter(hosts_in(cloud).values()).items() if number > 1 and uid not in replaced]


async def check_after_kill(client: KubeClient, cloud: Path, acked: AckedWrites) -> None:
    """Everything acknowledged is there as it was acknowledged, deletions too; no Machine is above the limit."""
    page = await everything(client, CONFIG_MAP)
    maps = {m["metadata"]["name"]: m for m in page.items}
    for name, (uid, value) in acked.kept.items():
        assert name in maps or name in acked.unsure, f"{name} was acknowledged and is lost"
        if name in maps:
            assert maps[name]["metadata"]["uid"] == uid
            assert maps[name]["data"]["v"] == value or name in acked.unsure
    assert not [name for name in acked.gone if name in maps], "a deletion that was acknowledged is undone"
    assert int(page.resource_version) >= acked.newest_version, "the server's counter went back"
    machines = (await everything(client, MACHINE)).items
    alive = [m for m in machines if not m["metadata"].get("deletionTimestamp")]
    assert len(alive) <= MOST_REPLICAS + SURGE
    assert without_hosts_that_go(cloud, machines) == []
    deployment = await client.get(MACHINE_DEPLOYMENT, Key(NAMESPACE, "workers"))
    assert deployment["spec"]["replicas"] in acked.replicas


async def converged(client: KubeClient, cloud: Path) -> str:
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
    if sorted(hosts_in(cloud).values()) != sorted(m["metadata"]["uid"] for m in machines):
        return f"{len(hosts_in(cloud))} hosts are not those of the {want} Machines"
    return ""


def _is_ready(machine: Obj) -> bool:
    conditions = (machine.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


async def settle(client: KubeClient, cloud: Path) -> None:
    """Wait until everything is as it should be."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + CONVERGE_SECONDS
    while what := await converged(client, cloud):
        assert loop.time() < deadline, f"not settled after {CONVERGE_SECONDS} s: {what}"
        await asyncio.sleep(0.2)
