"""Detaching with decrement under working controllers: the other Machines stay, and none is made."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from nodewright.gateways.cloudpool.instances import Instances, PoolConfig
from tests.gateways.cloudpool.test_server import Client, comes, served
from tests.runtime.town import FAST, Town

MACHINES = 8


async def populate(town: Town, kind: str) -> None:
    if kind == "MachineSet":
        await town.machine_set("workers", MACHINES)
        return
    labels = {"pool": "workers"}
    template = {"versions": {"kubelet": "1.34.0"}, "providerConfig": {"value": FAST}}
    body: dict[str, Any] = {
        "apiVersion": MACHINE_DEPLOYMENT.api_version,
        "kind": kind,
        "metadata": {"name": "workers", "namespace": "default"},
        "spec": {
            "replicas": MACHINES,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template},
        },
    }
    await town.client.create(MACHINE_DEPLOYMENT, body)


async def observed(client: Client, replicas: int) -> bool:
    """Every MachineSet has acted on the size."""
    (found,) = (await client.kube.list_page(MACHINE_SET)).items
    seen = found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"]
    return bool(seen and found["spec"]["replicas"] == replicas)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["MachineSet", "MachineDeployment"])
async def test_all_machines_are_detached_one_by_one_and_none_is_made_or_deleted(town: Town, kind: str) -> None:
    await populate(town, kind)
    instances = Instances({"workers": PoolConfig(kind, "default", "workers")})
    async with town.controllers(), served(town, instances) as client:
        names = await client.runs(MACHINES)
        uids = {m["metadata"]["uid"] for m in town.objects(MACHINE)}
        for left, name in enumerate(reversed(names)):
            await client.does("/pool/detach", {"machineId": name, "decrementDesiredSize": True})
            assert (await client.size())[0] == MACHINES - 1 - left
        await comes(lambda: observed(client, 0))
        machines = town.objects(MACHINE)
        assert {m["metadata"]["uid"] for m in machines} == uids
        assert not [m for m in machines if "deletionTimestamp" in m["metadata"]]
        assert not [m for m in machines if m["metadata"].get("ownerReferences")]
