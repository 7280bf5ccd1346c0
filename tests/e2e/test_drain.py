"""Machines that go and what is on their Nodes, with real PodDisruptionBudgets and the stock kubectl."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hack.program import Kubectl
from tests.e2e.manifests import machine_set
from tests.runtime.stub_server import until

pytestmark = [pytest.mark.kubectl, pytest.mark.e2e]

SECONDS = 300.0
AGENT = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent"},
    "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "agent", "image": "example.com/agent"}]},
        },
    },
}
RULE = """
apiVersion: cluster.k8s.io/v1alpha1
kind: MachineDrainRule
metadata: {name: leave-caches}
spec:
  drain: {behavior: Skip}
  machines:
    - selector: {matchLabels: {pool: ruled}}
  pods:
    - selector: {matchLabels: {app: cache}}
"""


@pytest.fixture
def clean(kubectl: Kubectl) -> Iterator[Kubectl]:
    """Afterwards nothing is left that another test could trip over."""
    yield kubectl
    kubectl("delete", "pdb,mdr", "--all")
    kubectl("delete", "pod,daemonset", "--all", "--grace-period=0", "--force", "--ignore-not-found")
    kubectl("delete", "ms", "--all", "--cascade=foreground", "--wait")


def one_machine(kubectl: Kubectl, pool: str, *spec: str) -> tuple[str, str]:
    """A MachineSet of one, with lines added to its Machine's spec; names of the Machine and its Node."""
    text = machine_set(pool, 1).replace(
        "\n      versions:", "".join(f"\n      {line}" for line in spec) + "\n      versions:"
    )
    kubectl("apply", "-f", "-", stdin=text)
    kubectl.wait("jsonpath={.status.readyReplicas}=1", f"ms/{pool}")
    (machine,) = kubectl.items("machines", "-l", f"pool={pool}")
    return machine["metadata"]["name"], machine["status"]["nodeRef"]["name"]


def run_pod(kubectl: Kubectl, name: str, node: str, owner: dict[str, Any] | None = None) -> None:
    """A ready pod on that Node, as its kubelet would report it; it ends at once when it is asked to."""
    metadata: dict[str, Any] = {"name": name, "labels": {"app": name.split("-", maxsplit=1)[0]}}
    if owner is not None:
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        metadata["ownerReferences"] = [
            {**reference, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
        ]
    spec = {
        "nodeName": node,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [{"name": "c", "image": "example.com/c"}],
    }
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    kubectl("create", "-f", "-", stdin=json.dumps(body))
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", json.dumps(ready))


def budget(kubectl: Kubectl, app: str, least: int, healthy: int) -> None:
    kubectl("create", "pdb", app, f"--selector=app={app}", f"--min-available={least}")
    kubectl.wait(f"jsonpath={{.status.currentHealthy}}={healthy}", f"pdb/{app}")


def condition(kubectl: Kubectl, machine: str, type_: str) -> dict[str, Any]:
    body = kubectl.json("get", "machine", machine)
    return next((c for c in body["status"]["conditions"] if c["type"] == type_), {})


def machines(kubectl: Kubectl, pool: str) -> set[str]:
    """Those that stay."""
    found = kubectl.items("machines", "-l", f"pool={pool}")
    return {m["metadata"]["name"] for m in found if "deletionTimestamp" not in m["metadata"]}


def pods(kubectl: Kubectl) -> set[str]:
    return {pod["metadata"]["name"] for pod in kubectl.items("pods")}


async def test_a_budget_holds_the_drain_is_named_and_lets_go(clean: Kubectl) -> None:
    kubectl = clean
    machine, node = one_machine(kubectl, "held")
    kubectl("create", "-f", "-", stdin=json.dumps(AGENT))
    run_pod(kubectl, "agent-1", node, kubectl.json("get", "daemonset", "agent"))
    run_pod(kubectl, "web-1", node)
    run_pod(kubectl, "free-1", node)
    budget(kubectl, "web", 1, 1)

    kubectl("scale", "ms/held", "--replicas=0")
    kubectl.wait("condition=Drained=false", f"machine/{machine}")
    await until(lambda: condition(kubectl, machine, "Drained").get("reason") == "DrainBlocked", SECONDS)
    said = condition(kubectl, machine, "Drained")["message"]
    assert "default/web-1 (PodDisruptionBudget default/web, which never allows one" in said
    assert pods(kubectl) == {"agent-1", "web-1"}, "the one that was free to go has gone, and nobody else"
    spec = kubectl.json("get", "node", node)["spec"]
    assert spec["unschedulable"] is True
    assert "nodewright.dev/draining" in [taint["key"] for taint in spec["taints"]]
    kubectl.until("DrainBlocked", "describe", "machine", machine)
    kubectl.until("DrainLoses", "describe", "machine", machine)  # web-1 and free-1: no controller makes them again

    kubectl("patch", "pdb", "web", "--type=merge", "-p", '{"spec":{"minAvailable":0}}')
    kubectl.wait("delete", f"machine/{machine}")
    assert pods(kubectl) == {"agent-1"}
    assert node not in [n["metadata"]["name"] for n in kubectl.items("nodes")]


@pytest.mark.slow
def test_a_budget_that_was_given_its_time_is_passed_over(clean: Kubectl) -> None:
    kubectl = clean
    machine, node = one_machine(kubectl, "timed", "nodeDrainDeleteAfter: 1s")
    run_pod(kubectl, "web-2", node)
    budget(kubectl, "web", 1, 1)
    kubectl("scale", "ms/timed", "--replicas=0")
    kubectl.wait("delete", f"machine/{machine}")
    assert pods(kubectl) == set()


@pytest.mark.slow
def test_a_rule_lets_pods_stay(clean: Kubectl) -> None:
    kubectl = clean
    machine, node = one_machine(kubectl, "ruled")
    kubectl("apply", "-f", "-", stdin=RULE)
    run_pod(kubectl, "cache-1", node)
    run_pod(kubectl, "web-3", node)
    kubectl("scale", "ms/ruled", "--replicas=0")
    kubectl.wait("delete", f"machine/{machine}")
    assert pods(kubectl) == {"cache-1"}


def test_hooks_hold_the_drain_and_the_host(clean: Kubectl) -> None:
    kubectl = clean
    machine, node = one_machine(kubectl, "hooked")
    drain, host = "pre-drain.delete.hook.machine.cluster.x-k8s.io/backup", "pre-terminate.nodewright.dev/detach"
    kubectl("annotate", "machine", machine, f"{drain}=me", f"{host}=me")
    run_pod(kubectl, "web-4", node)
    kubectl("scale", "ms/hooked", "--replicas=0")
    deleting = '{.status.conditions[?(@.type=="Deleting")].reason}'
    kubectl.wait(f"jsonpath={deleting}=WaitingForHook", f"machine/{machine}")
    assert drain in condition(kubectl, machine, "Deleting")["message"]
    assert pods(kubectl) == {"web-4"}
    kubectl("annotate", "machine", machine, f"{drain}-")
    kubectl.wait("condition=Drained", f"machine/{machine}")
    kubectl.wait(f"jsonpath={deleting}=WaitingForHook", f"machine/{machine}")
    assert pods(kubectl) == set()
    assert kubectl.json("get", "node", node)["metadata"]["name"] == node
    kubectl("annotate", "machine", machine, f"{host}-")
    kubectl.wait("delete", f"machine/{machine}")


@pytest.mark.slow
async def test_a_failed_machine_is_preserved_and_replaced(clean: Kubectl) -> None:
    kubectl = clean
    never_boots = machine_set("kept", 1).replace("updates: InPlace", "bootFailureRate: 1")
    kubectl("apply", "-f", "-", stdin=never_boots)
    kubectl.wait("jsonpath={.status.errorReason}=HostFailed", "machine", "-l", "pool=kept")
    (name,) = machines(kubectl, "kept")
    kubectl("annotate", "machine", name, "nodewright.dev/preserve-until=2099-01-01T00:00:00Z")
    await until(lambda: len(machines(kubectl, "kept")) == 2, SECONDS)
    kubectl("scale", "ms/kept", "--replicas=0")
    await until(lambda: machines(kubectl, "kept") == {name}, SECONDS)
    kubectl("annotate", "machine", name, "--overwrite", "nodewright.dev/preserve-until=2020-01-01T00:00:00Z")
    kubectl.wait("delete", f"machine/{name}")
