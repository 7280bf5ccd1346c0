"""`deploy/base` with the image of a release, run by the containerd of real hosts: it leads and makes hosts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack import binaries, credentials
from hack.hosts import cluster
from hack.hosts.lab import Lab, Record
from hack.hosts.mirror import PROGRAMS, Mirror
from hack.program import Kubectl
from hack.realplane import RealPlane
from tests.hosts.artefacts import IMAGE, image_archive
from tests.hosts.joining import VERSION, apply, until
from tests.hosts.test_join import user_data

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]
NAMESPACE = "nodewright-system"
HOSTS = ("one", "two")
SECONDS = 600
MACHINE: dict[str, Any] = {
    "apiVersion": "cluster.k8s.io/v1alpha1",
    "kind": "Machine",
    "metadata": {"name": "first", "namespace": "default"},
    "spec": {
        "versions": {"kubelet": VERSION.removeprefix("v")},
        "providerConfig": {
            "value": {"apiVersion": "simulated.nodewright.dev/v1alpha1", "kind": "SimulatedMachineConfig"}
        },
    },
}


@pytest.fixture(scope="module")
def kubectl(lab_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A cluster of two hosts that have the image."""
    folder = tmp_path_factory.mktemp("shipped")
    lab = Lab.make(lab_folder.parent / "shipped")
    shutil.copy(image_archive(folder), lab.payload / "nodewright.tar")
    try:
        with cluster.joinable(lab, folder / "plane") as plane, Mirror(folder / "mirror", lab.net.gateway) as mirror:
            mirror.add(VERSION, {name: binaries.ensure(name) for name in PROGRAMS})
            for name in HOSTS:
                _join(lab, plane, name, user_data(plane, mirror, folder, "shell"))
            there = Kubectl(binaries.ensure("kubectl"), plane.kubeconfig, folder / "cache")
            there("wait", "--for=condition=Ready", "nodes", "--all", f"--timeout={SECONDS}s", timeout=SECONDS + 10)
            yield there
    finally:
        lab.clean()


def _join(lab: Lab, plane: RealPlane, name: str, script: str) -> None:
    """The host becomes a Node; a rule does for the one Service what kube-proxy would do."""
    guest = lab.guest(lab.start(Record(name, name, 0, "2026-01-01T00:00:00+00:00", {}), {}))
    guest.wait_booted()
    (guest.root / "root/join.sh").write_text(script)
    api = plane.url.removeprefix("https://")
    rules = "; ".join(
        f"iptables -t nat -A {chain} -d {credentials.SERVICE} -p tcp --dport 443 -j DNAT --to-destination {api}"
        for chain in ("PREROUTING", "OUTPUT")
    )
    done = guest.execute(f"set -e; {rules}; sh /root/join.sh; rm /root/join.sh")
    assert done.returncode == 0, done.stdout + done.stderr
    until(lambda: guest.execute(f"ctr -n k8s.io images ls -q | grep -qx {IMAGE}").returncode == 0, SECONDS)


def test_the_deployment_as_shipped_runs_leads_and_makes_hosts(kubectl: Kubectl) -> None:
    command = [sys.executable, "-m", "nodewright.cli", "install", "--controllers", f"--image={IMAGE}"]
    done = subprocess.run(
        [*command, f"--kubeconfig={kubectl.kubeconfig}"], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    waits = ("wait", "--for=condition=Available", "deployment/nodewright", "-n", NAMESPACE)
    available = kubectl.run(*waits, f"--timeout={SECONDS}s", timeout=SECONDS + 10)
    assert available.code == 0, _state(kubectl)
    pods = kubectl.json("get", "pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=nodewright")["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} == set(HOSTS)
    assert all(pod["status"]["containerStatuses"][0]["restartCount"] == 0 for pod in pods), _state(kubectl)

    apply(kubectl, MACHINE)
    kubectl.wait("condition=InfrastructureReady", "machine/first", timeout=SECONDS)
    holder = _holder(kubectl)
    assert any(pod["metadata"]["name"] in holder for pod in pods)

    leader = next(pod["metadata"]["name"] for pod in pods if pod["metadata"]["name"] in holder)
    kubectl("delete", "pod", leader, "-n", NAMESPACE, "--wait")
    until(lambda: leader not in _holder(kubectl), SECONDS)
    kubectl("delete", "machine", "first", "--wait", f"--timeout={SECONDS}s", timeout=SECONDS + 10)


def _holder(kubectl: Kubectl) -> str:
    leases = kubectl.json("get", "leases", "-n", NAMESPACE)["items"]
    return json.dumps([lease["spec"].get("holderIdentity", "") for lease in leases])


def _state(kubectl: Kubectl) -> str:
    pods = kubectl.run("describe", "pods", "-n", NAMESPACE).out
    return f"{pods}\n{kubectl.run('logs', '-n', NAMESPACE, 'deploy/nodewright', '--tail=40').out}"
