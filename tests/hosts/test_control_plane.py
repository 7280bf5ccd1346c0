"""From YAML to a cluster: kubeadm, etcd and all parts of a control plane on real hosts, and workers that join it."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from hack import binaries
from hack.hosts import cluster, files, images
from hack.hosts.lab import Lab
from hack.hosts.mirror import PROGRAMS, Mirror
from hack.hosts.provider.provider import API_VERSION, KIND
from hack.program import Kubectl, Up
from tests.hosts.joining import VERSION, apply, deployment, items, programs, until

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]
NUMBER = VERSION.removeprefix("v")


class Place(Protocol):
    """Where hosts are made, and where they get kubelet and kubeadm from."""

    @property
    def lab(self) -> Lab: ...

    @property
    def mirror(self) -> Mirror: ...


@dataclass(frozen=True, slots=True)
class Scene:
    """``home`` holds the Machines. ``folder`` is for files of the test."""

    lab: Lab
    home: Kubectl
    mirror: Mirror
    folder: Path

    def there(self) -> Kubectl:
        """The cluster that was made, by the kubeconfig that was made for it."""
        secret = json.loads(self.home("get", "secret", "prod-kubeconfig", "-o", "json"))
        path = self.folder / "prod.kubeconfig"
        path.write_bytes(base64.b64decode(secret["data"]["value"]))
        return Kubectl(binaries.ensure("kubectl"), path, self.folder / "prod-cache")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, lab_folder: Path) -> Iterator[Scene]:
    """A lab of its own: its hosts import the images of a control plane."""
    folder, binary = tmp_path_factory.mktemp("founding"), binaries.ensure("kubectl")
    lab = Lab.make(folder / "lab")
    shutil.copy(images.ensure_control_plane(), lab.payload / "control-plane.tar")
    try:
        with Mirror(folder / "mirror", lab.net.gateway) as mirror, Up(folder, binary, "--in-memory") as up:
            mirror.add(VERSION, {name: binaries.ensure(name) for name in PROGRAMS})
            yield Scene(lab, up.kubectl, mirror, folder)
    finally:
        lab.clean()


def cluster_of_machines(scene: Place) -> dict[str, Any]:
    """Its API is served by the lab's first host."""
    bootstrap = {
        "archives": scene.mirror.archives(programs()),
        "files": [files.CONTAINERD_FILE],
        "nodeRegistration": {"ignorePreflightErrors": [cluster.NO_CGROUP_2]},
        "kubeletConfiguration": {"failCgroupV1": False, "failSwapOn": False},
        "controlPlane": {"disabledAddons": ["CoreDNS", "KubeProxy"]},
    }
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "prod", "namespace": "default"},
        "spec": {"controlPlaneEndpoint": {"host": scene.lab.net.address(1), "port": 6443}, "bootstrap": bootstrap},
    }


def control_plane_machine(scene: Place, name: str) -> dict[str, Any]:
    config = {"apiVersion": API_VERSION, "kind": KIND, "lab": str(scene.lab.folder)}
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "default", "labels": {"cluster.k8s.io/cluster-name": "prod"}},
        "spec": {
            "providerConfig": {"value": config},
            "versions": {"kubelet": NUMBER, "controlPlane": NUMBER},
        },
    }


def is_control_plane(there: Kubectl, node: str) -> bool:
    """The last that kubeadm does to the Node."""
    return "node-role.kubernetes.io/control-plane" in there.json("get", "node", node)["metadata"]["labels"]


def test_a_cluster_is_made_from_yaml_and_workers_join_it(scene: Scene) -> None:
    home = scene.home
    apply(home, cluster_of_machines(scene))
    apply(home, control_plane_machine(scene, "cp-1"))
    home.wait("condition=Ready", "machine/cp-1", timeout=240)
    there = scene.there()
    [node] = items(there, "nodes")
    assert node["metadata"]["name"] == "cp-1"
    until(lambda: is_control_plane(there, "cp-1"), 120)
    assert node["status"]["nodeInfo"]["kubeletVersion"] == VERSION
    assert items(home, "nodes") == []

    apply(home, deployment(scene.lab, "workers", 2, cluster_name="prod"))
    home.wait("jsonpath={.status.readyReplicas}=2", "md/workers", timeout=180)
    assert len(items(there, "nodes")) == 3
    until(lambda: home.json("get", "cluster", "prod")["status"]["readyMachines"] == 3)


@pytest.mark.hosts_long
def test_two_more_join_the_control_plane_one_after_the_other(scene: Scene) -> None:
    home, there = scene.home, scene.there()
    for name in ("cp-2", "cp-3"):
        apply(home, control_plane_machine(scene, name))
    for name in ("cp-2", "cp-3"):
        home.wait("condition=Ready", f"machine/{name}", timeout=240)
        until(lambda name=name: is_control_plane(there, name), 120)
    members = there.json("get", "pods", "-n", "kube-system", "-l", "component=etcd")["items"]
    assert len(members) == 3
