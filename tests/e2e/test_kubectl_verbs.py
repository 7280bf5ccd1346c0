"""Every kubectl verb that a person uses on Machines, with our own kinds and controllers behind it."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import pytest

from hack.program import Kubectl, Program
from tests.e2e.manifests import CLUSTER, machine_deployment, machine_set

pytestmark = [pytest.mark.kubectl, pytest.mark.e2e]


@pytest.fixture(scope="module", autouse=True)
def pool(up: Program) -> None:
    """A Cluster with a MachineSet of two and a MachineDeployment of one, all Ready."""
    for text in (CLUSTER, machine_set("pets", 2), machine_deployment("herd", 1)):
        up.kubectl("apply", "-f", "-", stdin=text)
    up.kubectl.wait("jsonpath={.status.readyReplicas}=2", "ms/pets")
    up.kubectl.wait("jsonpath={.status.availableReplicas}=1", "md/herd")


def _staying(kubectl: Kubectl, pool: str = "pets") -> dict[str, str]:
    """Name → uid, without those that another test has scaled away and that may still be going."""
    found = (m["metadata"] for m in kubectl.items("ma", "-l", f"pool={pool}"))
    return {meta["name"]: meta["uid"] for meta in found if "deletionTimestamp" not in meta}


def _machine(kubectl: Kubectl, pool: str = "pets") -> str:
    return next(iter(_staying(kubectl, pool)))


def test_the_kubeconfig_is_private(up: Program) -> None:
    assert stat.S_IMODE(up.kubeconfig.stat().st_mode) == 0o600


def test_get_prints_our_columns(kubectl: Kubectl) -> None:
    table = kubectl("get", "machines")
    header = table.splitlines()[0].split()
    assert {"NAME", "PHASE", "PROVIDERID", "NODE", "AGE"} <= set(header)
    assert "Running" in table
    assert "pets" in kubectl("get", "ms,md,cl")


def test_short_names_and_the_category_work(kubectl: Kubectl) -> None:
    assert _machine(kubectl) in kubectl("get", "nodewright")
    assert kubectl("get", "ma", "-o", "name").startswith("machine.cluster.k8s.io/")


def test_get_yaml_shows_the_whole_object(kubectl: Kubectl) -> None:
    text = kubectl("get", "machine", _machine(kubectl), "-o", "yaml")
    for part in ("providerID: simulated://", "nodeRef:", "type: Ready", "machine.cluster.k8s.io"):
        assert part in text


def test_watch_shows_a_machine_come(up: Program) -> None:
    kubectl = up.kubectl
    command = [kubectl.binary, f"--kubeconfig={kubectl.kubeconfig}", f"--cache-dir={kubectl.cache}"]
    watching = subprocess.Popen(
        [*command, "get", "ma", "-l", "pool=watched", "-w", "--no-headers"], stdout=subprocess.PIPE, text=True
    )
    try:
        kubectl("apply", "-f", "-", stdin=machine_set("watched", 1))
        assert watching.stdout is not None
        line = watching.stdout.readline()
        assert line.startswith("watched-")
    finally:
        watching.kill()
        watching.communicate()
        kubectl("delete", "ms/watched", "--wait", "--cascade=foreground")


def test_explain_knows_our_fields(kubectl: Kubectl) -> None:
    text = kubectl("explain", "machinedeployment.spec.strategy.rollingUpdate")
    assert "maxSurge" in text
    assert "maxUnavailable" in text
    assert "kubelet" in kubectl("explain", "machine.spec.versions")


def test_describe_tells_conditions_and_events(kubectl: Kubectl) -> None:
    text = kubectl("describe", "machineset", "pets")
    assert "Conditions:" in text
    assert "Events:" in text


@pytest.mark.parametrize("what", ["machineset/pets", "machinedeployment/herd"])
def test_scale_up_and_down(kubectl: Kubectl, what: str) -> None:
    before = int(kubectl("get", what, "-o", "jsonpath={.spec.replicas}"))
    for replicas in (before + 1, before):
        kubectl("scale", what, f"--replicas={replicas}")
        kubectl.wait(f"jsonpath={{.status.readyReplicas}}={replicas}", what)
        kubectl.wait(f"jsonpath={{.status.replicas}}={replicas}", what)


def test_the_scale_subresource_carries_a_selector(kubectl: Kubectl) -> None:
    path = "/apis/cluster.k8s.io/v1alpha1/namespaces/default/machinesets/pets/scale"
    scale = json.loads(kubectl("get", "--raw", path))
    assert scale["status"]["selector"] == "pool=pets"


def test_edit_upgrades_a_kubelet(up: Program, tmp_path: Path) -> None:
    kubectl, name = up.kubectl, _machine(up.kubectl)
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/kubelet: 1.33.1/kubelet: 1.33.7/" "$1"\n')
    editor.chmod(0o700)
    done = kubectl.run("edit", "machine", name, env={"EDITOR": str(editor)})
    assert done.code == 0, done.err
    kubectl.wait("jsonpath={.status.versions.kubelet}=v1.33.7", f"machine/{name}")


def test_server_side_apply_names_the_owner_of_a_conflict(kubectl: Kubectl) -> None:
    text = machine_set("applied", 0)
    kubectl("apply", "--server-side", "--field-manager=first", "-f", "-", stdin=text)
    refused = kubectl.fails(
        "apply", "--server-side", "--field-manager=second", "-f", "-", stdin=text.replace("replicas: 0", "replicas: 1")
    )
    assert '"first"' in refused
    assert ".spec.replicas" in refused
    kubectl("apply", "--server-side", "--field-manager=second", "--force-conflicts", "-f", "-", stdin=text)
    kubectl("delete", "ms/applied", "--wait")


def test_label_and_annotate(kubectl: Kubectl) -> None:
    name = _machine(kubectl)
    kubectl("label", "machine", name, "rack=7")
    assert kubectl.items("ma", "-l", "rack=7")[0]["metadata"]["name"] == name
    kubectl("annotate", "machine", name, "note=kept")
    kubectl("label", "machine", name, "rack-")
    assert kubectl.items("ma", "-l", "rack") == []


def test_the_annotated_machine_is_the_first_to_go(kubectl: Kubectl) -> None:
    kubectl("scale", "ms/pets", "--replicas=3")
    kubectl.wait("jsonpath={.status.readyReplicas}=3", "ms/pets")
    chosen = _machine(kubectl)
    kubectl("annotate", "machine", chosen, "cluster.k8s.io/delete-machine=yes")
    kubectl("scale", "ms/pets", "--replicas=2")
    kubectl.wait("delete", f"machine/{chosen}")
    kubectl.wait("jsonpath={.status.replicas}=2", "ms/pets")
    assert len(_staying(kubectl)) == 2


def test_cordon_and_drain_a_node(kubectl: Kubectl) -> None:
    node = kubectl.json("get", "machine", _machine(kubectl, "herd"))["status"]["nodeRef"]["name"]
    kubectl("cordon", node)
    assert kubectl.json("get", "node", node)["spec"]["unschedulable"] is True
    kubectl("drain", node, "--ignore-daemonsets", "--force", "--timeout=120s")
    kubectl("uncordon", node)
    assert "unschedulable" not in kubectl.json("get", "node", node)["spec"]


def test_a_deleted_machine_is_replaced_and_leaves_nothing(kubectl: Kubectl) -> None:
    gone = kubectl.json("get", "machine", _machine(kubectl))
    kubectl("delete", "machine", gone["metadata"]["name"], "--wait")
    assert kubectl.run("get", "node", gone["status"]["nodeRef"]["name"]).code != 0
    kubectl.wait("jsonpath={.status.readyReplicas}=2", "ms/pets")
    names = {m["metadata"]["name"] for m in kubectl.items("ma", "-l", "pool=pets")}
    assert gone["metadata"]["name"] not in names


def test_labels_reach_the_nodes_without_a_rollout(kubectl: Kubectl) -> None:
    before = _staying(kubectl, "herd")
    patch = '{"spec":{"template":{"spec":{"metadata":{"labels":{"tier":"herd","rack":"9"}}}}}}'
    kubectl("patch", "md", "herd", "--type=merge", "-p", patch)
    node = kubectl.json("get", "machine", _machine(kubectl, "herd"))["status"]["nodeRef"]["name"]
    kubectl.wait("jsonpath={.metadata.labels.rack}=9", f"node/{node}")
    assert _staying(kubectl, "herd") == before
