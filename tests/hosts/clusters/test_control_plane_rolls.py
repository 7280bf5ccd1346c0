"""KEP-3's second case with three control planes on real hosts: the next minor version, while somebody uses the API."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hack import binaries
from hack.hosts import images
from hack.hosts.balancer import Balancer
from hack.hosts.lab import Lab
from hack.hosts.mirror import Mirror
from hack.hosts.provider.provider import API_VERSION, KIND
from hack.program import Kubectl, Up
from tests.hosts import sshpools
from tests.hosts.clusters import making
from tests.hosts.clusters.backups import Backups, backups
from tests.hosts.clusters.making import Prober, Watch, cluster_of_machines, control_plane, reached
from tests.hosts.joining import BEFORE, VERSION, apply, items, programs, until
from tests.hosts.sshpools import Pool

pytestmark = [pytest.mark.hosts, pytest.mark.hosts_long, pytest.mark.slow, pytest.mark.kubectl]
PORT = 6443
HOSTS = 8
"""Addresses of the lab that may run an API server."""
TIME = 1200
FOLDER = "/var/backups/etcd"
"""Of snapshots, on hosts."""


@dataclass(frozen=True, slots=True)
class Scene:
    """``home`` holds the Machines. ``endpoint`` is a port in front of all hosts."""

    lab: Lab
    home: Kubectl
    mirror: Mirror
    folder: Path
    endpoint: int

    def made(self, config: dict[str, Any], **spec: Any) -> Kubectl:
        """Three control planes of the version before; then the Cluster names the programs of the next one."""
        home, host = self.home, self.lab.net.gateway
        apply(home, cluster_of_machines(self.mirror, host, self.endpoint, older=True))
        apply(home, control_plane(3, config, older=True, **spec))
        home.wait("jsonpath={.status.readyReplicas}=3", f"controlplane/{making.NAME}", timeout=600)
        there = reached(home, self.folder)
        there("create", "configmap", "kept", "--from-literal=data=intact")
        apply(home, cluster_of_machines(self.mirror, host, self.endpoint))
        return there

    def upgrade(self, there: Kubectl) -> Prober:
        """To the end; what the prober came to."""
        change = {"spec": {"version": VERSION.removeprefix("v")}}
        title = f"controlplane/{making.NAME}"
        with Prober(there) as prober, Watch() as watch:
            self.home("patch", title, "--type=merge", f"--patch={json.dumps(change)}")
            self.home.wait("jsonpath={.status.updatedReplicas}=3", title, timeout=TIME)
            self.home.wait("condition=MachinesUpToDate", title, timeout=TIME)
            self.home.wait("jsonpath={.status.readyReplicas}=3", title, timeout=TIME)
            self.home.wait(f"jsonpath={{.status.version}}={VERSION}", title, timeout=TIME)
        if watch.kubeadm:
            ratio = watch.whole / watch.kubeadm
            print(f"{watch.whole:.0f} s, kubeadm ran {watch.kubeadm:.0f} s: controlplane_upgrade_ratio {ratio:.2f}")
        print(f"{prober.asked} writes and reads, {prober.late} needed a second try, {len(prober.failed)} failed")
        return prober


@pytest.fixture
def scene(tmp_path: Path, lab_folder: Path) -> Iterator[Scene]:
    binary = binaries.ensure("kubectl")
    with ExitStack() as stack:
        lab = Lab.make(tmp_path / "lab")
        stack.callback(lab.clean)
        for number, tools in enumerate((binaries.PREVIOUS, binaries.TOOLS)):
            shutil.copy(images.ensure_control_plane(tools), lab.payload / f"control-plane-{number}.tar")
        mirror = stack.enter_context(Mirror(tmp_path / "mirror", lab.net.gateway))
        mirror.add(VERSION, programs())
        mirror.add(BEFORE, programs(older=True))
        backends = [(lab.net.address(number), PORT) for number in range(1, HOSTS + 1)]
        balancer = stack.enter_context(Balancer(lab.net.gateway, backends))
        up = stack.enter_context(Up(tmp_path, binary, "--in-memory"))
        yield Scene(lab, up.kubectl, mirror, tmp_path, balancer.port)


def uids(home: Kubectl) -> set[str]:
    return {each["metadata"]["uid"] for each in items(home, "machines")}


def boots(there: Kubectl) -> set[str]:
    return {node["status"]["nodeInfo"]["bootID"] for node in items(there, "nodes")}


def kubelets(there: Kubectl) -> set[str]:
    return {node["status"]["nodeInfo"]["kubeletVersion"] for node in items(there, "nodes")}


def static_images(there: Kubectl) -> set[str]:
    pods = there.json("get", "pods", "--namespace=kube-system", "--selector=component=kube-apiserver")["items"]
    return {pod["spec"]["containers"][0]["image"].rpartition(":")[2] for pod in pods}


def saying(home: Kubectl, type_: str) -> dict[str, Any]:
    conditions = home.json("get", "controlplane", making.NAME)["status"]["conditions"]
    return {each["type"]: each for each in conditions}[type_]


def test_three_are_upgraded_on_their_hosts(scene: Scene, tmp_path: Path) -> None:
    """Their etcd is reached over SSH alone, and each host saves it before it is changed."""
    pool = Pool(scene.lab, tmp_path, ["rack1", "rack2", "rack3"])
    for obj in pool.objects():
        apply(scene.home, obj)
    config = {"apiVersion": "ssh.nodewright.dev/v1alpha1", "kind": "SSHMachineConfig", "pool": sshpools.POOL}
    etcd = {"snapshot": {"path": FOLDER, "keep": 3}}
    there = scene.made(config, rollout={"inPlace": "Require"}, etcd=etcd)
    for guest in pool.guests.values():
        guest.execute(f"iptables -I INPUT -s {scene.lab.net.gateway} -p tcp --dport 2379 -j DROP")
        with pytest.raises(TimeoutError):
            socket.create_connection((guest.address, 2379), 2)
    before = uids(scene.home), boots(there)
    prober = scene.upgrade(there)
    scene.home.wait("condition=EtcdHealthy", f"controlplane/{making.NAME}", timeout=300)
    saved = {name: guest.execute(f"ls {FOLDER}").stdout.split() for name, guest in pool.guests.items()}
    assert all(len(files) == 1 and files[0].endswith(f"-before-{VERSION}.db") for files in saved.values())
    last = scene.home.json("get", "controlplane", making.NAME)["status"]["etcdSnapshot"]
    name, _, path = last["location"].partition(":")
    assert path == f"{FOLDER}/{saved[name][0]}"
    condition = saying(scene.home, "EtcdSaved")
    print(f"EtcdSaved: {condition['message']}")
    assert (condition["status"], last["location"] in condition["message"]) == ("True", True)
    assert (uids(scene.home), boots(there)) == before
    assert (kubelets(there), static_images(there)) == ({VERSION}, {VERSION})
    assert there.json("get", "configmap", "kept")["data"] == {"data": "intact"}
    assert not prober.failed


def test_three_are_replaced_by_hosts_of_the_next_version(scene: Scene, tmp_path: Path) -> None:
    """And etcd is saved before each."""
    with backups(tmp_path) as bucket:
        apply(scene.home, bucket.secret())
        _replace_three(scene, bucket)
        saved = bucket.databases()
    assert len(saved) == 3
    assert all(b"intact" in database for database in saved.values())
    condition = saying(scene.home, "EtcdSaved")
    print(f"EtcdSaved: {condition['message']}")
    assert (condition["status"], condition["reason"]) == ("True", "SnapshotTaken")
    last = scene.home.json("get", "controlplane", making.NAME)["status"]["etcdSnapshot"]
    assert last["location"] == f"{bucket.s3.url}/{max(saved)}"
    assert last["sizeBytes"] == len(saved[max(saved)])
    assert last["location"] in condition["message"]


def _replace_three(scene: Scene, bucket: Backups) -> None:
    config = {"apiVersion": API_VERSION, "kind": KIND, "lab": str(scene.lab.folder)}
    there = scene.made(config, rollout={"inPlace": "Never", "maxSurge": 1}, etcd=bucket.spec())
    before = uids(scene.home)
    prober = scene.upgrade(there)
    until(lambda: len(uids(scene.home)) == 3 and len(items(there, "nodes")) == 3, 600)
    assert not uids(scene.home) & before
    assert kubelets(there) == {VERSION}
    until(lambda: static_images(there) == {VERSION}, 180)  # mirror pods of Nodes that are gone go a moment later
    assert there.json("get", "configmap", "kept")["data"] == {"data": "intact"}
    for node in items(there, "nodes"):  # each API server may read logs, whichever answers
        there("logs", "--namespace=kube-system", f"kube-apiserver-{node['metadata']['name']}", "--tail=1")
    assert not prober.failed
