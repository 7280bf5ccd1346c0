"""An autoscaler scales our objects: by our gRPC gateway over mutual TLS, and by its own provider ``clusterapi``.

On a real control plane with kube-scheduler. It is the upstream Cluster Autoscaler if that is there
(CLUSTER_AUTOSCALER), else the stand-in that plays its calls (``hack.autoscaler``).
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from api import names
from hack import autoscaler
from hack.binaries import BinaryMissing
from hack.children import free_ports
from hack.program import Kubectl
from hack.realplane import CONTROLLER_MANAGER, SCHEDULER, SERVERS, RealPlane
from hack.scaling import Scaling
from nodewright.crds import load_crds
from tests.realplane import REAL, lacking, require

pytestmark = [*REAL, pytest.mark.kubectl]

CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "disruption-controller",
    "deployment-controller",
    "replicaset-controller",
)
SECONDS = 300.0
PER_NODE = 2
"""Pods of the workload that one Node takes."""


@pytest.fixture(scope="module", params=["externalgrpc", "clusterapi"])
def scaling(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Any
) -> Iterator[Scaling]:
    require((*SERVERS, CONTROLLER_MANAGER, SCHEDULER))
    try:
        autoscaler.ensure()
    except BinaryMissing as missing:
        lacking(str(missing))
    folder = tmp_path_factory.mktemp(request.param)
    with RealPlane(folder / "plane", controller_manager=True, scheduler=True, controllers=CONTROLLERS) as plane:
        kubectl = Kubectl(kubectl_binary, plane.kubeconfig, folder / "cache")
        kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": load_crds()}))
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s", timeout=240)
        for part in (CONTROLLER_MANAGER,):  # the garbage collector looks for new kinds at its start
            plane.stop(part)
            plane.start(part)
        (port,) = free_ports(1)
        with Scaling(folder, kubectl, request.param, port) as running:
            yield running


@pytest.fixture
def kubectl(scaling: Scaling) -> Iterator[Kubectl]:
    """Afterwards nothing is left: no workload, no group, no Machine, no Node."""
    yield scaling.kubectl
    scaling.kubectl("delete", "deployment", "--all", "--wait")
    scaling.kubectl("delete", "md,ms", "--all", "--cascade=foreground", "--wait", "--timeout=240s", timeout=300)
    until(scaling, lambda: not scaling.kubectl.items("ma") and not scaling.kubectl.items("nodes"), "an empty cluster")


def until(scaling: Scaling, holds: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            state = scaling.kubectl("get", "md,ms,ma,nodes,pods", "-o", "wide")
            gateway = scaling.gateway.log() if scaling.gateway is not None else ""
            raise AssertionError(f"{what} not reached:\n{state}\n{scaling.autoscaler.log()}\n{gateway}")
        time.sleep(0.2)


def group(kubectl: Kubectl, name: str, largest: int, smallest: int = 0, *, labels: str = "", **config: Any) -> None:
    """``labels``: further ones of its Nodes, like ``a=b``."""
    bounds = {names.AUTOSCALER_MIN_ANNOTATION: str(smallest), names.AUTOSCALER_MAX_ANNOTATION: str(largest)}
    capacity = {names.CAPACITY_CPU_ANNOTATION: "2", names.CAPACITY_MEMORY_ANNOTATION: "4Gi"}
    node_labels = dict(part.split("=") for part in labels.split(",") if part)
    host = {"bootSeconds": 0.5, "joinSeconds": 0.1, "deleteSeconds": 0.1, **config}
    value = {"apiVersion": "simulated.nodewright.dev/v1alpha1", "kind": "SimulatedMachineConfig", **host}
    template = {
        "metadata": {"labels": {"pool": name}},
        "spec": {
            "versions": {"kubelet": "1.34.2"},
            "metadata": {"labels": node_labels},
            "providerConfig": {"value": value},
        },
    }
    body = {
        "apiVersion": names.API_VERSION,
        "kind": "MachineDeployment",
        "metadata": {"name": name, "annotations": {**bounds, **capacity}},
        "spec": {"replicas": smallest, "selector": {"matchLabels": {"pool": name}}, "template": template},
    }
    kubectl("create", "-f", "-", stdin=json.dumps(body))


def workload(kubectl: Kubectl, replicas: int) -> None:
    """Pods of which two fill a Node."""
    container = {"name": "c", "image": "example.com/c", "resources": {"requests": {"cpu": "900m", "memory": "100Mi"}}}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec},
        },
    }
    kubectl("create", "-f", "-", stdin=json.dumps(body))


def bound(kubectl: Kubectl) -> int:
    return sum(bool(pod["spec"].get("nodeName")) for pod in kubectl.items("pods"))


def size(kubectl: Kubectl, name: str) -> int:
    return int(kubectl.json("get", "md", name)["spec"]["replicas"])


def staying(kubectl: Kubectl) -> int:
    return sum("deletionTimestamp" not in machine["metadata"] for machine in kubectl.items("ma"))


def age(node: dict[str, Any]) -> float:
    """Seconds."""
    born = datetime.fromisoformat(node["metadata"]["creationTimestamp"])
    return (datetime.now(UTC) - born).total_seconds()


def exactly(kubectl: Kubectl, name: str, count: int) -> bool:
    """As many replicas, Machines and Nodes."""
    return size(kubectl, name) == len(kubectl.items("ma")) == len(kubectl.items("nodes")) == count


class Highest:
    """The largest number of Machines that stay, and of replicas, seen while it watched."""

    def __init__(self, kubectl: Kubectl, name: str) -> None:
        self._look = lambda: (staying(kubectl), size(kubectl, name))
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.machines = self.replicas = 0

    def __enter__(self) -> Highest:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(0.2):
            machines, replicas = self._look()
            self.machines, self.replicas = max(self.machines, machines), max(self.replicas, replicas)


def test_pods_that_wait_get_nodes_and_nodes_without_work_go_to_zero_and_back(
    scaling: Scaling, kubectl: Kubectl
) -> None:
    group(kubectl, "east", 5)
    with Highest(kubectl, "east") as highest:
        workload(kubectl, 6)
        until(scaling, lambda: bound(kubectl) == 6 and exactly(kubectl, "east", 3), "six pods on three Nodes")
        kubectl("scale", "deployment/web", "--replicas=0")
        until(scaling, lambda: exactly(kubectl, "east", 0), "a group of none")
        kubectl("scale", "deployment/web", "--replicas=2")
        until(scaling, lambda: bound(kubectl) == 2 and exactly(kubectl, "east", 1), "a group of one again")
    assert (highest.machines, highest.replicas) == (3, 3)


def test_a_node_of_little_use_is_drained_and_its_pods_run_elsewhere(scaling: Scaling, kubectl: Kubectl) -> None:
    group(kubectl, "east", 5)
    workload(kubectl, 4)
    until(scaling, lambda: bound(kubectl) == 4, "four pods on Nodes")
    one, *_ = kubectl.items("nodes")
    on_it = [
        p["metadata"]["name"] for p in kubectl.items("pods") if p["spec"].get("nodeName") == one["metadata"]["name"]
    ]
    others = [p["metadata"]["name"] for p in kubectl.items("pods") if p["metadata"]["name"] not in on_it]
    for name in (on_it[0], others[0]):
        kubectl("annotate", "pod", name, "controller.kubernetes.io/pod-deletion-cost=-100")
    kubectl("scale", "deployment/web", "--replicas=2")
    until(scaling, lambda: exactly(kubectl, "east", 1) and bound(kubectl) == 2, "two pods together on one Node")


def test_a_group_out_of_stock_is_left_for_another_one(scaling: Scaling, kubectl: Kubectl) -> None:
    cloud = {"name": "short", "zones": {"a": 0, "b": 9}}
    group(kubectl, "sold-out", 5, cloud=cloud, zone="a")
    workload(kubectl, 4)
    until(scaling, lambda: size(kubectl, "sold-out") == 2, "a try")
    group(kubectl, "west", 5, cloud=cloud, zone="b")
    until(scaling, lambda: bound(kubectl) == 4, "four pods on Nodes of the other group")
    until(scaling, lambda: size(kubectl, "sold-out") == 0 and staying(kubectl) == 2, "nothing left of the try")


def test_it_stays_above_the_minimum_and_below_the_maximum(scaling: Scaling, kubectl: Kubectl) -> None:
    group(kubectl, "east", 2, smallest=1)
    with Highest(kubectl, "east") as highest:
        workload(kubectl, 9)
        until(scaling, lambda: bound(kubectl) == 4, "two full Nodes")
        kubectl("scale", "deployment/web", "--replicas=0")
        until(scaling, lambda: exactly(kubectl, "east", 1), "the minimum")
    assert highest.machines == 2


@pytest.mark.parametrize("part", ["autoscaler", "gateway", "controllers"])
def test_killed_in_the_middle_and_started_again_nothing_is_made_twice(
    scaling: Scaling, kubectl: Kubectl, part: str
) -> None:
    """SIGKILL, once while it grows and once while it shrinks.

    A Cluster Autoscaler since 1.36 forgets at its end what it has asked for, and asks for more: up to the maximum, and
    what was too much goes again.
    """
    killed = getattr(scaling, part)
    if killed is None:
        pytest.skip("this provider needs no gateway")
    group(kubectl, "east", 5, bootSeconds=2)
    with Highest(kubectl, "east") as highest:
        workload(kubectl, 6)
        until(scaling, lambda: size(kubectl, "east") > 0, "the first request")
        killed.stop(signal.SIGKILL)
        killed.start()
        until(
            scaling, lambda: bound(kubectl) == 6 and exactly(kubectl, "east", 3), "six pods on three Nodes", 2 * SECONDS
        )
        kubectl("scale", "deployment/web", "--replicas=0")
        until(scaling, lambda: size(kubectl, "east") < 3, "the first removal")
        killed.stop(signal.SIGKILL)
        killed.start()
        until(scaling, lambda: exactly(kubectl, "east", 0), "a group of none")
    most = 5 if part == "autoscaler" else 3
    assert 3 <= highest.machines <= most
    assert 3 <= highest.replicas <= most


def test_new_nodes_are_shared_out_among_groups_that_are_similar(scaling: Scaling, kubectl: Kubectl) -> None:
    """The autoscaler compares labels of real Nodes once these are a minute old."""
    for name in ("east", "west"):
        group(kubectl, name, 6, smallest=1)
    until(scaling, lambda: len(kubectl.items("nodes")) == 2, "a Node of each")
    until(scaling, lambda: all(age(node) > 65 for node in kubectl.items("nodes")), "Nodes of more than a minute", 120)
    workload(kubectl, 12)
    until(scaling, lambda: bound(kubectl) == 12, "twelve pods on Nodes")
    assert (size(kubectl, "east"), size(kubectl, "west")) == (3, 3)


def test_of_two_groups_the_cheaper_one_grows_from_zero(scaling: Scaling, kubectl: Kubectl) -> None:
    """The autoscaler asks for the price of a copy of the template, under another name."""
    if scaling.gateway is None:
        pytest.skip("this provider knows no prices")
    for name in ("dear", "cheap"):  # not similar, or both would grow
        capacity = {names.CAPACITY_LABELS_ANNOTATION: f"tier={name}"}
        group(kubectl, name, 5, labels=f"tier={name}")
        kubectl("annotate", "md", name, *(f"{key}={value}" for key, value in capacity.items()))
    workload(kubectl, 6)
    until(scaling, lambda: bound(kubectl) == 6, "six pods on Nodes")
    assert (size(kubectl, "dear"), size(kubectl, "cheap")) == (0, 3)
