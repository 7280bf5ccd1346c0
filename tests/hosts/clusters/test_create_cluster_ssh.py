"""The newcomer's walk on real machines over SSH: generate, create, killed halfway and run again, delete."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack import binaries
from hack.hosts import cluster, files
from hack.hosts.mirror import Mirror
from hack.program import Kubectl, Up
from tests.cli.processes import following, nodewright
from tests.hosts.clusters.making import machines_of_people
from tests.hosts.joining import VERSION, items, programs, until
from tests.hosts.sshpools import Pool

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]
SECONDS = 1200
FRONT, RACKS = ("front1",), ("rack1", "rack2")


@dataclass(frozen=True, slots=True)
class Scene:
    pool: Pool
    mirror: Mirror
    folder: Path


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, lab_folder: Path) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("walk")
    with machines_of_people(folder, [*FRONT, *RACKS]) as (pool, mirror):
        yield Scene(pool, mirror, folder)


def pools(pool: Pool, racks: tuple[str, ...] = RACKS) -> list[dict[str, Any]]:
    """The Secret, and a pool for each kind of host."""
    secret, every = pool.objects()
    found = [secret]
    for name, hosts in (("front", FRONT), ("racks", racks)):
        spec = {**every["spec"], "hosts": [pool.entry(host) for host in hosts]}
        found.append({**every, "metadata": {**every["metadata"], "name": name}, "spec": spec})
    return found


def generated(scene: Scene) -> list[dict[str, Any]]:
    """As the walk generates it; what this lab needs beside is put into the Cluster."""
    endpoint = scene.pool.guests[FRONT[0]].address
    values = ["--set", "CONTROL_PLANE_POOL=front", "--set", "WORKER_POOL=racks", "--endpoint", endpoint]
    told = ["prod", "--provider", "ssh", "--kubernetes-version", VERSION, "--workers", "2", *values]
    made = nodewright("generate", "cluster", *told)
    assert made.returncode == 0, made.stderr
    objects: list[dict[str, Any]] = list(yaml.safe_load_all(made.stdout))
    objects[0]["spec"]["bootstrap"] = {
        "archives": scene.mirror.archives(programs()),
        "files": [files.CONTAINERD_FILE],
        "nodeRegistration": {"ignorePreflightErrors": [cluster.NO_CGROUP_2]},
        "kubeletConfiguration": {"failCgroupV1": False, "failSwapOn": False},
        "controlPlane": {"disabledAddons": ["CoreDNS", "KubeProxy"]},
    }
    return objects


def test_three_machines_become_a_cluster_and_are_free_again(scene: Scene) -> None:
    file = scene.folder / "cluster.json"
    every = [*pools(scene.pool), *generated(scene)]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": every}))
    out, data = scene.folder / "prod.kubeconfig", str(scene.folder / "data")
    told = ["create", "cluster", "-f", str(file), "--keep", "--data-dir", data, f"--kubeconfig-out={out}"]

    with following(*told) as process:
        assert process.stdout is not None
        while "Machine/prod-cp-1 › Host/" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)

    began = time.monotonic()
    made = nodewright(*told, "--timeout", str(SECONDS), timeout=SECONDS + 60)
    assert made.returncode == 0, made.stdout + made.stderr
    print(f"\n1 control plane and 2 workers over SSH: {time.monotonic() - began:.0f} s\n{made.stdout}")
    there = Kubectl(binaries.ensure("kubectl"), out, scene.folder / "cache")
    until(lambda: [node["status"]["nodeInfo"]["kubeletVersion"] for node in items(there, "nodes")] == [VERSION] * 3)

    began = time.monotonic()
    gone = nodewright("delete", "cluster", "prod", "--data-dir", data, "--timeout", "900", timeout=960)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    print(f"taken down: {time.monotonic() - began:.0f} s\n{gone.stdout}")
    for guest in scene.pool.guests.values():
        assert not (guest.root / "etc/kubernetes/kubelet.conf").exists()
        assert not (guest.root / "etc/kubernetes/pki/ca.key").exists()
    with Up(scene.folder, binaries.ensure("kubectl"), f"--data-dir={data}") as up:
        until(lambda: _free(up) == {"front": 1, "racks": 2})


def _free(up: Up) -> dict[str, int]:
    listed = up.kubectl.items("sshhostpools")
    return {each["metadata"]["name"]: (each.get("status") or {}).get("free", 0) for each in listed}
