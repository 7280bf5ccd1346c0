"""A management cluster that is not the Nodes' own: real hosts join a workload cluster through its kubeconfig Secret.

The kubeconfig's user has the rights that docs/tasks/workload-clusters.md lists, and no others. Kubelets serve
with certificates that are approved there.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from hack import binaries
from hack.hosts import cluster
from hack.hosts.lab import Lab
from hack.hosts.mirror import PROGRAMS, Mirror
from hack.program import Kubectl, Run, Up
from tests.hosts.joining import (
    VERSION,
    apply,
    deployment,
    items,
    joining_cluster,
    pause_pod,
    secrets_to_join,
    until,
)
from tests.runtime.workload_rights import kubeconfig_of_the_page

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]


@dataclass(frozen=True, slots=True)
class Scene:
    """``home`` holds the Machines, ``prod`` their Nodes."""

    home: Kubectl
    prod: Kubectl
    mirror: Mirror


@pytest.fixture(scope="module")
def scene(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder, binary = tmp_path_factory.mktemp("abroad"), binaries.ensure("kubectl")
    with (
        cluster.joinable(lab, folder / "plane", verifies_kubelets=True) as plane,
        Mirror(folder / "mirror", lab.net.gateway) as mirror,
        Up(folder, binary, "--in-memory", "--no-controllers") as up,
        Run(folder, up.kubectl, "--controllers=*,certificatesigningrequest"),
    ):
        mirror.add(VERSION, {name: binaries.ensure(name) for name in PROGRAMS})
        prod = Kubectl(binary, plane.kubeconfig, folder / "prod-cache")
        data = {"value": base64.b64encode(kubeconfig_of_the_page(prod, plane)).decode()}
        meta = {"name": "prod-kubeconfig", "namespace": "default"}
        apply(up.kubectl, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})
        yield Scene(up.kubectl, prod, mirror)
        up.kubectl("delete", "md,ms,ma,cl", "--all", "--wait", "--timeout=300s", timeout=360)


def test_machines_of_a_workload_cluster_become_its_nodes_and_leave_nothing_in_either(lab: Lab, scene: Scene) -> None:
    home, prod = scene.home, scene.prod
    body = joining_cluster(scene.mirror, "prod")
    body["spec"]["bootstrap"]["kubeletConfiguration"] = {"serverTLSBootstrap": True}
    apply(home, body)
    apply(home, deployment(lab, "workers", 2, cluster_name="prod"))
    home.wait("jsonpath={.status.readyReplicas}=2", "md/workers", timeout=360)
    home.wait("condition=NodeJoined", "machines", "--all", timeout=300)
    until(lambda: not secrets_to_join(home) and not secrets_to_join(prod))
    assert items(home, "nodes") == []
    nodes = {node["metadata"]["name"]: node for node in items(prod, "nodes")}
    assert {machine["status"]["nodeRef"]["name"] for machine in items(home, "machines")} == nodes.keys()
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes.values()} == {VERSION}
    until(lambda: {node["metadata"]["labels"].get("pool.example/name") for node in items(prod, "nodes")} == {"workers"})
    _kubelets_serve_with_certificates_of_their_own(prod, list(nodes.values()))

    home("scale", "md/workers", "--replicas=0")
    home("wait", "--for=delete", "machines", "--all", "--timeout=300s", timeout=360)
    until(lambda: items(prod, "nodes") == [])
    until(lambda: lab.hosts() == [])
    until(lambda: secrets_to_join(home) == secrets_to_join(prod) == [])
    until(lambda: "MachineApproved" not in prod("get", "csr", "-o", "json"), 300)


def _kubelets_serve_with_certificates_of_their_own(prod: Kubectl, nodes: list[dict[str, Any]]) -> None:
    """Nobody but us approves those: kube-controller-manager does not know which addresses are a host's."""

    def approved() -> dict[str, list[dict[str, Any]]]:
        serving = [c for c in items(prod, "csr") if c["spec"]["signerName"] == "kubernetes.io/kubelet-serving"]
        issued = [c for c in serving if c.get("status", {}).get("certificate")]
        return {c["spec"]["username"]: c["status"]["conditions"] for c in issued}

    names = {f"system:node:{node['metadata']['name']}" for node in nodes}
    until(lambda: approved().keys() == names, 300)
    assert {said["reason"] for each in approved().values() for said in each} == {"MachineApproved"}
    pods = {node["metadata"]["name"]: f"on-{number}" for number, node in enumerate(nodes)}
    for node, pod in pods.items():
        apply(prod, pause_pod(pod, node))
    for pod in pods.values():
        prod("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=300s", timeout=360)
        # The API server takes no other certificate than one of the cluster's CA (``verifies_kubelets``).
        until(lambda pod=pod: prod.run("logs", pod).code == 0)
        until(lambda pod=pod: prod.run("exec", pod, "--", "/pause", "-v").code == 0)
    for pod in pods.values():
        prod("delete", "pod", pod, "--wait=false")
