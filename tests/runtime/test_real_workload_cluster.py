"""On a real API server, with the rights of the documentation: Secrets are read by name, and one that is not granted
freezes its own Cluster.
"""

from __future__ import annotations

import asyncio
import base64
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from controllers.kernel.conditions import find
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_SET, NODE, SECRET, Key, Kind, Ref
from hack.realplane import SERVERS, RealPlane
from nodewright.crds import load_crds
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.connection import StaticToken
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from nodewright.runtime.manager import run_controllers
from nodewright.runtime.settings.wiring import reconcilers
from tests.docs.pages import ROOT, blocks
from tests.realplane import REAL, require
from tests.runtime.town import FAST, Town

pytestmark = REAL

CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts")
RBAC = "rbac.authorization.k8s.io"
PAGES = ROOT / "docs" / "tasks"
RBAC_FILES = ROOT / "deploy" / "rbac"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPlane]:
    require(SERVERS)
    with RealPlane(tmp_path_factory.mktemp("plane")) as running:
        yield running


def inlined(kubeconfig: Path) -> bytes:
    """The kubeconfig with its files' contents in it."""
    document = yaml.safe_load(kubeconfig.read_text())
    for entry in (document["clusters"][0]["cluster"], document["users"][0]["user"]):
        for field in ("certificate-authority", "client-certificate", "client-key"):
            if field in entry:
                data = (kubeconfig.parent / entry.pop(field)).read_bytes()
                entry[f"{field}-data"] = base64.b64encode(data).decode()
    return yaml.safe_dump(document).encode()


def documented(page: str, kind: str) -> list[dict[str, Any]]:
    found = [
        doc for block in blocks(PAGES / page) if block.language == "yaml" for doc in yaml.safe_load_all(block.text)
    ]
    return [doc for doc in found if doc and doc["kind"] == kind]


async def grant(client: KubeClient) -> None:
    """The controllers' roles of deploy/, with the documented Role for one Secret instead of the right to all."""
    kubelets = {"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["create", "patch"]}
    roles = [yaml.safe_load((RBAC_FILES / f"{reconciler.name}.yaml").read_text()) for reconciler in reconcilers()]
    rules = [rule for role in roles for rule in role["rules"]]
    everything: dict[str, Any] = {"kind": "ClusterRole", "metadata": {"name": "nw"}, "rules": [*rules, kubelets]}
    (one,) = (role for role in documented("workload-clusters.md", "Role") if "nodewright-kubeconfigs" in str(role))
    one["metadata"]["namespace"] = "default"
    await client.create(ACCOUNT, {"metadata": {"name": "nw", "namespace": "default"}})
    for role, namespaced in ((everything, False), (one, True)):
        name, kind = role["metadata"]["name"], role["kind"]
        await client.create(Kind(RBAC, "v1", kind, f"{kind.lower()}s", namespaced), role)
        binding = {
            "metadata": {"name": name, "namespace": "default"} if namespaced else {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "nw", "namespace": "default"}],
        }
        await client.create(Kind(RBAC, "v1", f"{kind}Binding", f"{kind.lower()}bindings", namespaced), binding)


def token(plane: RealPlane, kubectl: Path) -> str:
    command = [str(kubectl), "--kubeconfig", str(plane.kubeconfig), "create", "token", "nw"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


async def said(client: KubeClient, name: str) -> dict[str, Any]:
    status = (await client.get(CLUSTER, Key("default", name))).get("status") or {}
    return dict(find(status.get("conditions"), "Reachable") or {})


async def test_the_documented_rights_reach_one_workload_cluster_and_no_other(
    plane: RealPlane, kubectl_binary: Path
) -> None:
    connection = await load_kubeconfig([plane.kubeconfig])
    async with KubeClient(connection, "tests") as client:
        for crd in load_crds():
            await client.create(CRD, crd)
        await grant(client)
        await _until(client, _served)
        for name in ("prod", "other"):
            meta = {"name": name, "namespace": "default"}
            await client.create(CLUSTER, {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "metadata": meta})
        secret = {"value": base64.b64encode(inlined(plane.kubeconfig)).decode()}
        await client.create(SECRET, {"metadata": {"name": "prod-kubeconfig", "namespace": "default"}, "data": secret})
        options = Town(None, connection, client).options  # type: ignore[arg-type]
        options = replace(options, workloads=replace(options.workloads, unreachable_after=2.0, probe_every=0.5))
        stop, ready = asyncio.Event(), asyncio.Event()
        given = StaticToken(token(plane, kubectl_binary))
        limited = replace(connection, client_certificate=b"", client_key=b"", tokens=given)
        task = asyncio.create_task(run_controllers(limited, options, stop=stop, ready=ready))
        try:
            await asyncio.wait_for(ready.wait(), 300)
            await client.create(MACHINE_SET, _pool())
            await _until(client, lambda c: _count(c, NODE, 2))
            await client.scale(Ref(MACHINE_SET, Key("default", "prod")), 0)
            await _until(client, lambda c: _count(c, MACHINE, 0))
            await _until(client, lambda c: _count(c, NODE, 0))
            await _until(client, _is_reached)
            await _until(client, _is_refused)
        finally:
            stop.set()
            await asyncio.wait_for(task, 300)


def _pool() -> dict[str, Any]:
    labels = {"pool": "prod", "cluster.k8s.io/cluster-name": "prod"}
    spec = {"clusterName": "prod", "providerConfig": {"value": FAST}}
    return {
        "apiVersion": MACHINE_SET.api_version,
        "kind": "MachineSet",
        "metadata": {"name": "prod", "namespace": "default", "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"pool": "prod"}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


async def _until(client: KubeClient, holds: Any) -> None:
    async with asyncio.timeout(300):
        while not await holds(client):  # noqa: ASYNC110  (the facts are in another process)
            await asyncio.sleep(0.1)


async def _served(client: KubeClient) -> bool:
    crds = (await client.list_page(CRD)).items
    return all(find((crd.get("status") or {}).get("conditions"), "Established") for crd in crds)


async def _count(client: KubeClient, kind: Kind, wanted: int) -> bool:
    return len((await client.list_page(kind)).items) == wanted


async def _is_reached(client: KubeClient) -> bool:
    return (await said(client, "prod")).get("status") == "True"


async def _is_refused(client: KubeClient) -> bool:
    return "can't be read: Forbidden" in (await said(client, "other")).get("message", "")
