"""MachineDeployments of stock images become Nodes: real cloud-init, containerd, kubeadm, kubelet, control plane."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack import binaries
from hack.hosts import cluster, files
from hack.hosts.lab import Lab, Record
from hack.hosts.mirror import PROGRAMS, Mirror
from hack.program import Kubectl, Run
from hack.realplane import RealPlane
from tests.hosts.joining import VERSION, apply, deployment, items, joining_cluster, secrets_to_join, until

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]


@pytest.fixture(scope="module")
def plane(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPlane]:
    with cluster.joinable(lab, tmp_path_factory.mktemp("plane")) as running:
        yield running


@pytest.fixture(scope="module")
def mirror(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    with Mirror(tmp_path_factory.mktemp("mirror"), lab.net.gateway) as running:
        running.add(VERSION, {name: binaries.ensure(name) for name in PROGRAMS})
        yield running


@pytest.fixture(scope="module")
def kubectl(plane: RealPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """The controllers at work on the plane."""
    folder = tmp_path_factory.mktemp("run")
    install = [sys.executable, "-m", "nodewright.cli", "install", f"--kubeconfig={plane.kubeconfig}"]
    subprocess.run(install, check=True, timeout=600)
    with Run(folder, Kubectl(binaries.ensure("kubectl"), plane.kubeconfig, folder / "kubectl-cache")) as running:
        yield running.kubectl
        running.kubectl("delete", "md,ms,ma,cl", "--all", "--wait", "--timeout=300s", timeout=360)


def user_data(plane: RealPlane, mirror: Mirror, folder: Path, form: str = "cloud-config") -> str:
    """As a person makes it: by the command, from a token in a file."""
    (folder / "token").write_text(cluster.token(plane))
    command = [
        sys.executable, "-m", "nodewright.cli", "bootstrap", "user-data", f"--server={plane.url}",
        f"--certificate-authority={plane.folder / 'ca.crt'}", f"--token-file={folder / 'token'}",
        f"--kubelet-version={VERSION}", f"--cluster-version={VERSION}", f"--mirror={mirror.url}",
        f"--ignore-preflight-errors={cluster.NO_CGROUP_2}", f"--format={form}",
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "limited"},
    "spec": {
        "nodeSelector": {"pool.example/name": "workers"},
        "tolerations": [{"key": "pool.example/only", "operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "main",
                "image": files.PAUSE_IMAGE,
                "imagePullPolicy": "Never",
                "resources": {"limits": {"cpu": "50m", "memory": "16Mi"}},
            }
        ],
    },
}


def test_machines_without_user_data_become_nodes_carry_pods_grow_and_leave_nothing(
    lab: Lab, plane: RealPlane, mirror: Mirror, kubectl: Kubectl
) -> None:
    apply(kubectl, joining_cluster(mirror))
    apply(kubectl, deployment(lab, "workers", 3))
    kubectl.wait("jsonpath={.status.readyReplicas}=3", "md/workers", timeout=360)
    kubectl.wait("condition=NodeJoined", "machines", "--all", timeout=300)
    until(lambda: not secrets_to_join(kubectl))

    nodes = {node["metadata"]["name"]: node for node in items(kubectl, "nodes")}
    machines = items(kubectl, "machines")
    assert {machine["status"]["nodeRef"]["name"] for machine in machines} == nodes.keys()
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes.values()} == {VERSION}
    until(
        lambda: {node["metadata"]["labels"].get("pool.example/name") for node in items(kubectl, "nodes")} == {"workers"}
    )
    until(
        lambda: all("pool.example/only" in json.dumps(node["spec"].get("taints")) for node in items(kubectl, "nodes"))
    )
    assert len({node["status"]["nodeInfo"]["bootID"] for node in nodes.values()}) == 3

    apply(kubectl, POD)
    kubectl.wait("condition=Ready", "pod/limited", timeout=300)

    kubectl("scale", "md/workers", "--replicas=4")
    kubectl.wait("jsonpath={.status.readyReplicas}=4", "md/workers", timeout=300)

    kubectl("delete", "pod", "limited")
    kubectl("scale", "md/workers", "--replicas=0")
    kubectl("wait", "--for=delete", "machines", "--all", "--timeout=300s", timeout=360)
    until(lambda: items(kubectl, "nodes") == [])
    until(lambda: lab.hosts() == [])
    until(lambda: secrets_to_join(kubectl) == [])
    kubectl("delete", "md", "workers", "--wait")


def test_the_script_joins_a_host_too_and_keeps_no_token(
    lab: Lab, plane: RealPlane, mirror: Mirror, kubectl: Kubectl, tmp_path: Path
) -> None:
    """The same steps without cloud-init, as on a host that somebody reaches over SSH."""
    script = user_data(plane, mirror, tmp_path, "shell")
    record = lab.start(Record("by-hand", "by-hand", 0, "2026-01-01T00:00:00+00:00", {}), {})
    guest = lab.guest(record)
    try:
        guest.wait_booted()
        (guest.root / "root/join.sh").write_text(script)
        for _ in range(2):  # the second run finds all done
            done = guest.execute("sh /root/join.sh")
            assert done.returncode == 0, done.stdout
        kubectl.wait("condition=Ready", "node/by-hand", timeout=300)
        token = (tmp_path / "token").read_text()
        guest.execute("rm /root/join.sh")
        kept = guest.execute(f"grep -rlF '{token}' /etc /var/lib/nodewright /root /run/nodewright 2>/dev/null")
        assert kept.stdout == ""
    finally:
        lab.remove("by-hand")
        kubectl("delete", "node", "by-hand", "--ignore-not-found")
