"""MachineHealthCheck with the stock kubectl: a sick Machine is replaced, and too many at once are not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hack.program import Kubectl, Up
from tests.e2e.manifests import CLUSTER, machine_set

pytestmark = [pytest.mark.kubectl, pytest.mark.e2e]

READY_UNKNOWN = '- {type: KernelDeadlock, status: "True", timeout: 1s}'
"""A condition that node-problem-detector would set: the kubelets don't write it, so it stays as the test sets it."""


def health_check(pool: str, **spec: Any) -> str:
    extra = "\n".join(f"  {name}: {json.dumps(value)}" for name, value in spec.items())
    return f"""
apiVersion: cluster.k8s.io/v1alpha1
kind: MachineHealthCheck
metadata:
  name: {pool}
spec:
  selector:
    matchLabels: {{pool: {pool}}}
  unhealthyConditions:
  {READY_UNKNOWN}
{extra}
"""


@pytest.fixture(scope="module", autouse=True)
def cluster(up: Up) -> None:
    up.kubectl("apply", "-f", "-", stdin=CLUSTER)


def a_pool(kubectl: Kubectl, name: str, replicas: int, **spec: Any) -> list[dict[str, Any]]:
    """A MachineSet, all Ready, and a check of it that has seen them all; its Machines."""
    kubectl("apply", "-f", "-", stdin=machine_set(name, replicas))
    kubectl("apply", "-f", "-", stdin=health_check(name, **spec))
    kubectl.wait(f"jsonpath={{.status.readyReplicas}}={replicas}", f"ms/{name}")
    kubectl.wait(f"jsonpath={{.status.currentHealthy}}={replicas}", f"mhc/{name}")
    return kubectl.items("ma", "-l", f"pool={name}")


def break_node(kubectl: Kubectl, machine: dict[str, Any]) -> None:
    said = {
        "type": "KernelDeadlock",
        "status": "True",
        "reason": "TaskHung",
        "message": "blocked for more than 120 seconds",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    }
    patch = json.dumps({"status": {"conditions": [said]}})
    name = machine["status"]["nodeRef"]["name"]
    kubectl("patch", "node", name, "--subresource=status", "--type=strategic", "-p", patch)


def condition(obj: dict[str, Any], type_: str) -> dict[str, Any]:
    return next((c for c in obj["status"].get("conditions", []) if c["type"] == type_), {})


def test_a_machine_whose_node_is_sick_is_replaced(kubectl: Kubectl) -> None:
    sick, *well = a_pool(kubectl, "healing", 3)
    break_node(kubectl, sick)
    kubectl.wait("delete", f"ma/{sick['metadata']['name']}")
    kubectl.wait("jsonpath={.status.currentHealthy}=3", "mhc/healing")
    kubectl.until("nodewright.dev/remediation-for", "get", "ma", "-l", "pool=healing", "-o", "yaml")
    after = {m["metadata"]["uid"]: m for m in kubectl.items("ma", "-l", "pool=healing")}
    assert {m["metadata"]["uid"] for m in well} < after.keys()
    (heir,) = [m for uid, m in after.items() if uid not in {m["metadata"]["uid"] for m in well}]
    place = json.loads(heir["metadata"]["annotations"]["nodewright.dev/remediation-for"])
    assert place["machine"] == sick["metadata"]["name"]


@pytest.mark.slow
def test_a_machine_that_a_person_calls_sick_is_replaced(kubectl: Kubectl) -> None:
    sick, _ = a_pool(kubectl, "asked", 2)
    name = sick["metadata"]["name"]
    kubectl("annotate", f"ma/{name}", "cluster.x-k8s.io/remediate-machine=")
    kubectl.wait("delete", f"ma/{name}")
    kubectl.wait("jsonpath={.status.readyReplicas}=2", "ms/asked")


def test_too_many_sick_machines_are_called_so_and_kept(kubectl: Kubectl) -> None:
    machines = a_pool(kubectl, "meltdown", 4, maxUnhealthy="25%")
    kubectl("annotate", "ms/meltdown", "nodewright.dev/paused=until-both-are-broken")
    for sick in machines[:2]:
        break_node(kubectl, sick)
    kubectl.wait("condition=RemediationAllowed=False", "mhc/meltdown")
    kubectl("annotate", "ms/meltdown", "nodewright.dev/paused-")
    for sick in machines[:2]:
        kubectl.wait("condition=HealthCheckSucceeded=False", f"ma/{sick['metadata']['name']}")
    check = kubectl.json("get", "mhc", "meltdown")
    assert condition(check, "RemediationAllowed")["reason"] == "TooManyUnhealthy"
    assert check["status"]["remediationsAllowed"] == 0
    present = {m["metadata"]["uid"] for m in kubectl.items("ma", "-l", "pool=meltdown")}
    assert present == {m["metadata"]["uid"] for m in machines}


@pytest.mark.slow
def test_a_skipped_machine_is_left_alone(kubectl: Kubectl) -> None:
    skipped, other = a_pool(kubectl, "skipped", 2)
    kubectl("annotate", f"ma/{skipped['metadata']['name']}", "cluster.x-k8s.io/skip-remediation=")
    kubectl.wait("jsonpath={.status.expectedMachines}=1", "mhc/skipped")
    break_node(kubectl, skipped)
    break_node(kubectl, other)
    kubectl.wait("delete", f"ma/{other['metadata']['name']}")
    found = kubectl.json("get", "ma", skipped["metadata"]["name"])
    assert found["metadata"]["uid"] == skipped["metadata"]["uid"]
    assert "deletionTimestamp" not in found["metadata"]
