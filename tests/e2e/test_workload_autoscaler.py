"""Two real control planes: pods of a workload cluster make a group of the management cluster grow, and it shrinks.

The autoscaler has the rights of deploy/autoscaler at home and those of the page in the workload cluster, and no others.
It is killed while the group grows: no Node is added twice. Kubernetes' own parts make and place the pods; nobody runs
them, so they may go at once.
"""

from __future__ import annotations

import base64
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from api import names
from hack.program import Kubectl, Program, Run
from hack.realplane import CONTROLLER_MANAGER, SCHEDULER, SERVERS, RealPlane
from nodewright.crds import load_crds
from tests.docs.pages import ROOT
from tests.e2e.test_autoscaler import SECONDS, event_reasons, group, size, with_rights_of_its_own, workload
from tests.realplane import LIKE_EMBEDDED, REAL, require
from tests.runtime.stub_server import until
from tests.runtime.workload_rights import create, kubeconfig_of_the_page

pytestmark = [pytest.mark.kubectl, *REAL]

PODS, LEFT = 20, 4
SYSTEM = ("-n", "nodewright-system")
KUBELETS = {"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["create", "patch"]}


@dataclass(frozen=True, slots=True)
class Scene:
    """``home`` holds the Machines, ``prod`` their Nodes and the pods."""

    home: Kubectl
    prod: Kubectl
    autoscaler: Program


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Scene]:
    require((*SERVERS, CONTROLLER_MANAGER, SCHEDULER))
    folder = tmp_path_factory.mktemp("abroad")
    there = RealPlane(folder / "prod", LIKE_EMBEDDED, controller_manager=True, scheduler=True)
    with RealPlane(folder / "home", LIKE_EMBEDDED) as here, there:
        home = Kubectl(kubectl_binary, here.kubeconfig, folder / "home-cache")
        prod = Kubectl(kubectl_binary, there.kubeconfig, folder / "prod-cache")
        create(home, *load_crds())
        home("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s", timeout=240)
        meta = {"name": "prod-kubeconfig", "namespace": "default"}
        data = {"value": base64.b64encode(kubeconfig_of_the_page(prod, there, KUBELETS)).decode()}
        create(home, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})
        flags = ("--cluster=default/prod", "--leader-elect", "--leader-elect-retry-period=500ms",
                 f"--leader-elect-resource-namespace={SYSTEM[1]}")  # fmt: skip
        autoscaler = with_rights_of_its_own(folder / "autoscaler", here, home, *flags)
        home("apply", *SYSTEM, "-f", str(ROOT / "deploy" / "rbac" / "leader-election.yaml"))
        election = ("rolebinding", "election", "--role=nodewright-leader-election")
        home("create", *election, *SYSTEM, "--serviceaccount=nodewright-system:nodewright-autoscaler")
        with Run(folder, home), autoscaler as running:
            yield Scene(home, prod, running)


def on_nodes(kubectl: Kubectl) -> list[str]:
    pods = kubectl.items("pods", "-l", "app=web")
    return [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]


async def test_pods_of_a_workload_cluster_get_nodes_and_those_go_again(scene: Scene) -> None:
    home, prod = scene.home, scene.prod
    create(home, {"apiVersion": "cluster.k8s.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "prod"}})
    for name, cluster in (("workers", "prod"), ("near", "story")):
        text = group(name, 0, 20).replace("cluster-name: story", f"cluster-name: {cluster}")
        home("apply", "-f", "-", stdin=text)
    web = workload("Deployment", PODS)
    web["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
    create(prod, web)
    # The autoscaler writes the size first and the Events after it; killed in between, it never writes the Events.
    await until(lambda: "TriggeredScaleUp" in event_reasons(prod), SECONDS)
    assert size(home, "workers") > 0
    scene.autoscaler.stop(signal.SIGKILL)
    scene.autoscaler.start()
    await until(lambda: len(on_nodes(prod)) == PODS, SECONDS)
    grown, used = size(home, "workers"), len(set(on_nodes(prod)))
    assert used <= grown <= used + 1, "no more Nodes than the pods need"
    assert -(-PODS // 8) <= grown <= -(-PODS // 8) + 1, "a Node of 4 cores has room for 8"
    assert not home.items("nodes")
    assert home("get", "lease", *SYSTEM, "-o", "name").split() == [
        "lease.coordination.k8s.io/nodewright",
        "lease.coordination.k8s.io/nodewright-autoscaler.default.prod",
    ]

    prod("scale", "deployment/web", f"--replicas={LEFT}")
    await until(lambda: size(home, "workers") == len(prod.items("nodes")) == 1, SECONDS)
    await until(lambda: len(on_nodes(prod)) == LEFT and len(set(on_nodes(prod))) == 1, SECONDS)
    prod("delete", "deployment", "web")
    await until(lambda: size(home, "workers") == 0 and not prod.items("nodes") and not home.items("machines"), SECONDS)
    assert size(home, "near") == 0
    status = home("get", "cm", f"{names.AUTOSCALER_STATUS}.default.prod", "-n", "kube-system", "-o", "yaml")
    assert "MachineDeployment/default/workers" in status
    assert "near" not in status
