"""A plane filled with a fleet of any size, without controllers: what the web view shows of 10,000 Machines."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from api import names
from controllers.kernel.conditions import format_time
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, NODE, POD, Key, Kind, Ref, ref_of
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


async def join(kubeconfig: Path, machines: int, pods: int) -> None:
    """What an autoscaler looks at beside the Machines of ``fill``: bounds of the sets, a Node for each Machine that has
    one, and ``pods`` pods of two sizes that wait; a Node has 4 cores, and the larger pods fit on none."""
    async with KubeClient(await load_kubeconfig([kubeconfig]), "fleet") as client:
        for number in range(SETS):
            bounds = {names.AUTOSCALER_MIN_ANNOTATION: "0", names.AUTOSCALER_MAX_ANNOTATION: str(machines)}
            sizes = {f"{names.CAPACITY_PREFIX}cpu": "4", f"{names.CAPACITY_PREFIX}memory": "16Gi"}
            target = Ref(MACHINE_DEPLOYMENT, Key("default", f"pool-{number}"))
            await client.merge_patch(target, {"metadata": {"annotations": {**bounds, **sizes}}})
        slots = asyncio.Semaphore(AT_ONCE)

        async def make(kind: Kind, body: dict[str, Any]) -> None:
            async with slots:
                await client.create(kind, body)

        joined = [number for number in range(machines) if number % 4]
        await asyncio.gather(*(make(NODE, _node(number)) for number in joined))
        await asyncio.gather(*(make(POD, _pod(number)) for number in range(pods)))

        async def wait(number: int) -> None:
            async with slots:
                target = Ref(POD, Key("default", _pod(number)["metadata"]["name"]))
                condition = _condition("PodScheduled", "False", ("Unschedulable", ""), format_time(datetime.now(UTC)))
                await client.patch_status(target, {"conditions": [condition]})

        await asyncio.gather(*(wait(number) for number in range(pods)))


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


def _node(number: int) -> dict[str, Any]:
    offer = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    ready = _condition("Ready", "True", ("KubeletReady", ""), format_time(datetime.now(UTC)))
    meta = {"name": f"pool-{number % SETS}-{number:05}", "labels": {"topology.kubernetes.io/zone": ZONES[number % 3]}}
    status = {"capacity": offer, "allocatable": offer, "conditions": [ready]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {}, "status": status}


def _pod(number: int) -> dict[str, Any]:
    asked = {"cpu": ("500m", "6")[number % 2], "memory": "512Mi"}
    container = {"name": "web", "image": "example.com/web", "resources": {"requests": asked}}
    meta = {"name": f"web-{number:05}", "namespace": "default", "labels": {"app": f"web-{number % 20}"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}


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
