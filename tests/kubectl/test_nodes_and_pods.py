"""What operators do to Nodes: cordon, taint, drain past a disruption budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kubectl.manifests import budget, node, owned_by, pod, replicaset
from tests.kubectl.terminal import Terminal


@pytest.fixture
def host(kubectl: Terminal) -> Iterator[str]:
    """A Ready Node of its own for each test."""
    name = f"host-{kubectl.namespace}"
    kubectl.create(node(name))
    yield name
    kubectl("delete", "node", name)


def evictable(kubectl: Terminal, *pods: dict[str, Any]) -> None:
    """Create Pods that belong to a ReplicaSet."""
    kubectl.create(replicaset("rs"))
    owner = kubectl.read("replicaset", "rs")
    kubectl.create(*[owned_by(owner, pod) for pod in pods])


def taints(kubectl: Terminal, host: str) -> set[tuple[str, str, str]]:
    """Give the taints that have a value: a kube-apiserver puts one without on new Nodes."""
    found = kubectl.read("node", host)["spec"].get("taints", [])
    return {(taint["key"], taint["value"], taint["effect"]) for taint in found if "value" in taint}


def test_cordon_and_uncordon(kubectl: Terminal, host: str) -> None:
    assert "cordoned" in kubectl("cordon", host).out
    assert kubectl.read("node", host)["spec"]["unschedulable"] is True
    assert "SchedulingDisabled" in kubectl("get", "node", host).out
    assert "uncordoned" in kubectl("uncordon", host).out
    assert "unschedulable" not in kubectl.read("node", host)["spec"]


def test_taints_come_and_go_one_by_one(kubectl: Terminal, host: str) -> None:
    kubectl("taint", "node", host, "a=1:NoSchedule")
    kubectl("taint", "node", host, "b=2:NoExecute")
    kubectl("taint", "node", host, "a=3:NoSchedule", "--overwrite")
    assert taints(kubectl, host) == {("a", "3", "NoSchedule"), ("b", "2", "NoExecute")}
    kubectl("taint", "node", host, "a-")
    assert taints(kubectl, host) == {("b", "2", "NoExecute")}


def test_drain_evicts_the_pods_of_one_node(kubectl: Terminal, host: str, kubelets: None) -> None:
    evictable(kubectl, pod("here", host, app="x"), pod("there", "elsewhere", app="x"))
    assert "drained" in kubectl("drain", host, "--timeout=120s").out
    assert kubectl("get", "pods", "-o", "name").lines == ["pod/there"]
    assert kubectl.read("node", host)["spec"]["unschedulable"] is True


def test_drain_waits_for_a_budget_that_forbids_and_goes_on_when_it_allows(
    kubectl: Terminal, host: str, kubelets: None
) -> None:
    evictable(kubectl, pod("guarded", host, app="x"))
    running = '{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}'
    kubectl("patch", "pod", "guarded", "--subresource=status", "-p", running)
    kubectl.create(budget("guard", 1, app="x"))
    kubectl("wait", "--for=jsonpath={.status.currentHealthy}=1", "pdb/guard", "--timeout=120s")
    complaint = "Cannot evict pod as it would violate the pod's disruption budget"
    with kubectl.running("drain", host, "--timeout=120s") as draining:
        assert draining.stderr is not None
        assert any(complaint in line for line in draining.stderr)
        kubectl("patch", "pdb", "guard", "--type=merge", "-p", '{"spec": {"minAvailable": 0}}')
        assert draining.wait(180) == 0
    assert kubectl("get", "pods", "-o", "name").out == ""


def test_a_budget_shows_what_it_allows(kubectl: Terminal, host: str, controllers: None) -> None:
    kubectl.create(pod("one", host, app="x"), pod("two", host, app="x"))
    for name in ("one", "two"):
        ready = '{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}'
        kubectl("patch", "pod", name, "--subresource=status", "-p", ready)
    kubectl("create", "pdb", "guard", "--selector=app=x", "--min-available=1")
    kubectl("wait", "--for=jsonpath={.status.disruptionsAllowed}=1", "pdb/guard", "--timeout=120s")
    headings, row = kubectl("get", "pdb", "guard").rows
    assert headings[:2] == ["NAME", "MIN"]
    assert row[:4] == ["guard", "1", "N/A", "1"]


def test_pods_are_listed_by_node(kubectl: Terminal, host: str) -> None:
    kubectl.create(pod("here", host), pod("there", "elsewhere"))
    found = kubectl("get", "pods", "--field-selector", f"spec.nodeName={host}", "-o", "name").lines
    assert found == ["pod/here"]
    kubectl("delete", "pods", "--all", "--grace-period=0", "--force")


def test_logs_are_not_there_and_the_server_says_so(kubectl: Terminal, host: str, kubelets: None) -> None:
    kubectl.create(pod("here", host))
    assert "could not find the requested resource" in kubectl.fails("logs", "here")
    kubectl("delete", "pod", "here", "--now")
