"""A scheduler for tests: pods go to the first Ready Node with enough cpu; others are called unschedulable."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from controllers.kernel.conditions import is_true
from controllers.kernel.refs import NODE, POD, Kind, Ref, key_of
from controllers.scheduling.reading import Reader, read_node
from controllers.scheduling.shapes import CPU
from nodewright.runtime.kube.errors import ApiError
from tests.runtime.town import Town

REPLICA_SET = Kind("apps", "v1", "ReplicaSet", "replicasets")
_EVERY = 0.02
_WAITS = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no Node has room"}
_RUNS = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


@asynccontextmanager
async def scheduler(town: Town) -> AsyncIterator[None]:
    """At work while the block runs."""
    task = asyncio.create_task(_forever(town))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _forever(town: Town) -> None:
    while True:
        await schedule(town)
        await asyncio.sleep(_EVERY)


async def schedule(town: Town) -> None:
    """Every pending pod once."""
    reader, pods = Reader(), town.objects(POD)
    used: Counter[str] = Counter()
    for pod in pods:
        shape = reader.pod(pod)
        used[shape.node] += dict(shape.kind.demand.requests).get(CPU, 0)
    rooms = {
        shape.name: shape.amount(CPU) - used[shape.name]
        for shape in map(read_node, town.objects(NODE))
        if not shape.unschedulable and is_true(_node(town, shape.name)["status"].get("conditions"), "Ready")
    }
    for pod in pods:
        if not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp"):
            asked = dict(reader.pod(pod).kind.demand.requests).get(CPU, 0)
            node = next((name for name, room in sorted(rooms.items()) if room >= asked), "")
            await _tell(town, pod, node)
            if node:
                rooms[node] -= asked


def _node(town: Town, name: str) -> Any:
    return next(node for node in town.objects(NODE) if node["metadata"]["name"] == name)


async def _tell(town: Town, pod: Any, node: str) -> None:
    ref = Ref(POD, key_of(pod), pod["metadata"]["uid"])
    try:
        if node:
            town.plane.store.bind(ref.key.namespace, ref.key.name, {"target": {"kind": "Node", "name": node}})
            await town.client.merge_patch(ref, {"status": _RUNS}, subresource="status")
        elif not (pod.get("status") or {}).get("conditions"):
            await town.client.merge_patch(ref, {"status": {"conditions": [_WAITS]}}, subresource="status")
    except ApiError as error:
        if not (error.not_found or error.conflict):
            raise


async def replica_set(town: Town, name: str) -> dict[str, Any]:
    """That nobody plays: its pods are made by the test, and it keeps them from being collected as garbage."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": "default"}}
    return await town.client.create(REPLICA_SET, {**body, "spec": spec})


async def pod_of(town: Town, owner: dict[str, Any], name: str, cpu: str = "1") -> None:
    meta = owner["metadata"]
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": meta["name"]},
            "ownerReferences": [reference],
        },
        "spec": {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}]},
    }
    await town.client.create(POD, body)


def pods_on_nodes(town: Town) -> int:
    return sum(bool(pod["spec"].get("nodeName")) for pod in town.objects(POD))
