"""A plane filled with a fleet of any size, without controllers: what the web view shows of 10,000 Machines."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from api import names
from controllers.kernel.conditions import format_time
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, ref_of
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.kubeconfig import load_kubeconfig

ZONES = ("zone-a", "zone-b", "zone-c")
VERSIONS = ("v1.33.4", "v1.34.1")
SETS = 20
AT_ONCE = 40


async def fill(kubeconfig: Path, machines: int) -> None:
    """Two Clusters, 20 MachineDeployments and ``machines`` Machines in them: 1 in 4 coming up, 1 in 50 going, 1 in 40
    without quota."""
    async with KubeClient(await load_kubeconfig([kubeconfig]), "fleet") as client:
        for cluster in ("east", "west"):
            await client.create(CLUSTER, _body("Cluster", cluster, {}, {}))
        for number in range(SETS):
            await client.create(MACHINE_DEPLOYMENT, _deployment(number, machines // SETS))
        slots = asyncio.Semaphore(AT_ONCE)

        async def make(number: int) -> None:
            async with slots:
                await _make(client, number)

        for first in range(0, machines, 500):
            await asyncio.gather(*(make(number) for number in range(first, min(first + 500, machines))))


async def _make(client: KubeClient, number: int) -> None:
    created = await client.create(MACHINE, _machine(number))
    if number % 4 == 0:
        return
    target = ref_of(MACHINE, created)
    await client.patch_status(target, _status(number))
    if number % 50 == 7:
        await client.delete(target)


def _machine(number: int) -> dict[str, Any]:
    pool, cluster = f"pool-{number % SETS}", ("east", "west")[number % SETS % 2]
    labels = {"pool": pool, names.CLUSTER_NAME_LABEL: cluster, names.DEPLOYMENT_NAME_LABEL: pool}
    spec = {
        "clusterName": cluster,
        "versions": {"kubelet": VERSIONS[number % 7 == 0]},
        "failureDomain": ZONES[number % 3],
        "providerConfig": {
            "value": {"apiVersion": "simulated.nodewright.dev/v1alpha1", "kind": "SimulatedMachineConfig"}
        },
    }
    body = _body("Machine", f"{pool}-{number:05}", labels, spec)
    body["metadata"]["finalizers"] = ["example.com/kept"]
    return body


def _status(number: int) -> dict[str, Any]:
    at = format_time(datetime.now(UTC) - timedelta(minutes=number % 600))
    name = f"pool-{number % SETS}-{number:05}"
    if number % 40 == 3:
        text = "cores: 400 of 400 are used"
        return {"conditions": [_condition(type_, "False", ("QuotaExceeded", text), at) for type_ in _TYPES]}
    status: dict[str, Any] = {
        "nodeRef": {"name": name},
        "hostScope": f"simulated/{('east', 'west')[number % 2]}",
        "failureDomain": ZONES[number % 3],
        "versions": {"kubelet": VERSIONS[number % 7 == 0]},
        "conditions": [_condition(type_, "True", ("Ready", ""), at) for type_ in _TYPES],
    }
    if number % 50 == 7:
        text = f"draining Node {name}: blocked: shop/web-{number} (PodDisruptionBudget shop/web)"
        status["conditions"].append(_condition("Deleting", "True", ("DrainBlocked", text), at))
        status["deletion"] = {"nodeDrainStartTime": at}
    return status


_TYPES = ("InfrastructureReady", "Ready")


def _condition(type_: str, status: str, why: tuple[str, str], at: str) -> dict[str, str]:
    reason, message = why
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def _deployment(number: int, replicas: int) -> dict[str, Any]:
    pool = f"pool-{number}"
    template = {"metadata": {"labels": {"pool": pool}}, "spec": _machine(number)["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"pool": pool}}, "template": template}
    return _body("MachineDeployment", pool, {names.CLUSTER_NAME_LABEL: ("east", "west")[number % 2]}, spec)


def _body(kind: str, name: str, labels: dict[str, str], spec: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": names.API_VERSION, "kind": kind, "metadata": meta, "spec": spec}
