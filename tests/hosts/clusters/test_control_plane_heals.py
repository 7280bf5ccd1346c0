"""A ControlPlane of three on real hosts: made one after the other, healed when a host is lost, its data intact."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hack import binaries
from hack.hosts import images
from hack.hosts.balancer import Balancer
from hack.hosts.lab import Lab
from hack.hosts.mirror import PROGRAMS, Mirror
from hack.hosts.provider.provider import API_VERSION, KIND
from hack.program import Kubectl, Up
from tests.hosts.clusters.making import cluster_of_machines, control_plane, reached
from tests.hosts.joining import VERSION, apply, items, until

pytestmark = [pytest.mark.hosts, pytest.mark.hosts_long, pytest.mark.slow, pytest.mark.kubectl]
PORT = 6443
HOSTS = 6
"""Addresses of the lab that may run an API server."""


@dataclass(frozen=True, slots=True)
class Scene:
    """``home`` holds the Machines. ``endpoint`` is a port in front of all hosts."""

    lab: Lab
    home: Kubectl
    mirror: Mirror
    folder: Path
    endpoint: int

    def there(self) -> Kubectl:
        return reached(self.home, self.folder)

    def machines(self) -> dict[str, dict[str, Any]]:
        return {each["metadata"]["name"]: each for each in items(self.home, "machines")}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, lab_folder: Path) -> Iterator[Scene]:
    folder, binary = tmp_path_factory.mktemp("healing"), binaries.ensure("kubectl")
    lab = Lab.make(folder / "lab")
    shutil.copy(images.ensure_control_plane(), lab.payload / "control-plane.tar")
    backends = [(lab.net.address(number), PORT) for number in range(1, HOSTS + 1)]
    try:
        with (
            Mirror(folder / "mirror", lab.net.gateway) as mirror,
            Balancer(lab.net.gateway, backends) as balancer,
            Up(folder, binary, "--in-memory") as up,
        ):
            mirror.add(VERSION, {name: binaries.ensure(name) for name in PROGRAMS})
            yield Scene(lab, up.kubectl, mirror, folder, balancer.port)
    finally:
        lab.clean()


def test_one_becomes_three_by_a_scale_and_a_lost_host_is_replaced_after_its_member(scene: Scene) -> None:
    """One test, since the second half begins where the first ends. Data written before is there at the end."""
    home = scene.home
    apply(home, cluster_of_machines(scene.mirror, scene.lab.net.gateway, scene.endpoint))
    apply(home, control_plane(1, {"apiVersion": API_VERSION, "kind": KIND, "lab": str(scene.lab.folder)}))
    home.wait("jsonpath={.status.readyReplicas}=1", "controlplane/prod", timeout=480)
    there = scene.there()
    there("create", "configmap", "kept", "--from-literal=data=intact")
    home("scale", "controlplane/prod", "--replicas=3")
    home.wait("jsonpath={.status.readyReplicas}=3", "controlplane/prod", timeout=800)
    home.wait("condition=EtcdHealthy", "controlplane/prod", timeout=300)
    assert len(items(there, "nodes")) == 3

    before = scene.machines()
    lost = sorted(before)[-1]
    scene.lab.remove(before[lost]["metadata"]["uid"])
    until(lambda: lost not in scene.machines(), 400)
    home.wait("jsonpath={.status.readyReplicas}=3", "controlplane/prod", timeout=800)
    home.wait("condition=EtcdHealthy", "controlplane/prod", timeout=300)
    assert len(scene.machines().keys() - before.keys()) == 1
    assert there.json("get", "configmap", "kept")["data"] == {"data": "intact"}
    until(lambda: {node["metadata"]["name"] for node in items(there, "nodes")} == set(scene.machines()), 300)
