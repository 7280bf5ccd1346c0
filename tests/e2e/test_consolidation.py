"""Consolidation, and groups of the autoscaler's own making, on the real plane, where kube-scheduler binds what moves.

The autoscaler has the rights of deploy/autoscaler and of its components consolidation and autoprovisioning alone.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from api import names
from hack.program import Kubectl, Run
from tests.e2e.manifests import machine_deployment
from tests.e2e.scheduled import scheduled
from tests.e2e.test_autoscaler import running, with_rights_of_its_own, workload
from tests.realplane import REAL
from tests.runtime.stub_server import until

pytestmark = [pytest.mark.kubectl, *REAL]

SECONDS = 300.0
PODS = 4
PRICES = {"small": 3.0, "large": 5.0}
FLAGS = ("--consolidation-enabled", "--max-autoprovisioned-node-group-count=2")
OFFER = f"""
apiVersion: cluster.k8s.io/v1alpha1
kind: MachineClass
metadata:
  name: offered
  annotations:
    {names.AUTOPROVISION_ANNOTATION}: |
      maxNodes: 3
      labels: [example.com/team]
      template:
        spec:
          versions: {{kubelet: 1.36.0}}
providerSpec:
  apiVersion: simulated.nodewright.dev/v1alpha1
  kind: SimulatedMachineConfig
  cpus: 2
  bootSeconds: 0.2
  joinSeconds: 0.05
  deleteSeconds: 0.1
"""


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("consolidation")
    with scheduled(folder, kubectl_binary, components=("consolidation", "autoprovisioning")) as (plane, found):
        found("create", "-f", "-", stdin=json.dumps(prices()))
        with Run(folder, found), with_rights_of_its_own(folder / "autoscaler", plane, found, *FLAGS):
            yield found


@pytest.fixture(autouse=True)
async def tidy(kubectl: Kubectl) -> AsyncIterator[None]:
    yield
    kubectl("delete", "deployments,pdb", "--all", "--wait=false")
    kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    kubectl("delete", "machineclass", "--all", "--wait=false")
    kubectl("delete", "md", "--all", "--wait", "--timeout=240s", timeout=300)
    await until(lambda: not kubectl.items("machines") and not kubectl.items("nodes"), SECONDS)


def prices() -> dict[str, Any]:
    table = {"nodes": {f"MachineDeployment/default/{name}": price for name, price in PRICES.items()}}
    meta = {"name": names.AUTOSCALER_PRICES, "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"prices": json.dumps(table)}}


def group(kubectl: Kubectl, name: str, cores: int, most: int) -> None:
    bounds = {names.AUTOSCALER_MIN_ANNOTATION: "0", names.AUTOSCALER_MAX_ANNOTATION: str(most)}
    text = machine_deployment(name, 0).replace(
        "          bootSeconds", f"          cpus: {cores}\n          bootSeconds"
    )
    labels = "  labels: {cluster.k8s.io/cluster-name: story}\n"
    kubectl("apply", "-f", "-", stdin=text.replace(labels, f"  annotations: {json.dumps(bounds)}\n"))


def deployed(kubectl: Kubectl, pods: int, cpu: str, **spec: Any) -> None:
    body = workload("Deployment", pods)
    template = body["spec"]["template"]["spec"]
    template["containers"][0]["resources"]["requests"]["cpu"] = cpu
    template.update(spec)
    kubectl("create", "-f", "-", stdin=json.dumps(body))


def sizes(kubectl: Kubectl) -> dict[str, int]:
    return {body["metadata"]["name"]: body["spec"]["replicas"] for body in kubectl.items("md")}


async def test_one_cheaper_node_takes_the_place_of_four_while_the_pods_run(kubectl: Kubectl) -> None:
    """Three quarters of each small Node are used, so that none goes for being little used."""
    group(kubectl, "small", 2, PODS)
    deployed(kubectl, PODS, "1500m")
    await until(lambda: len(running(kubectl)) == PODS, SECONDS)
    assert sizes(kubectl) == {"small": PODS}
    kubectl("create", "pdb", "web", "--selector=app=web", f"--min-available={PODS - 1}")
    kubectl.wait("jsonpath={.status.disruptionsAllowed}=1", "pdb/web")
    group(kubectl, "large", 8, 1)
    fewest = PODS

    def consolidated() -> bool:
        nonlocal fewest
        fewest = min(fewest, len(running(kubectl)))
        return sizes(kubectl) == {"small": 0, "large": 1} and len(kubectl.items("nodes")) == 1

    await until(consolidated, SECONDS)
    await until(lambda: len(running(kubectl)) == PODS, SECONDS)
    (node,) = {pod["spec"]["nodeName"] for pod in running(kubectl)}
    assert node.startswith("large-")
    assert fewest >= PODS - 1, "the budget was kept"


async def test_a_group_is_made_for_pods_and_goes_when_it_is_empty(kubectl: Kubectl) -> None:
    """A person's group that is as empty stays."""
    kubectl("apply", "-f", "-", stdin=OFFER)
    group(kubectl, "by-hand", 1, 1)
    deployed(kubectl, 2, "1500m", nodeSelector={"example.com/team": "blue"})
    await until(lambda: len(running(kubectl)) == 2, SECONDS)
    (made,) = set(sizes(kubectl)) - {"by-hand"}
    assert sizes(kubectl) == {"by-hand": 0, made: 2}
    nodes = kubectl.items("nodes")
    assert {node["metadata"]["labels"]["example.com/team"] for node in nodes} == {"blue"}
    kubectl("delete", "deployment", "web", "--wait=false")
    await until(lambda: sizes(kubectl) == {"by-hand": 0} and not kubectl.items("nodes"), SECONDS)
