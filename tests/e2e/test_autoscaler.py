"""Fifty pods find no Node: a MachineDeployment grows from nothing, and shrinks to its minimum when they are gone.

On the real plane Kubernetes' own controllers make and place the pods; on the embedded one its binder places them, and
the test makes them. There the autoscaler has the rights of deploy/autoscaler alone, and is killed while the group
grows: no Node is added twice.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from api import names
from hack.program import Kubectl, Program, Run, Up
from hack.realplane import RealPlane
from tests.docs.pages import ROOT
from tests.e2e.manifests import machine_deployment
from tests.e2e.scheduled import scheduled
from tests.realplane import PLANES
from tests.runtime.stub_server import until

pytestmark = [pytest.mark.kubectl, pytest.mark.e2e]

SECONDS = 300.0
PODS, LEFT, LEAST = 50, 4, 2
QUICK = (
    "--scan-interval=1s",
    "--scale-down-unneeded-time=1s",
    "--scale-down-delay-after-add=1s",
    "--scale-down-delay-after-failure=1s",
)


RIGHTS = ("Namespace", "ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")


class Cluster:
    """``made_by_kubernetes``: somebody else makes pods for a Deployment."""

    def __init__(self, autoscaler: Program, kubectl: Kubectl, made_by_kubernetes: bool) -> None:
        self.autoscaler = autoscaler
        self.kubectl = kubectl
        self.made_by_kubernetes = made_by_kubernetes


@pytest.fixture(scope="module", params=(pytest.param("embedded", marks=pytest.mark.slow), PLANES[1]))
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("autoscaler")
    if request.param == "embedded":
        with Up(folder, kubectl_binary, "--in-memory", "--autoscaler", *QUICK) as running:
            yield Cluster(running, running.kubectl, False)
        return
    with (
        scheduled(folder, kubectl_binary) as (plane, kubectl),
        Run(folder, kubectl),
        with_rights_of_its_own(folder / "autoscaler", plane, kubectl) as running,
    ):
        yield Cluster(running, kubectl, True)


def with_rights_of_its_own(
    folder: Path, plane: RealPlane, kubectl: Kubectl, *flags: str, layout: str = "autoscaler"
) -> Run:
    """In a process of its own, with the account and the rights of a folder of deploy/ and no others."""
    folder.mkdir()
    kubectl("apply", "-k", str(ROOT / "deploy" / "namespace"))
    kubectl("apply", "-f", str(ROOT / "deploy" / "rbac" / "kubeconfigs.yaml"))
    election = ROOT / "deploy" / "rbac" / "leader-election.yaml"
    kubectl("apply", "-f", str(election), "--namespace=nodewright-system")
    rendered = [doc for doc in yaml.safe_load_all(kubectl("kustomize", str(ROOT / "deploy" / layout))) if doc]
    wanted = [doc for doc in rendered if doc["kind"] in RIGHTS]
    own = ("nodewright-autoscaler", names.AUTOSCALER_STATUS)
    for rule in (rule for doc in wanted if doc["kind"] == "Role" for rule in doc["rules"]):
        if set(rule.get("resourceNames", ())) == set(own) and any("--cluster=" in flag for flag in flags):
            rule["resourceNames"] = [
                f"{name}.default.prod" for name in own
            ]  # as docs/tasks/workload-clusters.md patches it
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(wanted))
    token = kubectl("create", "token", f"nodewright-{layout}", "--namespace=nodewright-system").strip()
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    path = folder / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return Run(folder, replace(kubectl, kubeconfig=path), "--controllers=autoscaler", *QUICK, *flags)


def group(name: str, least: int, most: int) -> str:
    bounds = {names.AUTOSCALER_MIN_ANNOTATION: str(least), names.AUTOSCALER_MAX_ANNOTATION: str(most)}
    text = machine_deployment(name, least).replace("          bootSeconds", "          cpus: 4\n          bootSeconds")
    labels = "  labels: {cluster.k8s.io/cluster-name: story}\n"
    return text.replace(labels, f"  annotations: {json.dumps(bounds)}\n")


def workload(kind: str, replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    container = {"name": "web", "image": "example.com/web", "resources": {"requests": {"cpu": "500m"}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def run(cluster: Cluster, replicas: int) -> None:
    """So many pods from nothing."""
    kubectl = cluster.kubectl
    kind = "Deployment" if cluster.made_by_kubernetes else "ReplicaSet"
    kubectl("create", "-f", "-", stdin=json.dumps(workload(kind, replicas)))
    if cluster.made_by_kubernetes:
        return
    owner = kubectl.json("get", "replicaset", "web")
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": owner["metadata"]["uid"]}
    template = owner["spec"]["template"]
    meta = {**template["metadata"], "ownerReferences": [{**reference, "controller": True}]}
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "name": f"web-{n}"}, "spec": template["spec"]}
        for n in range(replicas)
    ]
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))


def leave(cluster: Cluster, count: int) -> None:
    """All but ``count`` pods go; those that stay are on as many Nodes as they can be."""
    kubectl = cluster.kubectl
    if cluster.made_by_kubernetes:
        kubectl("scale", "deployment/web", f"--replicas={count}")
        return
    by_node: dict[str, list[str]] = {}
    for pod in kubectl.items("pods"):
        by_node.setdefault(pod["spec"]["nodeName"], []).append(pod["metadata"]["name"])
    kept = [pods[0] for pods in by_node.values()][:count]
    kubectl("delete", "pod", "--wait=false", *(pod for pods in by_node.values() for pod in pods if pod not in kept))


def running(kubectl: Kubectl) -> list[dict[str, Any]]:
    pods = kubectl.items("pods", "-l", "app=web")
    return [pod for pod in pods if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]]


def event_reasons(kubectl: Kubectl) -> set[str]:
    return {event["reason"] for event in kubectl.items("events")}


def size(kubectl: Kubectl, name: str) -> int:
    return int(kubectl.json("get", "md", name)["spec"]["replicas"])


async def test_fifty_pods_grow_a_group_from_nothing_and_it_shrinks_when_they_go(cluster: Cluster) -> None:
    kubectl = cluster.kubectl
    kubectl("apply", "-f", "-", stdin=group("workers", 0, 20))
    run(cluster, PODS)
    if cluster.made_by_kubernetes:
        await until(lambda: size(kubectl, "workers") > 0, SECONDS)
        cluster.autoscaler.stop(signal.SIGKILL)
        cluster.autoscaler.start()
    await until(lambda: len(running(kubectl)) == PODS, SECONDS)
    per_node = Counter(pod["spec"]["nodeName"] for pod in running(kubectl))
    grown = size(kubectl, "workers")
    assert len(per_node) <= grown <= len(per_node) + 1, "no more Nodes than the pods need"
    assert -(-PODS // 8) <= grown <= -(-PODS // 8) + 1, "a Node of 4 cores has room for 8"
    if not cluster.made_by_kubernetes:  # the autoscaler that was killed may have ended before it wrote its Events
        await until(lambda: "TriggeredScaleUp" in event_reasons(kubectl), SECONDS)

    least = LEAST if cluster.made_by_kubernetes else 1
    # The budget refuses every eviction until the deleted pods are gone. Otherwise the autoscaler may evict a pod that
    # the test keeps: the embedded plane recreates none, and a deletion ignores the budget, so no pod would be left.
    kubectl("create", "pdb", "web", "--selector=app=web", f"--min-available={PODS}")
    leave(cluster, LEFT)
    await until(lambda: len(running(kubectl)) == LEFT, SECONDS)
    kubectl("patch", "pdb", "web", "--type=merge", f"--patch={json.dumps({'spec': {'minAvailable': least}})}")
    fewest = LEFT

    def shrunk() -> bool:
        nonlocal fewest
        fewest = min(fewest, len(running(kubectl)))
        return size(kubectl, "workers") == len(kubectl.items("nodes")) == 1

    await until(shrunk, SECONDS)
    assert fewest >= least, "the budget was kept"
    if cluster.made_by_kubernetes:
        await until(lambda: len(running(kubectl)) == LEFT, SECONDS)
    kubectl("delete", "pdb", "web")
    leave(cluster, 0)
    await until(lambda: size(kubectl, "workers") == 0 and not kubectl.items("nodes"), SECONDS)

    status = kubectl("get", "cm", names.AUTOSCALER_STATUS, "-n", "kube-system", "-o", "jsonpath={.data.status}")
    assert 'name: "MachineDeployment/default/workers"' in status
    kubectl("delete", "md", "workers", "--wait", "--timeout=240s", timeout=300)


async def test_explain_says_why_a_pod_waits(cluster: Cluster) -> None:
    kubectl = cluster.kubectl
    kubectl("apply", "-f", "-", stdin=group("small", 0, 2))
    spec = {"containers": [{"name": "c", "image": "example.com/c", "resources": {"requests": {"cpu": "64"}}}]}
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "huge"},
                                                   "spec": spec}))  # fmt: skip
    await until(lambda: "NotTriggerScaleUp" in event_reasons(kubectl), SECONDS)
    told = nodewright(kubectl, "autoscaler", "explain", "pod", "huge", "-n", "default")
    assert "MachineDeployment/default/small: Insufficient cpu" in told
    told = nodewright(kubectl, "autoscaler", "explain", "md", "small", "-n", "default")
    assert "a new Node would offer 4 cores" in told, "its provider was asked"
    kubectl("delete", "pod/huge", "md/small", "--wait=false")


def nodewright(kubectl: Kubectl, *arguments: str) -> str:
    command = [sys.executable, "-m", "nodewright.cli", *arguments, f"--kubeconfig={kubectl.kubeconfig}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
