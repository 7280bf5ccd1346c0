"""Fifty hosts with real sshd, systemd, containerd and kubelets join at the same time, beside one that joins alone."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from subprocess import run
from typing import Any

import pytest

from hack import binaries
from hack.hosts import cgroups, cluster
from hack.hosts.lab import Lab
from hack.hosts.mirror import Mirror
from hack.program import PATIENT, Kubectl, Run
from tests.hosts import sshpools
from tests.hosts.joining import VERSION, apply, items, joining_cluster, programs, until
from tests.hosts.sshpools import Pool

pytestmark = [pytest.mark.hosts, pytest.mark.hosts_long, pytest.mark.slow, pytest.mark.kubectl]
HOSTS = int(os.environ.get("NODEWRIGHT_SSH_HOSTS", "50"))
PATIENCE = 900
"""Seconds for all of them."""
SHARE = 10
"""Percent, with the usual terms of the lease: of a fleet's hosts each has processors of its own; fifty kubelets that
start on these two cores would keep the controllers from renewing it."""
IS_USUAL = bool(os.environ.get("NODEWRIGHT_SSH_USUAL_LEASE"))
USUAL = ("--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s")
"""What a user has who says nothing of the lease."""


@pytest.fixture(scope="module")
def pool(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    made = Pool(lab, tmp_path_factory.mktemp("keys"), [f"h{number}" for number in range(1, HOSTS + 1)])
    yield made
    made.remove()


def machine_set(name: str, replicas: int) -> dict[str, Any]:
    labels = {"set": name, "cluster.k8s.io/cluster-name": "here"}
    config = {"apiVersion": "ssh.nodewright.dev/v1alpha1", "kind": "SSHMachineConfig", "pool": sshpools.POOL}
    spec = {"providerConfig": {"value": config}, "versions": {"kubelet": VERSION.removeprefix("v")}}
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "MachineSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"set": name}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def seconds_until_ready(kubectl: Kubectl, name: str, replicas: int) -> float:
    """From the order to as many Ready Nodes."""
    began = time.monotonic()
    apply(kubectl, machine_set(name, replicas))
    kubectl.wait(f"jsonpath={{.status.readyReplicas}}={replicas}", f"machineset/{name}", timeout=PATIENCE)
    return time.monotonic() - began


def memory(line: str = "MemAvailable", file: Path = Path("/proc/meminfo")) -> float:
    """MiB."""
    (found,) = (each.split()[1] for each in file.read_text().splitlines() if each.startswith(f"{line}:"))
    return int(found) / 1024


def connections(pid: int) -> int:
    """Of the process, to any sshd."""
    shown = run(["ss", "-Htnp", "dport = :22"], capture_output=True, text=True, check=True).stdout
    return sum(f"pid={pid}," in line for line in shown.splitlines())


def test_fifty_hosts_join_at_once_and_each_has_one_machine(
    lab: Lab, pool: Pool, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path_factory.mktemp("plane")
    if IS_USUAL:
        cgroups.weigh(SHARE)
    with (
        cluster.joinable(lab, folder) as plane,
        Mirror(tmp_path_factory.mktemp("mirror"), lab.net.gateway) as mirror,
    ):
        mirror.add(VERSION, programs())
        kubectl = Kubectl(binaries.ensure("kubectl"), plane.kubeconfig, folder / "kubectl-cache")
        install = [sys.executable, "-m", "nodewright.cli", "install", f"--kubeconfig={plane.kubeconfig}"]
        run(install, check=True, timeout=600)
        with Run(folder, kubectl, *(USUAL if IS_USUAL else PATIENT)) as controllers:
            for obj in [*pool.objects(), joining_cluster(mirror)]:
                apply(kubectl, obj)
            one = seconds_until_ready(kubectl, "one", 1)
            kubectl("delete", "machineset", "one", "--wait", "--timeout=300s", timeout=360)
            kubectl("wait", "--for=delete", "machines", "--all", "--timeout=300s", timeout=360)
            until(lambda: all(sshpools.claim(guest) is None for guest in pool.guests.values()))
            before = memory()
            every = seconds_until_ready(kubectl, "all", HOSTS)
            used = before - memory()
            status = Path(f"/proc/{controllers.pid}/status")
            kept, size = connections(controllers.pid), memory("VmRSS", status)
            claims = [sshpools.claim(guest) for guest in pool.guests.values()]
            holders = Counter(claim["machine_uid"] for claim in claims if claim)
            assert holders == Counter(each["metadata"]["uid"] for each in items(kubectl, "machines"))
            assert {node["metadata"]["name"] for node in items(kubectl, "nodes")} == pool.guests.keys()
    with capsys.disabled():
        print(
            f"{HOSTS} hosts: {every:.1f} s, one alone {one:.1f} s; "
            f"{kept} connections, controllers {size:.0f} MiB, hosts {used:.0f} MiB more"
        )
