"""KEP-3's own story, told with the stock kubectl from declaration to deletion."""

from __future__ import annotations

from typing import Any

import pytest

from hack.program import Kubectl
from tests.e2e.manifests import CLUSTER, machine_deployment, machine_set

pytestmark = [pytest.mark.e2e, pytest.mark.kubectl]


def _kubelet_of(kubectl: Kubectl, machine: dict[str, Any]) -> str:
    node = kubectl.json("get", "node", machine["status"]["nodeRef"]["name"])
    version: str = node["status"]["nodeInfo"]["kubeletVersion"]
    return version


def _ready_machines(kubectl: Kubectl, pool: str) -> list[dict[str, Any]]:
    return kubectl.items("machines", "-l", f"pool={pool}")


def _upgrade_one(kubectl: Kubectl, pool: str, version: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Edit the first Machine of ``pool`` and wait until its Node runs ``version``; the Machine before and after."""
    before = _ready_machines(kubectl, pool)[0]
    name = before["metadata"]["name"]
    kubectl("patch", "machine", name, "--type=merge", "-p", f'{{"spec":{{"versions":{{"kubelet":"{version}"}}}}}}')
    kubectl.wait(f"jsonpath={{.status.versions.kubelet}}=v{version}", f"machine/{name}")
    kubectl.wait("condition=Ready", f"machine/{name}")
    return before, kubectl.json("get", "machine", name)


def test_the_story_of_kep_3(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=CLUSTER)
    kubectl("apply", "-f", "-", stdin=machine_set("pets", 2))
    kubectl("apply", "-f", "-", stdin=machine_set("cattle", 1, updates="Replace"))
    kubectl("apply", "-f", "-", stdin=machine_deployment("herd", 3, updates="Replace"))

    # Declared: hosts turn into Ready Nodes.
    kubectl.wait("jsonpath={.status.readyReplicas}=2", "machineset/pets")
    kubectl.wait("jsonpath={.status.readyReplicas}=1", "machineset/cattle")
    kubectl.wait("jsonpath={.status.availableReplicas}=3", "machinedeployment/herd")
    assert len(kubectl.items("nodes")) == 6

    # Grow to 5.
    kubectl("scale", "machineset/pets", "--replicas=5")
    kubectl.wait("jsonpath={.status.readyReplicas}=5", "machineset/pets")
    assert len(kubectl.items("nodes", "-l", "tier=pets")) == 5

    # One kubelet upgraded in place: the same host, the same Node.
    before, after = _upgrade_one(kubectl, "pets", "1.34.0")
    assert after["spec"]["providerID"] == before["spec"]["providerID"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert _kubelet_of(kubectl, after) == "v1.34.0"

    # One by replacement: the same Machine, another host.
    before, after = _upgrade_one(kubectl, "cattle", "1.34.0")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["providerID"] != before["spec"]["providerID"]
    assert _kubelet_of(kubectl, after) == "v1.34.0"

    # Roll all of a MachineDeployment.
    first = {m["metadata"]["name"] for m in _ready_machines(kubectl, "herd")}
    template = '{"spec":{"template":{"spec":{"versions":{"kubelet":"1.34.0"}}}}}'
    kubectl("patch", "machinedeployment", "herd", "--type=merge", "-p", template)
    _rolled(kubectl, "1.34.0")
    second = {m["metadata"]["name"] for m in _ready_machines(kubectl, "herd")}
    assert not first & second

    # Roll back: the MachineSet that was kept is used again, no third one is made.
    sets = {s["metadata"]["uid"] for s in kubectl.items("machinesets", "-l", "pool=herd")}
    back = template.replace("1.34.0", "1.33.1")
    kubectl("patch", "machinedeployment", "herd", "--type=merge", "-p", back)
    _rolled(kubectl, "1.33.1")
    assert {s["metadata"]["uid"] for s in kubectl.items("machinesets", "-l", "pool=herd")} == sets

    # Delete, and nothing is left behind.
    kubectl(
        "delete", "machinedeployment/herd", "machineset/pets", "machineset/cattle", "--cascade=foreground", "--wait"
    )
    kubectl("delete", "cluster/story", "--wait")
    for kind in ("machines", "machinesets", "machinedeployments", "nodes"):
        assert kubectl.items(kind) == []


def _rolled(kubectl: Kubectl, version: str) -> None:
    """Wait until every Machine of the herd runs ``version`` and no other is left."""
    generation = kubectl.json("get", "machinedeployment", "herd")["metadata"]["generation"]
    kubectl.wait(f"jsonpath={{.status.observedGeneration}}={generation}", "machinedeployment/herd")
    kubectl.wait("jsonpath={.status.updatedReplicas}=3", "machinedeployment/herd")
    kubectl.wait("condition=RollingOut=false", "machinedeployment/herd")
    kubectl.wait("jsonpath={.status.replicas}=3", "machinedeployment/herd")
    kubectl.wait("jsonpath={.status.availableReplicas}=3", "machinedeployment/herd")
    for machine in _ready_machines(kubectl, "herd"):
        if machine["metadata"].get("deletionTimestamp"):
            kubectl.wait("delete", f"machine/{machine['metadata']['name']}")
    versions = {m["spec"]["versions"]["kubelet"] for m in _ready_machines(kubectl, "herd")}
    assert versions == {version}
