"""Controllers that are killed while a control plane is made and upgraded: it is made once, and what was begun ends.

The management cluster is a real API server of its own, so nothing but the controllers dies. Each point is something
that was just seen, on that API server or on the host; the controllers are killed there and started again.
"""

from __future__ import annotations

import base64
import json
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import run
from typing import Any

import pytest

from hack import binaries
from hack.hosts import images
from hack.hosts.guests import Guest
from hack.hosts.lab import Lab
from hack.hosts.mirror import Mirror
from hack.program import Kubectl, Run
from hack.realplane import RealPlane
from tests.hosts import sshpools
from tests.hosts.clusters.making import cluster_of_machines, reached
from tests.hosts.clusters.test_control_plane_upgrade import machine
from tests.hosts.joining import BEFORE, VERSION, apply, heard, items, programs, until
from tests.hosts.sshpools import Pool

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]


@dataclass(frozen=True, slots=True)
class Scene:
    """``run``: the controllers, beside the API server that ``home`` asks."""

    pool: Pool
    run: Run
    mirror: Mirror
    folder: Path

    @property
    def home(self) -> Kubectl:
        return self.run.kubectl

    @property
    def host(self) -> Guest:
        return self.pool.guests["rack1"]

    def there(self) -> Kubectl:
        return reached(self.home, self.folder)

    def cluster(self, *, older: bool = False) -> dict[str, Any]:
        return cluster_of_machines(self.mirror, self.host.address, 6443, older=older)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, lab_folder: Path) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("kills")
    lab = Lab.make(folder / "lab")
    for number, tools in enumerate((binaries.PREVIOUS, binaries.TOOLS)):
        shutil.copy(images.ensure_control_plane(tools), lab.payload / f"control-plane-{number}.tar")
    try:
        pool = Pool(lab, tmp_path_factory.mktemp("keys"), ["rack1"])
        with Mirror(folder / "mirror", lab.net.gateway) as mirror, RealPlane(folder / "plane") as plane:
            mirror.add(VERSION, programs())
            mirror.add(BEFORE, programs(older=True))
            install = [sys.executable, "-m", "nodewright.cli", "install", f"--kubeconfig={plane.kubeconfig}"]
            run(install, check=True, timeout=600)
            with Run(
                folder, Kubectl(binaries.ensure("kubectl"), plane.kubeconfig, folder / "kubectl-cache")
            ) as running:
                for obj in pool.objects():
                    apply(running.kubectl, obj)
                yield Scene(pool, running, mirror, folder)
    finally:
        lab.clean()


@pytest.fixture
def clean(scene: Scene) -> Iterator[Scene]:
    """Whatever was made is gone after, and the host is clean."""
    yield scene
    scene.home("delete", "machines,clusters", "--all", "--wait=false")
    until(lambda: not items(scene.home, "machines") and not items(scene.home, "clusters"), 360)
    until(lambda: not sshpools.claim(scene.host), 300)


Point = Callable[[Scene], bool]


def _there(kind: str, name: str, words: str = "") -> Point:
    """An object of the management cluster is there, with these words in it."""

    def seen(scene: Scene) -> bool:
        found = scene.home.run("get", kind, name, "-o", "json")
        return not found.code and words in found.out

    return seen


def _on_host(test: str) -> Point:
    return lambda scene: scene.host.execute(test).returncode == 0


INIT: dict[str, Point] = {
    "the first authority is made": _there("secret", "prod-sa"),
    "the cluster's CA is made": _there("secret", "prod-ca"),
    "the kubeconfig is made": _there("secret", "prod-kubeconfig"),
    "a Machine is to make the cluster": _there("secret", "prod-ca", "control-plane-made-by"),
    "the host is claimed": _on_host("test -e /var/lib/nodewright/ssh/claim"),
    "programs are installed": _on_host("test -e /usr/bin/kubeadm"),
    "kubeadm has begun": _on_host("test -e /var/lib/nodewright/control-plane-begun"),
    "etcd is to run": _on_host("test -e /etc/kubernetes/manifests/etcd.yaml"),
    "the API answers": _on_host("curl -ksf --max-time 2 https://127.0.0.1:6443/readyz"),
    "kubeadm has ended": _on_host("test -e /var/lib/nodewright/control-plane"),
    "the Machine has its Node": _there("machine", "cp", '"nodeRef"'),
}
SAMPLE = ("the cluster's CA is made", "kubeadm has begun", "the API answers")
UPGRADE: dict[str, Point] = {
    "the change has begun": _on_host("test -e /var/lib/nodewright/ssh/changing"),
    "kubeadm is the new one": _on_host(f"kubeadm version -o short | grep -qx {VERSION}"),
    "kubeadm upgrades": _on_host("pgrep -f 'kubeadm upgrade apply'"),
    "the API server is the new one": _on_host(
        f"grep -q 'kube-apiserver:{VERSION}' /etc/kubernetes/manifests/kube-apiserver.yaml"
    ),
    "the kubelet is the new one": _on_host(f"kubelet --version | grep -q {VERSION}"),
}


def killed_at(scene: Scene, points: dict[str, Point], seconds: float = 600) -> None:
    """In their order, each once it is seen. What was passed while the controllers were started again counts as seen."""
    for point in points.values():
        until(lambda point=point: point(scene), seconds)
        scene.run.stop(signal.SIGKILL)
        scene.run.start()


def identity(there: Kubectl) -> str:
    """The UID of ``kube-system``; it differs after a second ``kubeadm init``, which makes a new etcd.

    Waits for the namespace: an API server may be ready before it has made it.
    """
    return str(heard(lambda: there.json("get", "namespace", "kube-system"))["metadata"]["uid"])


def made_once(scene: Scene, version: str) -> str:
    """The identity of the cluster: one authority for all, one host that made it, one member of etcd."""
    home, there = scene.home, scene.there()
    home.wait("condition=Ready", "machine/cp", timeout=480)
    authority = base64.b64decode(home.json("get", "secret", "prod-ca")["data"]["tls.crt"]).decode()
    assert scene.host.execute("cat /etc/kubernetes/pki/ca.crt").stdout.strip() == authority.strip()
    until(lambda: [node["status"]["nodeInfo"]["kubeletVersion"] for node in items(there, "nodes")] == [version])
    machine_uid = home.json("get", "machine", "cp")["metadata"]["uid"]
    marks = home.json("get", "secret", "prod-ca")["metadata"]["annotations"]
    assert marks["nodewright.dev/control-plane-made-by"] == f"cp/{machine_uid}"
    until(lambda: len(there.items("pods", "-n", "kube-system", "-l", "component=etcd")) == 1)  # its kubelet tells of it
    return identity(there)


def authority_of(home: Kubectl) -> str:
    return str(home.json("get", "secret", "prod-ca")["metadata"]["uid"])


def test_controllers_killed_at_three_points_of_init_make_one_cluster(clean: Scene) -> None:
    apply(clean.home, clean.cluster())
    apply(clean.home, machine("cp", VERSION))
    killed_at(clean, {name: INIT[name] for name in SAMPLE[:1]})
    before = authority_of(clean.home)
    killed_at(clean, {name: INIT[name] for name in SAMPLE[1:]})
    first = identity(clean.there())
    assert made_once(clean, VERSION) == first
    assert authority_of(clean.home) == before


@pytest.mark.hosts_long
def test_controllers_killed_at_every_point_of_init_and_of_an_upgrade_make_one_cluster_and_upgrade_it(
    clean: Scene,
) -> None:
    home = clean.home
    apply(home, clean.cluster(older=True))
    apply(home, machine("cp", BEFORE))
    killed_at(clean, INIT)
    before, first = authority_of(home), made_once(clean, BEFORE)
    there = clean.there()
    there("create", "configmap", "kept", "--from-literal=data=intact")
    until(lambda: "node-role.kubernetes.io/control-plane" in there("get", "nodes", "-o", "yaml"), 300)

    apply(home, clean.cluster())
    number = VERSION.removeprefix("v")
    change = {"spec": {"versions": {"kubelet": number, "controlPlane": number}}}
    home("patch", "machine", "cp", "--type=merge", f"--patch={json.dumps(change)}")
    killed_at(clean, UPGRADE, 600)
    home.wait(f"jsonpath={{.status.versions.kubelet}}={VERSION}", "machine/cp", timeout=600)
    home.wait("condition=UpToDate", "machine/cp", timeout=300)
    assert made_once(clean, VERSION) == first
    assert authority_of(home) == before
    assert there.json("get", "configmap", "kept")["data"] == {"data": "intact"}
