"""What ``create cluster`` and ``delete cluster`` decide from objects: what is missing, what is told, what goes next."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from controllers.kernel.refs import CLUSTER, CONTROL_PLANE, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, Kind
from nodewright.cli.creation import kubeconfig_file
from nodewright.cli.creation.declared import declared
from nodewright.cli.creation.looking import Look
from nodewright.cli.creation.readiness import missing, waits
from nodewright.cli.creation.removing import left_over, next_to_delete
from nodewright.cli.creation.showing import changes
from nodewright.cli.exits import CliError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TRUE, FALSE = {"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False", "reason": "WaitingForNode"}


def obj(kind: Kind, name: str, *, spec: Any = None, status: Any = None, **meta: Any) -> dict[str, Any]:
    full = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1, **meta}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": full,
        "spec": spec or {},
        "status": status or {},
    }


def owned(by: str) -> list[dict[str, Any]]:
    return [{"apiVersion": "cluster.k8s.io/v1alpha1", "kind": "MachineSet", "name": by, "uid": by, "controller": True}]


CONTROL_PLANE_SPEC = {"versions": {"controlPlane": "1.36.3"}}


def seen(*members: tuple[Kind, dict[str, Any]], cluster: dict[str, Any] | None = None) -> Look:
    kinds = (CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE)
    return Look(cluster, {kind: tuple(o for k, o in members if k == kind) for kind in kinds}, None, NOW)


def test_a_machine_and_a_set_are_waited_for_until_they_are_ready() -> None:
    counts = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}
    ready = obj(MACHINE_DEPLOYMENT, "w", spec={"replicas": 2}, status={"observedGeneration": 1, **counts})
    machine = obj(MACHINE, "m", status={"conditions": [TRUE]})
    assert missing({MACHINE_DEPLOYMENT: [ready], MACHINE: [machine]}) == []
    assert missing({MACHINE: [obj(MACHINE, "m")]}) == ["Machine m: has not begun"]
    assert missing({MACHINE: [obj(MACHINE, "m", status={"conditions": [FALSE]})]}) == ["Machine m: WaitingForNode"]
    late = obj(MACHINE_DEPLOYMENT, "w", spec={"replicas": 2}, status=ready["status"], generation=2)
    assert missing({MACHINE_DEPLOYMENT: [late]}) == ["MachineDeployment w: 2 of 2 ready"]
    assert missing({MACHINE_SET: [obj(MACHINE_SET, "old", spec={"replicas": 0}, ownerReferences=owned("w"))]}) == []


@pytest.mark.parametrize(
    ("kind", "spec", "status", "why"),
    [
        ("Deployment", {"replicas": 2}, {"observedGeneration": 1, "updatedReplicas": 2, "availableReplicas": 2}, ""),
        ("Deployment", {}, {"observedGeneration": 1, "updatedReplicas": 1}, "0 of 1 ready"),
        ("Deployment", {}, {}, "its controller has not seen it yet"),
        ("DaemonSet", {}, {"observedGeneration": 1, "desiredNumberScheduled": 0}, ""),
        (
            "DaemonSet",
            {},
            {"observedGeneration": 1, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 1},
            "1 of 3 ready",
        ),
        ("StatefulSet", {}, {"observedGeneration": 1, "updatedReplicas": 1, "readyReplicas": 1}, ""),
        ("CustomResourceDefinition", {}, {"conditions": [{"type": "Established", "status": "True"}]}, ""),
        ("Job", {}, {"conditions": "junk"}, "not Complete"),
        ("ConfigMap", {}, {}, ""),
    ],
)
def test_what_of_an_addon_is_waited_for(kind: str, spec: Any, status: Any, why: str) -> None:
    body = {"kind": kind, "metadata": {"name": "a", "generation": 1}, "spec": spec, "status": status}
    assert waits(body) == why


def test_workers_go_before_control_planes_and_the_cluster_with_the_last() -> None:
    cluster = obj(CLUSTER, "prod")
    plane = obj(MACHINE, "cp", spec=CONTROL_PLANE_SPEC)
    sets = (MACHINE_DEPLOYMENT, obj(MACHINE_DEPLOYMENT, "w"))
    of_set = (MACHINE, obj(MACHINE, "w-0", ownerReferences=owned("w")))
    alone = (MACHINE, obj(MACHINE, "alone"))
    everything = seen(sets, of_set, alone, (MACHINE, plane), cluster=cluster)
    assert [ref.key.name for ref in next_to_delete(everything)] == ["w", "alone"]
    going = (MACHINE, obj(MACHINE, "w-0", ownerReferences=owned("w"), deletionTimestamp="2026-01-01T00:00:00Z"))
    assert next_to_delete(seen(going, (MACHINE, plane), cluster=cluster)) == []
    assert [ref.key.name for ref in next_to_delete(seen((MACHINE, plane), cluster=cluster))] == ["cp", "prod"]
    at_once = next_to_delete(everything, unreachable=True)
    assert [ref.key.name for ref in at_once] == ["prod", "w", "alone", "cp"]


def test_a_control_plane_object_is_waited_for_and_goes_with_the_cluster() -> None:
    counts = {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 2}
    plane = obj(CONTROL_PLANE, "cp", spec={"replicas": 3}, status={"observedGeneration": 1, **counts})
    assert missing({CONTROL_PLANE: [plane]}) == ["ControlPlane cp: 2 of 3 ready"]
    its = (MACHINE, obj(MACHINE, "cp-0", spec=CONTROL_PLANE_SPEC, ownerReferences=owned("cp")))
    worker = (MACHINE, obj(MACHINE, "w"))
    cluster = obj(CLUSTER, "prod")
    assert [ref.key.name for ref in next_to_delete(seen((CONTROL_PLANE, plane), its, worker, cluster=cluster))] == ["w"]
    last = next_to_delete(seen((CONTROL_PLANE, plane), its, cluster=cluster))
    assert [str(ref) for ref in last] == ["ControlPlane default/cp", "Cluster default/prod"]


def test_what_is_left_is_named_with_its_reason() -> None:
    held = {"conditions": [{"type": "Deleting", "status": "True", "reason": "Draining", "message": "pod a/b stays"}]}
    assert left_over(seen((MACHINE, obj(MACHINE, "m", status=held)))) == ["Machine m (pod a/b stays)"]
    assert left_over(seen(cluster=obj(CLUSTER, "prod"))) == ["Cluster prod"]
    assert left_over(seen()) == []


def test_lines_tell_what_is_new_and_what_is_gone() -> None:
    quiet = ("", "", "")
    before = {("Cluster/a",): quiet, ("Cluster/a", "Machine/m"): ("Pending", "", "")}
    after = {
        ("Cluster/a",): quiet,
        ("Cluster/a", "ScalingUp"): ("True", "ScalingUp", "from 0 to 1"),
        ("Cluster/a", "Machine/n"): ("Running", "", ""),
        ("Cluster/a", "Machine/n", "NodeJoined"): ("False", "Joining", "kubeadm join"),
    }
    assert list(changes(before, after)) == [
        "Cluster/a › Machine/n: Running",
        "Machine/n › NodeJoined: False Joining: kubeadm join",
        "Machine/m is gone",
    ]


ONE = "apiVersion: cluster.k8s.io/v1alpha1\nkind: Cluster\nmetadata: {name: prod}\nspec: {}\n"
LONELY = """---
apiVersion: cluster.k8s.io/v1alpha1
kind: Machine
metadata: {name: lonely%s}
spec:
  providerConfig:
    value: {apiVersion: simulated.nodewright.dev/v1alpha1, kind: SimulatedMachineConfig}
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LONELY % "", "they hold: none"),
        (f"{ONE}---\n{ONE.replace('prod', 'other')}", "default/prod, default/other"),
        (ONE + LONELY % "", "Machine default/lonely belongs to no Cluster"),
        (ONE + LONELY % ", labels: {cluster.k8s.io/cluster-name: x}", "belongs to Cluster x"),
        (ONE + LONELY % ", namespace: b, labels: {cluster.k8s.io/cluster-name: prod}", "in another namespace"),
        (ONE.replace("name: prod", "generateName: prod-"), "generateName"),
    ],
)
def test_files_hold_one_cluster_and_what_belongs_to_it(text: str, said: str) -> None:
    with pytest.raises(CliError, match=said):
        declared([("a.yaml", text)])


def test_a_file_that_is_no_kubeconfig_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "k"
    kubeconfig_file.must_be_free(path, None)
    path.write_text("notes of mine")
    with pytest.raises(CliError, match="left as it is"):
        kubeconfig_file.must_be_free(path, b"junk")
    with pytest.raises(CliError, match="folder does not exist"):
        kubeconfig_file.must_be_free(tmp_path / "a" / "b", None)
