"""A MachineClass with the stock kubectl: what is wrong with it, how many use it, how many hosts come up at once."""

from __future__ import annotations

import pytest

from hack.program import Kubectl, Program
from tests.e2e.manifests import CLUSTER, machine_set

pytestmark = [pytest.mark.kubectl, pytest.mark.e2e]

CLASS = """
apiVersion: cluster.k8s.io/v1alpha1
kind: MachineClass
metadata: {name: shared}
maxHostsInFlight: 0
providerSpec:
  apiVersion: simulated.nodewright.dev/v1alpha1
  kind: SimulatedMachineConfig
  bootSeconds: 0.1
  cpus: 1
"""


@pytest.fixture(scope="module", autouse=True)
def cluster(up: Program) -> None:
    up.kubectl("apply", "-f", "-", stdin=CLUSTER)


def of_class(name: str, replicas: int) -> str:
    before, _, _ = machine_set(name, replicas).partition("      providerConfig:")
    return f"{before}      providerConfig:\n        valueFrom: {{machineClass: {{name: shared}}}}\n"


def test_a_fault_is_told_and_so_is_that_it_is_mended(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=CLASS.replace("cpus: 1", "cpus: many").replace("shared", "faulty"))
    kubectl.wait("condition=Accepted=False", "machineclass/faulty")
    (said,) = kubectl.json("get", "machineclass", "faulty")["status"]["conditions"]
    assert said["reason"] == "InvalidConfiguration"
    assert "providerSpec.cpus" in said["message"]
    kubectl("apply", "-f", "-", stdin=CLASS.replace("shared", "faulty"))
    kubectl.wait("condition=Accepted", "machineclass/faulty")


def test_its_machines_are_counted_and_wait_for_their_turn(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=CLASS)
    kubectl("apply", "-f", "-", stdin=of_class("turns", 2))
    kubectl.wait("jsonpath={.status.machines}=2", "machineclass/shared")
    for machine in kubectl.items("ma", "-l", "pool=turns"):
        name = machine["metadata"]["name"]
        kubectl.wait("jsonpath={.status.conditions[?(@.type=='Ready')].reason}=ClassHostsInFlight", f"ma/{name}")
    kubectl("patch", "machineclass", "shared", "--type=merge", "-p", '{"maxHostsInFlight": 1}')
    kubectl.wait("jsonpath={.status.readyReplicas}=2", "ms/turns")
