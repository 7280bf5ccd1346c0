"""KEP-3's second case on real hosts: a control plane over SSH is upgraded by an edit of its Machine, on its host."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from hack import binaries
from hack.hosts import images
from hack.hosts.lab import Lab
from hack.hosts.mirror import Mirror
from hack.program import Kubectl, Up
from tests.hosts import sshpools
from tests.hosts.clusters.making import cluster_of_machines, reached
from tests.hosts.joining import BEFORE, VERSION, apply, heard, items, programs, until
from tests.hosts.sshpools import Pool

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]


@dataclass(frozen=True, slots=True)
class Scene:
    """``home`` holds the Machines."""

    pool: Pool
    home: Kubectl
    mirror: Mirror
    folder: Path

    def there(self) -> Kubectl:
        return reached(self.home, self.folder)

    def cluster(self, *, older: bool = False) -> dict[str, Any]:
        return cluster_of_machines(self.mirror, self.pool.guests["rack1"].address, 6443, older=older)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, lab_folder: Path) -> Iterator[Scene]:
    folder, binary = tmp_path_factory.mktemp("upgrade"), binaries.ensure("kubectl")
    lab = Lab.make(folder / "lab")
    for number, tools in enumerate((binaries.PREVIOUS, binaries.TOOLS)):
        shutil.copy(images.ensure_control_plane(tools), lab.payload / f"control-plane-{number}.tar")
    try:
        pool = Pool(lab, tmp_path_factory.mktemp("keys"), ["rack1"])
        with Mirror(folder / "mirror", lab.net.gateway) as mirror, Up(folder, binary, "--in-memory") as up:
            mirror.add(VERSION, programs())
            mirror.add(BEFORE, programs(older=True))
            for obj in pool.objects():
                apply(up.kubectl, obj)
            yield Scene(pool, up.kubectl, mirror, folder)
    finally:
        lab.clean()


def machine(name: str, version: str) -> dict[str, Any]:
    config = {"apiVersion": "ssh.nodewright.dev/v1alpha1", "kind": "SSHMachineConfig", "pool": sshpools.POOL}
    number = version.removeprefix("v")
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "default", "labels": {"cluster.k8s.io/cluster-name": "prod"}},
        "spec": {
            "providerConfig": {"value": config},
            "versions": {"kubelet": number, "controlPlane": number},
        },
    }


def facts(there: Kubectl) -> tuple[str, str, str]:
    """Version of the API server, version of the kubelet, and boot id of the only Node."""
    [node] = items(there, "nodes")
    info = node["status"]["nodeInfo"]
    return there.json("version")["serverVersion"]["gitVersion"], info["kubeletVersion"], info["bootID"]


def test_an_edit_of_its_machine_upgrades_a_control_plane_and_its_host_is_given_back_clean(scene: Scene) -> None:
    """One test, since the cluster that goes at its end is the one that was upgraded."""
    home = scene.home
    apply(home, scene.cluster(older=True))
    apply(home, machine("cp", BEFORE))
    home.wait("condition=Ready", "machine/cp", timeout=480)
    there = scene.there()
    until(lambda: facts(there)[:2] == (BEFORE, BEFORE))
    boot = heard(lambda: facts(there))[2]
    until(lambda: is_kept(there))
    until(lambda: "node-role.kubernetes.io/control-plane" in there("get", "nodes", "-o", "yaml"), 300)

    apply(home, scene.cluster())
    number = VERSION.removeprefix("v")
    change = {"spec": {"versions": {"kubelet": number, "controlPlane": number}}}
    home("patch", "machine", "cp", "--type=merge", f"--patch={json.dumps(change)}")
    home.wait(f"jsonpath={{.status.versions.kubelet}}={VERSION}", "machine/cp", timeout=600)
    home.wait("condition=UpToDate", "machine/cp", timeout=300)
    home.wait("condition=Ready", "machine/cp", timeout=300)
    until(lambda: there.run("get", "nodes").code == 0, 60)  # its only API server was started a moment ago
    until(lambda: facts(there)[:2] == (VERSION, VERSION))
    assert heard(lambda: facts(there))[2] == boot
    until(lambda: there.json("get", "configmap", "kept")["data"] == {"data": "intact"})
    _certificates_renewed(scene)
    _given_back_clean(scene)


def is_kept(there: Kubectl) -> bool:
    """A ConfigMap by which the data is known again; made if it is not there. Raises CommandFailed."""
    there.run("create", "configmap", "kept", "--from-literal=data=intact")
    return bool(there.json("get", "configmap", "kept")["data"] == {"data": "intact"})


def served(scene: Scene, port: int) -> int:
    """Serial number of the certificate that the host shows at ``port``."""
    address = scene.pool.guests["rack1"].address
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((address, port), 60) as plain, context.wrap_socket(plain) as shown:
        der = shown.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der).serial_number


def shows_another(scene: Scene, port: int, before: int) -> bool:
    """False also while nobody listens there: etcd and the API server start anew."""
    try:
        return served(scene, port) != before
    except OSError:
        return False


def _certificates_renewed(scene: Scene) -> None:
    """On its host, and etcd is saved before."""
    home, there, guest = scene.home, scene.there(), scene.pool.guests["rack1"]
    before = {port: served(scene, port) for port in (6443, 2379)}
    note = ("nodewright.dev/renew-certificates=2026-11-23", "nodewright.dev/etcd-snapshot=2:/var/backups/etcd")
    home("annotate", "machine", "cp", *note)
    home.wait("condition=UpToDate=False", "machine/cp", timeout=300)
    home.wait("condition=UpToDate", "machine/cp", timeout=800)
    home.wait("condition=Ready", "machine/cp", timeout=300)
    until(lambda: there.run("get", "nodes").code == 0, 300)
    until(lambda: all(shows_another(scene, port, before[port]) for port in before))
    until(lambda: there.json("get", "configmap", "kept")["data"] == {"data": "intact"})
    [file] = guest.execute("ls /var/backups/etcd").stdout.split()
    assert file.endswith(f"-before-{VERSION}.db")
    assert guest.execute(f"stat -c %a /var/backups/etcd/{file}").stdout.strip() == "600"
    home.wait("condition=CertificatesValid", "cluster/prod", timeout=300)


def _given_back_clean(scene: Scene) -> None:
    """The whole cluster goes: its last control plane with it, though nobody is left to ask about its Node."""
    home, guest = scene.home, scene.pool.guests["rack1"]
    home("delete", "machine", "cp", "--wait=false")
    home("delete", "cluster", "prod", "--wait=false")
    until(lambda: not items(home, "machines") and not items(home, "clusters"), 360)
    until(lambda: not sshpools.claim(guest), 300)
    left = guest.execute(
        "ls -A /etc/kubernetes /var/lib/etcd /var/lib/kubelet /var/lib/nodewright/control-plane*; true"
    )
    assert left.stdout.strip() in ("", "/var/lib/etcd:\n\n/var/lib/kubelet:")
    until(lambda: not [each for each in items(home, "secrets") if each["metadata"]["name"].startswith("prod-")])
