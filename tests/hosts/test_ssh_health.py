"""Machines of a pool on real hosts with real kubelets: pods move once in an upgrade, a host that hangs is rebooted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hack.hosts import files
from hack.hosts.guests import Guest
from hack.hosts.lab import Lab
from hack.hosts.mirror import Mirror
from hack.program import Kubectl
from tests.hosts.joining import BEFORE, VERSION, apply, items, joining_cluster, until
from tests.hosts.sshpools import POOL, Pool
from tests.hosts.test_ssh import controllers, is_clean, kubectl, machine, mirror, plane, upgrade
from tests.hosts.test_ssh_in_place import is_ready, joined, taking_pods

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]
__all__ = ["controllers", "kubectl", "mirror", "plane"]
PODS = 6
CREATED = ("get", "events", "--field-selector=involvedObject.kind=ReplicaSet,reason=SuccessfulCreate", "-o=name")


@pytest.fixture(scope="module")
def pool(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    made = Pool(lab, tmp_path_factory.mktemp("keys"), ["rack1", "rack2"])
    yield made
    made.remove()


def workload() -> dict[str, Any]:
    """Pods without a budget, which run wherever there is a Node."""
    container = {"name": "main", "image": files.PAUSE_IMAGE, "imagePullPolicy": "Never"}
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
              "labelSelector": {"matchLabels": {"app": "web"}}}  # fmt: skip
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": PODS,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [container],
                    "topologySpreadConstraints": [spread],
                },
            },
        },
    }


def running_on(kubectl: Kubectl) -> dict[str, str]:
    """UID → Node of the pods that run and stay."""
    return {
        pod["metadata"]["uid"]: pod["spec"]["nodeName"]
        for pod in items(kubectl, "pods")
        if pod["status"]["phase"] == "Running" and not pod["metadata"].get("deletionTimestamp")
    }


def ended(kubectl: Kubectl, pool: Pool) -> None:
    kubectl("delete", "machine", "--all", "--wait", "--timeout=300s", timeout=360)
    for guest in pool.guests.values():
        is_clean(guest)


def test_pods_of_a_host_whose_kubelet_is_edited_move_once_and_it_is_not_booted(
    pool: Pool, mirror: Mirror, kubectl: Kubectl
) -> None:
    apply(kubectl, joining_cluster(mirror, older=True))
    for name in ("edited", "other"):
        apply(kubectl, machine(name, BEFORE))
    guest, before = joined(kubectl, pool, "edited")
    joined(kubectl, pool, "other")
    until(lambda: taking_pods(kubectl) == 2)
    apply(kubectl, workload())
    until(lambda: len(running_on(kubectl)) == PODS, 300)
    had = running_on(kubectl)
    moving = {uid for uid, node in had.items() if node == guest.name}
    assert 0 < len(moving) < PODS
    until(lambda: len(kubectl(*CREATED).split()) == PODS)

    apply(kubectl, joining_cluster(mirror))
    upgrade(kubectl, "edited", VERSION)
    kubectl.wait(f"jsonpath={{.status.nodeInfo.kubeletVersion}}={VERSION}", f"node/{guest.name}", timeout=360)
    kubectl.wait("condition=UpToDate", "machine/edited", timeout=300)
    until(lambda: taking_pods(kubectl) == 2)
    until(lambda: len(running_on(kubectl)) == PODS)
    after = kubectl.json("get", "node", guest.name)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["nodeInfo"]["bootID"] == before["status"]["nodeInfo"]["bootID"]
    stayed = had.keys() & running_on(kubectl).keys()
    assert stayed == had.keys() - moving, "pods of the other host run on"
    until(lambda: len(kubectl(*CREATED).split()) >= PODS + len(moving))
    assert len(kubectl(*CREATED).split()) == PODS + len(moving), "each pod of the host was made anew once"
    kubectl("delete", "deployment", "web", "--cascade=foreground", "--wait")
    ended(kubectl, pool)


def has_drifted(machine: dict[str, Any]) -> bool:
    return any(each["type"] == "HostDrifted" for each in machine["status"]["conditions"])


def check() -> dict[str, Any]:
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "MachineHealthCheck",
        "metadata": {"name": "reboots", "namespace": "default"},
        "spec": {
            "clusterName": "here",
            "selector": {"matchLabels": {"cluster.k8s.io/cluster-name": "here"}},
            "unhealthyConditions": [{"type": "Ready", "status": "Unknown", "timeout": "5s"}],
            "unhealthyMachineConditions": [{"type": "HostDrifted", "status": "True", "timeout": "5s"}],
            "remediationStrategy": {"reboot": {"maxAttempts": 2, "timeout": "10m"}},
        },
    }


def test_a_kubelet_that_somebody_stopped_is_said_on_its_machine_and_the_host_is_rebooted_once(
    pool: Pool, mirror: Mirror, kubectl: Kubectl
) -> None:
    apply(kubectl, joining_cluster(mirror))
    apply(kubectl, machine("sick"))
    guest, before = joined(kubectl, pool, "sick")
    uid = kubectl.json("get", "machine", "sick")["metadata"]["uid"]
    guest.execute("systemctl stop kubelet")
    kubectl.wait("condition=HostDrifted", "machine/sick", timeout=660)
    apply(kubectl, check())
    until(lambda: not guest.is_running(), 300)
    power_on(pool, guest)
    kubectl.wait("condition=HostRebooted", "machine/sick", timeout=300)
    kubectl.wait("condition=HealthCheckSucceeded", "machine/sick", timeout=300)
    boot = before["status"]["nodeInfo"]["bootID"]
    until(lambda: kubectl.json("get", "node", guest.name)["status"]["nodeInfo"]["bootID"] != boot)
    until(lambda: is_ready(kubectl.json("get", "node", guest.name)))
    node = kubectl.json("get", "node", guest.name)
    assert node["metadata"]["uid"] == before["metadata"]["uid"]
    until(lambda: not has_drifted(kubectl.json("get", "machine", "sick")), 660)
    body = kubectl.json("get", "machine", "sick")
    assert body["metadata"]["uid"] == uid, "it was not replaced"
    assert body["status"]["reboot"]["number"] == 1
    kubectl("delete", "mhc", "reboots")
    ended(kubectl, pool)


def test_a_kubelet_that_somebody_stopped_is_started_again_where_the_pool_says_so(
    pool: Pool, mirror: Mirror, kubectl: Kubectl
) -> None:
    apply(kubectl, joining_cluster(mirror))
    apply(kubectl, machine("stopped"))
    guest, before = joined(kubectl, pool, "stopped")
    kubectl("patch", "sshhostpool", POOL, "--type=merge", '--patch={"spec":{"kubeletStartsPerHour":2}}')
    guest.execute("systemctl stop kubelet")
    until(lambda: guest.execute("systemctl is-active kubelet").stdout.strip() == "active", 660)
    until(lambda: guest.execute("test -s /var/lib/nodewright/ssh/starts").returncode == 0)
    assert guest.execute("wc -l < /var/lib/nodewright/ssh/starts").stdout.strip() == "1"
    until(lambda: is_ready(kubectl.json("get", "node", guest.name)), 300)
    after = kubectl.json("get", "node", guest.name)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["nodeInfo"]["bootID"] == before["status"]["nodeInfo"]["bootID"]
    kubectl("patch", "sshhostpool", POOL, "--type=merge", '--patch={"spec":{"kubeletStartsPerHour":null}}')
    ended(kubectl, pool)


def power_on(pool: Pool, guest: Guest) -> None:
    """A host of the lab has to be started again by somebody."""
    guest.boot(pool.lab.payload)
    guest.wait_booted()
