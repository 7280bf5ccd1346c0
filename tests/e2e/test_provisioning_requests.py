"""ProvisioningRequests on both planes: success, stock-out and rollback, cancel, expiry, revocation, two at once.

On the real plane kube-scheduler places the pods that consume the room, and the controller has the rights of
deploy/provisioningrequests alone.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from api import names, provisioning_names
from hack.program import Kubectl, Program, Run, Up
from hack.realplane import RealPlane
from tests.docs.pages import ROOT
from tests.e2e.manifests import machine_deployment
from tests.e2e.scheduled import scheduled
from tests.e2e.test_autoscaler import event_reasons
from tests.realplane import PLANES
from tests.runtime.stub_server import until

pytestmark = [pytest.mark.kubectl, pytest.mark.e2e]

SECONDS = 300.0
QUICK = (
    "--scan-interval=1s",
    "--scale-down-unneeded-time=1s",
    "--scale-down-delay-after-add=1s",
    "--scale-down-delay-after-failure=1s",
    "--initial-node-group-backoff-duration=1s",
    "--provisioning-request-initial-backoff-time=1h",
    "--provisioning-request-max-backoff-time=1h",
)
SHORT = "bookingTime: 3s"
RIGHTS = ("ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")


class Cluster(NamedTuple):
    """``controller`` None: it is one process with the control plane, and can't be killed alone."""

    kubectl: Kubectl
    controller: Program | None = None


@pytest.fixture
def kubectl(cluster: Cluster) -> Kubectl:
    return cluster.kubectl


@pytest.fixture(autouse=True)
def tidy(cluster: Cluster) -> Iterator[None]:
    """No story meets what another left."""
    yield
    kubectl = cluster.kubectl
    kubectl("delete", "provreq,podtemplates,pods", "--all", "--wait=false")
    kubectl("delete", "cm", provisioning_names.PROVISIONING_CLASSES, "-n", "kube-system", "--ignore-not-found")
    kubectl("delete", "md", "--all", "--wait", "--timeout=240s", timeout=300)


@pytest.fixture(scope="module", params=(pytest.param("embedded", marks=pytest.mark.slow), PLANES[1]))
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("requests")
    if request.param == "embedded":
        flags = ("--in-memory", "--autoscaler", "--enable-provisioning-requests")
        with Up(folder, kubectl_binary, *flags, *QUICK) as running:
            yield Cluster(running.kubectl)
        return
    with (
        scheduled(folder, kubectl_binary) as (plane, kubectl),
        Run(folder, kubectl),
        _with_its_rights(folder / "requests", plane, kubectl) as controller,
    ):
        yield Cluster(kubectl, controller)


def _with_its_rights(folder: Path, plane: RealPlane, kubectl: Kubectl) -> Run:
    folder.mkdir()
    kubectl("apply", "-k", str(ROOT / "deploy" / "namespace"))
    kubectl("apply", "-f", str(ROOT / "deploy" / "rbac" / "kubeconfigs.yaml"))
    election = ROOT / "deploy" / "rbac" / "leader-election.yaml"
    kubectl("apply", "-f", str(election), "--namespace=nodewright-system")
    rendered = yaml.safe_load_all(kubectl("kustomize", str(ROOT / "deploy" / "provisioningrequests")))
    wanted = [doc for doc in rendered if doc and doc["kind"] in RIGHTS]
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(wanted))
    token = kubectl("create", "token", "nodewright-autoscaler", "--namespace=nodewright-system").strip()
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    path = folder / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return Run(folder, replace(kubectl, kubeconfig=path), "--controllers=autoscaler,provisioningrequest", *QUICK)


async def group(kubectl: Kubectl, name: str, most: int, hosts: int | None = None, boot: float = 0.2) -> None:
    """Hosts of 4 cores; ``hosts``: so many of them are to be had. Until the controller knows it: a request that comes
    before its group finds no room, and is tried again an hour later here.
    """
    bounds = {names.AUTOSCALER_MIN_ANNOTATION: "0", names.AUTOSCALER_MAX_ANNOTATION: str(most)}
    cloud = f"          cloud: {{name: {name}, zones: {{z: {hosts}}}}}\n" if hosts is not None else ""
    text = machine_deployment(name, 0)
    text = text.replace("          bootSeconds: 0.2", f"          cpus: 4\n{cloud}          bootSeconds: {boot}")
    text = text.replace("  labels: {cluster.k8s.io/cluster-name: story}\n", f"  annotations: {json.dumps(bounds)}\n")
    kubectl("apply", "-f", "-", stdin=text)
    status = ("cm", names.AUTOSCALER_STATUS, "-n", "kube-system", "--ignore-not-found", "-o", "jsonpath={.data.status}")
    await until(lambda: f"/{name}" in kubectl("get", *status), SECONDS)


def ask(
    kubectl: Kubectl, name: str, count: int, pool: str = "", class_name: str = provisioning_names.ATOMIC_SCALE_UP
) -> None:
    """Room for so many pods, each of which fills a Node; ``pool``: of one group only."""
    template = {"metadata": {"labels": {"job": name}}, "spec": pod_spec(pool)}
    sets = [{"podTemplateRef": {"name": name}, "count": count}]
    spec = {"provisioningClassName": class_name, "podSets": sets}
    items = [
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name}, "template": template},
        {
            "apiVersion": provisioning_names.PROVISIONING_API_VERSION,
            "kind": "ProvisioningRequest",
            "metadata": {"name": name},
            "spec": spec,
        },
    ]
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def pod_spec(pool: str) -> dict[str, Any]:
    container = {"name": "main", "image": "example.com/job", "resources": {"requests": {"cpu": "3"}}}
    where = {"nodeSelector": {"tier": pool}} if pool else {}
    return {"containers": [container], "terminationGracePeriodSeconds": 1, **where}


def consume(kubectl: Kubectl, name: str, count: int, pool: str = "") -> None:
    annotations = {
        provisioning_names.CONSUME_REQUEST_ANNOTATION: name,
        provisioning_names.CLASS_NAME_ANNOTATION: provisioning_names.ATOMIC_SCALE_UP,
    }
    meta = {"labels": {"job": name}, "annotations": annotations}
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "name": f"{name}-{n}"}, "spec": pod_spec(pool)}
        for n in range(count)
    ]
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))


def condition(kubectl: Kubectl, name: str, type_: str) -> dict[str, Any]:
    conditions = kubectl.json("get", "provreq", name).get("status", {}).get("conditions", [])
    found: dict[str, Any] = next((each for each in conditions if each["type"] == type_), {})
    return found


def holds(kubectl: Kubectl, name: str, type_: str, reason: str) -> bool:
    return condition(kubectl, name, type_).get("reason") == reason


def booked(kubectl: Kubectl, name: str) -> set[str]:
    details = kubectl.json("get", "provreq", name)["status"].get("provisioningClassDetails", {})
    return set(details.get(provisioning_names.BOOKED_NODES_DETAIL, "").split())


def size(kubectl: Kubectl, name: str) -> int:
    return int(kubectl.json("get", "md", name)["spec"]["replicas"])


def nodes_of(kubectl: Kubectl, pool: str) -> list[str]:
    return [node["metadata"]["name"] for node in kubectl.items("nodes", "-l", f"tier={pool}")]


def killed(cluster: Cluster) -> None:
    """And started again, where that is possible."""
    if cluster.controller is not None:
        cluster.controller.stop(signal.SIGKILL)
        cluster.controller.start()


async def test_nodes_of_two_groups_come_at_once_and_the_pods_are_bound_to_exactly_these(cluster: Cluster) -> None:
    """Though the controller is killed as soon as sizes are written, and again while the room is booked."""
    kubectl = cluster.kubectl
    await group(kubectl, "one", 2)
    await group(kubectl, "two", 2)
    ask(kubectl, "job", 4)
    await until(lambda: size(kubectl, "one") + size(kubectl, "two") > 0, SECONDS)
    killed(cluster)
    await until(lambda: holds(kubectl, "job", "Provisioned", "CapacityIsProvisioned"), SECONDS)
    assert (size(kubectl, "one"), size(kubectl, "two")) == (2, 2)
    assert "4/4 nodes ready" in condition(kubectl, "job", "Provisioned")["message"]
    nodes = booked(kubectl, "job")
    assert nodes == {*nodes_of(kubectl, "one"), *nodes_of(kubectl, "two")}
    killed(cluster)
    consume(kubectl, "job", 4)
    await until(lambda: holds(kubectl, "job", "BookingExpired", "CapacityBookingConsumed"), SECONDS)
    assert {pod["spec"]["nodeName"] for pod in kubectl.items("pods", "-l", "job=job")} == nodes
    assert (size(kubectl, "one"), size(kubectl, "two")) == (2, 2), "no second scale-up"
    assert "True" in kubectl("get", "provreq", "job", "--no-headers")


async def test_a_stock_out_is_rolled_back_and_told(kubectl: Kubectl) -> None:
    await group(kubectl, "plenty", 2)
    await group(kubectl, "scarce", 3, hosts=1)
    ask(kubectl, "job", 5)
    await until(lambda: holds(kubectl, "job", "Provisioned", "CapacityIsNotFound"), SECONDS)
    await until(lambda: not kubectl.items("machines") and not kubectl.items("nodes"), SECONDS)
    assert (size(kubectl, "plenty"), size(kubectl, "scarce")) == (0, 0)
    assert "StockOut" in condition(kubectl, "job", "Provisioned")["message"]
    await until(lambda: "RollingBack" in event_reasons(kubectl), SECONDS)


async def test_who_deletes_a_request_half_way_gets_rid_of_the_nodes(kubectl: Kubectl) -> None:
    await group(kubectl, "slow", 2, boot=30.0)  # the condition is looked for meanwhile
    ask(kubectl, "job", 2)
    await until(lambda: size(kubectl, "slow") == 2, SECONDS)
    await until(lambda: holds(kubectl, "job", "Provisioned", "ProvisioningInProgress"), SECONDS)
    kubectl("delete", "provreq", "job")
    await until(lambda: size(kubectl, "slow") == 0 and not kubectl.items("machines"), SECONDS)


async def test_a_booking_ends_and_its_nodes_go(kubectl: Kubectl) -> None:
    """The time is a default of the class, from the ConfigMap."""
    await group(kubectl, "brief", 2)
    config = ("configmap", provisioning_names.PROVISIONING_CLASSES, "-n", "kube-system")
    kubectl("create", *config, f"--from-literal={provisioning_names.PROPOSED_ATOMIC_SCALE_UP}={SHORT}")
    ask(kubectl, "job", 2, class_name=provisioning_names.PROPOSED_ATOMIC_SCALE_UP)
    await until(lambda: holds(kubectl, "job", "Provisioned", "CapacityIsProvisioned"), SECONDS)
    await until(lambda: holds(kubectl, "job", "BookingExpired", "CapacityReservationTimeExpired"), SECONDS)
    await until(lambda: size(kubectl, "brief") == 0 and not kubectl.items("nodes"), SECONDS)


async def test_booked_nodes_stay_and_room_that_is_lost_is_revoked(kubectl: Kubectl) -> None:
    await group(kubectl, "lost", 2)
    ask(kubectl, "job", 2)
    await until(lambda: holds(kubectl, "job", "Provisioned", "CapacityIsProvisioned"), SECONDS)
    assert size(kubectl, "lost") == 2
    nodes = booked(kubectl, "job")
    kubectl("scale", "md/lost", "--replicas=1")
    await until(lambda: holds(kubectl, "job", "CapacityRevoked", "CapacityIsGone"), SECONDS)
    message = condition(kubectl, "job", "CapacityRevoked")["message"]
    assert [name for name in nodes if name in message], "the one that goes is named"


async def test_of_two_that_want_the_same_room_the_first_gets_it(kubectl: Kubectl) -> None:
    await group(kubectl, "shared", 3)
    ask(kubectl, "first", 2)
    await until(lambda: condition(kubectl, "first", "Accepted") != {}, SECONDS)
    ask(kubectl, "second", 2)
    await until(lambda: holds(kubectl, "second", "Provisioned", "CapacityIsNotFound"), SECONDS)
    await until(lambda: holds(kubectl, "first", "Provisioned", "CapacityIsProvisioned"), SECONDS)
    assert size(kubectl, "shared") == 2
    assert not booked(kubectl, "second")
