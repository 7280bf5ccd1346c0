"""One command makes a real cluster of one control plane and two workers, and one command leaves clean hosts."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack import binaries
from hack.hosts import images
from hack.hosts.lab import Lab
from hack.hosts.mirror import PROGRAMS, Mirror
from hack.program import Kubectl, Up
from tests.cli.processes import nodewright
from tests.hosts.clusters.making import cluster_of_machines, control_plane_machine
from tests.hosts.joining import VERSION, deployment, items, until

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]
SECONDS = 1200


@dataclass(frozen=True, slots=True)
class Scene:
    lab: Lab
    mirror: Mirror
    folder: Path


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, lab_folder: Path) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("creating")
    lab = Lab.make(folder / "lab")
    shutil.copy(images.ensure_control_plane(), lab.payload / "control-plane.tar")
    try:
        with Mirror(folder / "mirror", lab.net.gateway) as mirror:
            mirror.add(VERSION, {name: binaries.ensure(name) for name in PROGRAMS})
            yield Scene(lab, mirror, folder)
    finally:
        lab.clean()


def test_one_command_makes_a_real_cluster_and_one_takes_it_down(scene: Scene) -> None:
    objects = [
        cluster_of_machines(scene.mirror, scene.lab.net.address(1), 6443),
        control_plane_machine(scene.lab, "cp-1"),
        deployment(scene.lab, "workers", 2, cluster_name="prod"),
    ]
    file = scene.folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    addon = scene.folder / "addon.yaml"
    addon.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: made, namespace: kube-system}}\n")
    out, data = scene.folder / "prod.kubeconfig", str(scene.folder / "data")

    began = time.monotonic()
    told = ["create", "cluster", "-f", str(file), "--keep", "--data-dir", data, f"--kubeconfig-out={out}"]
    made = nodewright(*told, f"--addons={addon}", "--timeout", str(SECONDS), timeout=SECONDS + 60)
    took = time.monotonic() - began
    assert made.returncode == 0, made.stdout + made.stderr
    print(f"\n1 control plane and 2 workers by one command: {took:.0f} s\n{made.stdout}")

    there = Kubectl(binaries.ensure("kubectl"), out, scene.folder / "cache")
    until(lambda: [node["status"]["nodeInfo"]["kubeletVersion"] for node in items(there, "nodes")] == [VERSION] * 3)
    until(lambda: "made" in there("get", "configmap", "made", "-n", "kube-system"))

    with Up(scene.folder, binaries.ensure("kubectl"), f"--data-dir={data}") as up:
        up.kubectl("scale", "md/workers", "--replicas=3")
        up.kubectl.wait("jsonpath={.status.readyReplicas}=3", "md/workers", timeout=300)
    until(lambda: len(items(there, "nodes")) == 4)

    began = time.monotonic()
    gone = nodewright("delete", "cluster", "prod", "--data-dir", data, "--timeout", "900", timeout=960)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    print(f"taken down: {time.monotonic() - began:.0f} s\n{gone.stdout}")
    assert scene.lab.hosts() == []
