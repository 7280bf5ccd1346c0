"""Pods that somebody would make anew, for tests of those that move them."""

from __future__ import annotations

from typing import Any

from controllers.kernel.refs import POD, Kind
from nodewright.runtime.kube.client import KubeClient
from tests.runtime.town import Town

REPLICA_SET = Kind("apps", "v1", "ReplicaSet", "replicasets")


async def replica_set(town: Town | KubeClient, name: str) -> dict[str, Any]:
    """That nobody plays: its pods are made by the test, and it keeps them from being collected as garbage."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": "default"}}
    return await client_of(town).create(REPLICA_SET, {**body, "spec": spec})


def client_of(town: Town | KubeClient) -> KubeClient:
    return town.client if isinstance(town, Town) else town


async def pod_of(town: Town | KubeClient, owner: dict[str, Any], name: str, cpu: str = "1", **spec: Any) -> None:
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
        "spec": {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}], **spec},
    }
    await client_of(town).create(POD, body)


def pods_on_nodes(town: Town) -> int:
    return sum(bool(pod["spec"].get("nodeName")) for pod in town.objects(POD))
