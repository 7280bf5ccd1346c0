"""MachineDeployments of stock images become Nodes: real cloud-init, containerd, kubeadm, kubelet, control plane."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from api.names import TOKEN_MACHINE_UID_LABEL
from hack import binaries
from hack.hosts import cluster, files
from hack.hosts.lab import Lab, Record
from hack.hosts.mirror import PROGRAMS, Mirror
from hack.hosts.provider.provider import API_VERSION, KIND
from hack.program import Kubectl, Run
from hack.realplane import RealPlane

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]

VERSION = binaries.kubernetes_version()


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
    subprocess.run(install, check=True, timeout=120)
    with Run(folder, Kubectl(binaries.ensure("kubectl"), plane.kubeconfig, folder / "kubectl-cache")) as running:
        yield running.kubectl
        running.kubectl("delete", "md,ms,ma,cl", "--all", "--wait", "--timeout=90s", timeout=100)


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


def joining_cluster(mirror: Mirror) -> dict[str, Any]:
    """Where its hosts get kubelet and kubeadm from; all else the cluster says of itself."""
    bootstrap = {
        "archives": mirror.archives({name: binaries.ensure(name) for name in PROGRAMS}),
        "files": [files.CONTAINERD_FILE],
        "nodeRegistration": {"ignorePreflightErrors": [cluster.NO_CGROUP_2]},
    }
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "here", "namespace": "default"},
        "spec": {"bootstrap": bootstrap},
    }


def deployment(lab: Lab, name: str, replicas: int) -> dict[str, Any]:
    labels = {"set": name, "cluster.k8s.io/cluster-name": "here"}
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "MachineDeployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"set": name}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "providerConfig": {"value": {"apiVersion": API_VERSION, "kind": KIND, "lab": str(lab.folder)}},
                    "versions": {"kubelet": VERSION.removeprefix("v")},
                    "metadata": {"labels": {"pool.example/name": name}},
                    "taints": [{"key": "pool.example/only", "value": name, "effect": "NoSchedule"}],
                },
            },
        },
    }


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


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.2)


def apply(kubectl: Kubectl, obj: dict[str, Any]) -> None:
    kubectl("apply", "-f", "-", stdin=json.dumps(obj))


def items(kubectl: Kubectl, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(kubectl("get", kind, "-o", "json"))["items"]
    return found


def secrets_to_join(kubectl: Kubectl) -> list[str]:
    """Tokens of ours and bootstrap data that are there."""
    found = json.loads(kubectl("get", "secrets", "-A", "-l", TOKEN_MACHINE_UID_LABEL, "-o", "json"))["items"]
    return [f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in found]


def test_machines_without_user_data_become_nodes_carry_pods_grow_and_leave_nothing(
    lab: Lab, plane: RealPlane, mirror: Mirror, kubectl: Kubectl
) -> None:
    apply(kubectl, joining_cluster(mirror))
    apply(kubectl, deployment(lab, "workers", 3))
    kubectl.wait("jsonpath={.status.readyReplicas}=3", "md/workers", timeout=180)
    kubectl.wait("condition=NodeJoined", "machines", "--all", timeout=30)
    until(lambda: not secrets_to_join(kubectl))

    nodes = {node["metadata"]["name"]: node for node in items(kubectl, "nodes")}
    machines = items(kubectl, "machines")
    assert {machine["status"]["nodeRef"]["name"] for machine in machines} == nodes.keys()
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes.values()} == {VERSION}
    assert {node["metadata"]["labels"]["pool.example/name"] for node in nodes.values()} == {"workers"}
    assert all(any(t["key"] == "pool.example/only" for t in node["spec"]["taints"]) for node in nodes.values())
    assert len({node["status"]["nodeInfo"]["bootID"] for node in nodes.values()}) == 3

    apply(kubectl, POD)
    kubectl.wait("condition=Ready", "pod/limited", timeout=60)

    kubectl("scale", "md/workers", "--replicas=4")
    kubectl.wait("jsonpath={.status.readyReplicas}=4", "md/workers", timeout=120)

    kubectl("delete", "pod", "limited")
    kubectl("scale", "md/workers", "--replicas=0")
    kubectl("wait", "--for=delete", "machines", "--all", "--timeout=120s", timeout=130)
    assert items(kubectl, "nodes") == []
    assert lab.hosts() == []
    assert secrets_to_join(kubectl) == []
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
        kubectl.wait("condition=Ready", "node/by-hand", timeout=60)
        token = (tmp_path / "token").read_text()
        guest.execute("rm /root/join.sh")
        kept = guest.execute(f"grep -rlF '{token}' /etc /var/lib/nodewright /root /run/nodewright 2>/dev/null")
        assert kept.stdout == ""
    finally:
        lab.remove("by-hand")
        kubectl("delete", "node", "by-hand", "--ignore-not-found")
