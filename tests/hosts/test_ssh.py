"""Machines claim hosts of a pool over real SSH, become Nodes of a real control plane, and give clean hosts back."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from subprocess import run
from typing import Any

import pytest

from hack import binaries
from hack.hosts import cluster
from hack.hosts.guests import Guest
from hack.hosts.lab import Lab
from hack.hosts.mirror import Mirror
from hack.program import Kubectl, Run
from hack.realplane import RealPlane
from tests.hosts import sshpools
from tests.hosts.joining import BEFORE, VERSION, apply, items, joining_cluster, programs, secrets_to_join, until
from tests.hosts.sshpools import Pool

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]


@pytest.fixture(scope="module")
def plane(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPlane]:
    with cluster.joinable(lab, tmp_path_factory.mktemp("plane")) as running:
        yield running


@pytest.fixture(scope="module")
def mirror(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    with Mirror(tmp_path_factory.mktemp("mirror"), lab.net.gateway) as running:
        running.add(VERSION, programs())
        running.add(BEFORE, programs(older=True))
        yield running


@pytest.fixture(scope="module")
def pool(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    made = Pool(lab, tmp_path_factory.mktemp("keys"), ["rack1", "rack2"])
    yield made
    made.remove()


@pytest.fixture(scope="module")
def controllers(plane: RealPlane, pool: Pool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """At work on the plane, which has the pool."""
    folder = tmp_path_factory.mktemp("run")
    install = [sys.executable, "-m", "nodewright.cli", "install", f"--kubeconfig={plane.kubeconfig}"]
    run(install, check=True, timeout=600)
    with Run(folder, Kubectl(binaries.ensure("kubectl"), plane.kubeconfig, folder / "kubectl-cache")) as running:
        for obj in pool.objects():
            apply(running.kubectl, obj)
        yield running
        running.kubectl("delete", "md,ms,ma,cl", "--all", "--wait", "--timeout=300s", timeout=360)


@pytest.fixture(scope="module")
def kubectl(controllers: Run) -> Kubectl:
    return controllers.kubectl


def machine(name: str, version: str = VERSION) -> dict[str, Any]:
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "default", "labels": {"cluster.k8s.io/cluster-name": "here"}},
        "spec": {
            "providerConfig": {
                "value": {
                    "apiVersion": "ssh.nodewright.dev/v1alpha1",
                    "kind": "SSHMachineConfig",
                    "pool": sshpools.POOL,
                }
            },
            "versions": {"kubelet": version.removeprefix("v")},
        },
    }


def deployment(name: str, replicas: int, version: str) -> dict[str, Any]:
    """One that changes its Machines in place, one at a time."""
    labels = {"set": name, "cluster.k8s.io/cluster-name": "here"}
    rolling = {"maxSurge": 0, "maxUnavailable": 1, "inPlace": "Require"}
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "MachineDeployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"set": name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "template": {"metadata": {"labels": labels}, "spec": machine(name, version)["spec"]},
        },
    }


def upgrade(kubectl: Kubectl, name: str, version: str) -> None:
    change = json.dumps({"spec": {"versions": {"kubelet": version.removeprefix("v")}}})
    kubectl("patch", "machine", name, "--type=merge", f"--patch={change}")


def left_of_kubernetes(guest: Guest) -> str:
    """What is on the host that a clean one has not."""
    return guest.execute(
        "ls -d /etc/kubernetes /usr/bin/kubelet /usr/bin/kubeadm /etc/nodewright /var/lib/nodewright/ssh/claim "
        "/var/lib/nodewright/bootstrap /etc/systemd/system/nodewright-* 2>/dev/null; find /var/lib/kubelet -mindepth 1;"
        "iptables-save 2>/dev/null | grep -E 'KUBE-|CNI-'; pgrep -a kubelet;"
        "cat /var/lib/nodewright/ssh/quarantine 2>/dev/null"
    ).stdout


def is_clean(guest: Guest) -> None:
    """Wait until nothing is left: the host's own unit goes last, a moment after the claim."""
    until(lambda: left_of_kubernetes(guest) == "", 300)


def test_a_machine_claims_a_host_joins_it_and_gives_it_back_clean_to_the_next(
    pool: Pool, mirror: Mirror, kubectl: Kubectl
) -> None:
    apply(kubectl, joining_cluster(mirror))
    for name in ("first", "second"):
        apply(kubectl, machine(name))
    kubectl.wait("condition=NodeJoined", "machine/first", "machine/second", timeout=300)
    kubectl.wait("condition=Ready", "node/rack1", "node/rack2", timeout=300)
    holders = {each["metadata"]["uid"]: each for each in items(kubectl, "machines")}
    claims = {name: sshpools.claim(guest) for name, guest in pool.guests.items()}
    assert {claim["machine_uid"] for claim in claims.values() if claim} == holders.keys()
    until(lambda: not secrets_to_join(kubectl))

    kubectl("delete", "machine", "--all", "--wait", "--timeout=300s", timeout=360)
    until(lambda: items(kubectl, "nodes") == [])
    for guest in pool.guests.values():
        is_clean(guest)

    apply(kubectl, machine("third"))
    kubectl.wait("condition=NodeJoined", "machine/third", timeout=300)
    kubectl("delete", "machine", "third", "--wait", "--timeout=300s", timeout=360)


def test_an_edit_of_its_machine_upgrades_the_kubelet_on_the_host_that_it_has(
    pool: Pool, mirror: Mirror, kubectl: Kubectl
) -> None:
    apply(kubectl, joining_cluster(mirror, older=True))
    apply(kubectl, machine("edited", BEFORE))
    kubectl.wait("condition=NodeJoined", "machine/edited", timeout=300)
    kubectl.wait("condition=UpToDate", "machine/edited", timeout=300)
    (before,) = items(kubectl, "nodes")
    name = before["metadata"]["name"]
    kubectl.wait("condition=Ready", f"node/{name}", timeout=300)
    claim = sshpools.claim(pool.guests[name])
    assert before["status"]["nodeInfo"]["kubeletVersion"] == BEFORE

    apply(kubectl, joining_cluster(mirror))  # the mirror of http has to say what the new programs are
    upgrade(kubectl, "edited", VERSION)
    kubectl.wait(f"jsonpath={{.status.nodeInfo.kubeletVersion}}={VERSION}", f"node/{name}", timeout=300)
    kubectl.wait("condition=UpToDate", "machine/edited", timeout=300)
    kubectl.wait("condition=Ready", f"node/{name}", timeout=300)
    until(lambda: not items(kubectl, "nodes")[0]["spec"].get("unschedulable"))
    (after,) = items(kubectl, "nodes")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["nodeInfo"]["bootID"] == before["status"]["nodeInfo"]["bootID"]
    now = sshpools.claim(pool.guests[name])
    assert claim is not None
    assert now is not None
    assert (now["id"], now["machine_uid"]) == (claim["id"], claim["machine_uid"])
    kubectl("delete", "machine", "edited", "--wait", "--timeout=300s", timeout=360)
    is_clean(pool.guests[name])


def test_a_version_that_can_not_be_had_is_told_and_an_edit_back_ends_it(
    pool: Pool, mirror: Mirror, controllers: Run, kubectl: Kubectl
) -> None:
    """The controllers are killed meanwhile: what the host does is the host's."""
    apply(kubectl, joining_cluster(mirror))
    apply(kubectl, machine("mistyped"))
    kubectl.wait("condition=NodeJoined", "machine/mistyped", timeout=300)
    kubectl.wait("condition=UpToDate", "machine/mistyped", timeout=300)
    (node,) = items(kubectl, "nodes")
    name = node["metadata"]["name"]
    claim = sshpools.claim(pool.guests[name])

    upgrade(kubectl, "mistyped", "1.36.99")
    message = "-o=jsonpath={.status.conditions[?(@.type=='UpToDate')].message}"
    kubectl.until("install kubeadm 1.36.99 failed", "get", "machine", "mistyped", message, timeout=300)
    controllers.stop(signal.SIGKILL)
    controllers.start()
    kubectl.until("can't be fetched", "get", "machine", "mistyped", message, timeout=300)
    kubectl.wait("condition=Ready", f"node/{name}", timeout=300)
    upgrade(kubectl, "mistyped", VERSION)
    kubectl.wait("condition=UpToDate", "machine/mistyped", timeout=300)
    until(lambda: not items(kubectl, "nodes")[0]["spec"].get("unschedulable"))
    (after,) = items(kubectl, "nodes")
    assert after["metadata"]["uid"] == node["metadata"]["uid"]
    assert after["status"]["nodeInfo"]["kubeletVersion"] == VERSION
    assert sshpools.claim(pool.guests[name]) == claim
    kubectl("delete", "machine", "mistyped", "--wait", "--timeout=300s", timeout=360)
    is_clean(pool.guests[name])


def test_a_deployment_is_rolled_on_the_hosts_that_it_has_one_at_a_time(
    pool: Pool, mirror: Mirror, kubectl: Kubectl
) -> None:
    apply(kubectl, joining_cluster(mirror, older=True))
    apply(kubectl, deployment("workers", 2, BEFORE))
    kubectl.wait("jsonpath={.status.readyReplicas}=2", "md/workers", timeout=300)
    kubectl.wait("condition=UpToDate", "machines", "--all", timeout=300)
    machines = {each["metadata"]["uid"] for each in items(kubectl, "machines")}
    nodes = {node["metadata"]["uid"]: node["status"]["nodeInfo"]["bootID"] for node in items(kubectl, "nodes")}
    claims = {name: sshpools.claim(guest) for name, guest in pool.guests.items()}

    apply(kubectl, joining_cluster(mirror))
    apply(kubectl, deployment("workers", 2, VERSION))
    at_once = 0

    def rolled() -> bool:
        nonlocal at_once
        now = items(kubectl, "nodes")
        at_once = max(at_once, sum(1 for node in now if node["spec"].get("unschedulable")))
        return [node["status"]["nodeInfo"]["kubeletVersion"] for node in now] == [VERSION] * 2

    until(rolled, 360)
    assert at_once <= 1
    kubectl.wait("condition=UpToDate", "machines", "--all", timeout=300)
    assert {each["metadata"]["uid"] for each in items(kubectl, "machines")} == machines
    assert {node["metadata"]["uid"]: node["status"]["nodeInfo"]["bootID"] for node in items(kubectl, "nodes")} == nodes
    after = {name: sshpools.claim(guest) for name, guest in pool.guests.items()}
    assert {name: claim and claim["id"] for name, claim in after.items()} == {
        name: claim and claim["id"] for name, claim in claims.items()
    }
    kubectl("delete", "md", "workers", "--wait")
    kubectl("wait", "--for=delete", "machines", "--all", "--timeout=300s", timeout=360)


def begun(guest: Guest, step: int) -> bool:
    """Whether the host is at that step of its join, or further."""
    progress = guest.execute("cat /var/lib/nodewright/bootstrap/progress").stdout.partition("/")[0].strip()
    return progress.isdecimal() and int(progress) >= step


@pytest.mark.hosts_long
@pytest.mark.parametrize("steps", [(2, 6), tuple(range(1, 10))])
def test_hosts_without_power_and_killed_controllers_during_a_join_leave_no_half_joined_node(
    pool: Pool, mirror: Mirror, controllers: Run, kubectl: Kubectl, steps: tuple[int, ...]
) -> None:
    apply(kubectl, joining_cluster(mirror))
    for step in steps:
        for name in ("m-1", "m-2"):
            apply(kubectl, machine(name))
        victim = pool.guests["rack1"]
        until(lambda at=step, guest=victim: begun(guest, at))  # type: ignore[misc]
        controllers.stop(signal.SIGKILL)
        victim.stop(patience=0)
        controllers.start()
        victim.boot(pool.lab.payload)
        kubectl.wait("condition=NodeJoined", "machine/m-1", "machine/m-2", timeout=300)
        kubectl.wait("condition=Ready", "node/rack1", "node/rack2", timeout=300)
        claims = [sshpools.claim(guest) for guest in pool.guests.values()]
        holders = [claim["machine_uid"] for claim in claims if claim]
        assert sorted(holders) == sorted(each["metadata"]["uid"] for each in items(kubectl, "machines"))
        assert sorted(node["metadata"]["name"] for node in items(kubectl, "nodes")) == ["rack1", "rack2"]
        kubectl("delete", "machine", "--all", "--wait", "--timeout=300s", timeout=360)
        until(lambda: items(kubectl, "nodes") == [])
        for guest in pool.guests.values():
            is_clean(guest)
