"""From YAML to a cluster: kubeadm, etcd and all parts of a control plane on real hosts, and workers that join it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack import binaries
from hack.hosts import images
from hack.hosts.lab import Lab
from hack.hosts.mirror import PROGRAMS, Mirror
from hack.program import Kubectl, Up
from tests.hosts.clusters.making import cluster_of_machines, control_plane_machine, reached
from tests.hosts.joining import VERSION, apply, deployment, items, until

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]


@dataclass(frozen=True, slots=True)
class Scene:
    """``home`` holds the Machines. ``folder`` is for files of the test."""

    lab: Lab
    home: Kubectl
    mirror: Mirror
    folder: Path

    def there(self) -> Kubectl:
        return reached(self.home, self.folder)

    def make(self, *names: str) -> None:
        """Machines of the control plane; its API is served by the lab's first host."""
        apply(self.home, cluster_of_machines(self.mirror, self.lab.net.address(1), 6443))
        for name in names:
            apply(self.home, control_plane_machine(self.lab, name))
        for name in names:
            self.home.wait("condition=Ready", f"machine/{name}", timeout=800)


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


def is_control_plane(there: Kubectl, node: str) -> bool:
    """The last that kubeadm does to the Node."""
    return "node-role.kubernetes.io/control-plane" in there.json("get", "node", node)["metadata"]["labels"]


def test_a_cluster_is_made_from_yaml_and_workers_join_it(scene: Scene) -> None:
    home = scene.home
    scene.make("cp-1")
    there = scene.there()
    until(lambda: is_control_plane(there, "cp-1"), 300)
    until(lambda: there.json("get", "node", "cp-1")["status"]["nodeInfo"]["kubeletVersion"] == VERSION)
    assert items(home, "nodes") == []

    apply(home, deployment(scene.lab, "workers", 2, cluster_name="prod"))
    home.wait("jsonpath={.status.readyReplicas}=2", "md/workers", timeout=360)
    machines = items(home, "machines")
    names = {machine["metadata"]["name"] for machine in machines}
    until(lambda: {node["metadata"]["name"] for node in items(there, "nodes")} == names)
    until(lambda: home.json("get", "cluster", "prod")["status"]["readyMachines"] == len(machines))


@pytest.mark.hosts_long
def test_two_more_join_the_control_plane_one_after_the_other(scene: Scene) -> None:
    scene.make("cp-1", "cp-2", "cp-3")
    there = scene.there()
    for name in ("cp-1", "cp-2", "cp-3"):
        until(lambda name=name: is_control_plane(there, name), 300)
    members = there.json("get", "pods", "-n", "kube-system", "-l", "component=etcd")["items"]
    assert len(members) == 3
