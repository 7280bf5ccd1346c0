"""Three real control planes: one autoscaler for all Clusters, and what happens to one of them concerns no other.

The autoscaler has the rights of deploy/autoscaler-clusters at home and those of the page in each workload cluster.
The API server of one workload cluster is killed, and meanwhile the autoscaler too: that cluster keeps all that it has,
the other one grows and shrinks.
"""

from __future__ import annotations

import base64
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api import names
from hack.program import Kubectl, Program, Run
from hack.realplane import CONTROLLER_MANAGER, SCHEDULER, SERVERS, RealPlane
from nodewright.crds import load_crds
from tests.e2e.test_autoscaler import SECONDS, group, size, with_rights_of_its_own, workload
from tests.e2e.test_workload_autoscaler import KUBELETS, on_nodes
from tests.realplane import LIKE_EMBEDDED, REAL, require
from tests.runtime.stub_server import until
from tests.runtime.workload_rights import create, kubeconfig_of_the_page

pytestmark = [pytest.mark.kubectl, *REAL]

BLUE, GREEN = "blue", "green"
PODS, MORE = 10, 20
A_NODE = 8
"""Pods that have room on a Node of 4 cores, of half a core each."""


@dataclass(frozen=True, slots=True)
class Scene:
    """``home`` holds the Machines; ``clusters``: what speaks to each workload cluster; ``planes``: what serves it."""

    home: Kubectl
    clusters: dict[str, Kubectl]
    planes: dict[str, RealPlane]
    autoscaler: Program


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Scene]:
    require((*SERVERS, CONTROLLER_MANAGER, SCHEDULER))
    folder = tmp_path_factory.mktemp("many")
    with ExitStack() as stack:
        here = stack.enter_context(RealPlane(folder / "home", LIKE_EMBEDDED))
        home = Kubectl(kubectl_binary, here.kubeconfig, folder / "home-cache")
        create(home, *load_crds())
        home("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        planes, clusters = {}, {}
        for name in (BLUE, GREEN):
            plane = RealPlane(folder / name, LIKE_EMBEDDED, controller_manager=True, scheduler=True)
            planes[name] = stack.enter_context(plane)
            clusters[name] = Kubectl(kubectl_binary, plane.kubeconfig, folder / f"{name}-cache")
            create(home, *cluster(name, kubeconfig_of_the_page(clusters[name], plane, KUBELETS)))
            text = group(name, 0, 20).replace("cluster-name: story", f"cluster-name: {name}")
            home("apply", "-f", "-", stdin=text)
        flags = ("--clusters=all", "--no-management-cluster", "--autoscaler-namespace=nodewright-autoscaler")
        own = folder / "autoscaler"
        autoscaler = with_rights_of_its_own(own, here, home, *flags, layout="autoscaler-clusters")
        stack.enter_context(Run(folder, home))
        yield Scene(home, clusters, planes, stack.enter_context(autoscaler))


def cluster(name: str, kubeconfig: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{name}-kubeconfig", "namespace": "default"}}
    secret["data"] = {"value": base64.b64encode(kubeconfig).decode()}
    return {"apiVersion": "cluster.k8s.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}}, secret


def pods(count: int) -> dict[str, Any]:
    """Nobody runs them, so they may go at once."""
    web = workload("Deployment", count)
    web["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
    return web


def machines(home: Kubectl, cluster: str) -> list[str]:
    return home("get", "machines", "-l", f"{names.CLUSTER_NAME_LABEL}={cluster}", "-o", "name").split()


async def test_a_cluster_that_is_away_is_frozen_alone(scene: Scene) -> None:
    home, blue, green = scene.home, scene.clusters[BLUE], scene.clusters[GREEN]
    for kubectl in (blue, green):
        create(kubectl, pods(PODS))
    await until(lambda: all(len(on_nodes(each)) == PODS for each in (blue, green)), SECONDS)
    for name in (BLUE, GREEN):
        home.wait("jsonpath={.status.readyReplicas}=2", f"md/{name}", timeout=int(SECONDS))
    kept = machines(home, BLUE)

    scene.planes[BLUE].stop("kube-apiserver", signal.SIGKILL)
    home.wait("condition=Reachable=False", f"cluster/{BLUE}", timeout=int(SECONDS))
    scene.autoscaler.stop(signal.SIGKILL)
    scene.autoscaler.start()
    green("scale", "deployment/web", f"--replicas={MORE}")
    await until(lambda: len(on_nodes(green)) == MORE, SECONDS)
    assert size(home, GREEN) >= -(-MORE // A_NODE)
    home.wait(
        'jsonpath={.status.conditions[?(@.type=="ScalingActive")].reason}=ConnectionDown',
        f"md/{BLUE}",
        timeout=int(SECONDS),
    )
    green("delete", "deployment", "web")
    await until(lambda: size(home, GREEN) == 0 and not green.items("nodes"), SECONDS)
    assert machines(home, BLUE) == kept
    assert size(home, BLUE) == len(kept) == 2

    scene.planes[BLUE].start("kube-apiserver")
    scene.planes[BLUE].wait_ready()
    home.wait("condition=Reachable", f"cluster/{BLUE}", timeout=int(SECONDS))
    assert set(kept) <= set(machines(home, BLUE))
    blue("scale", "deployment/web", f"--replicas={MORE}")
    await until(lambda: len(on_nodes(blue)) == MORE, SECONDS)
    assert size(home, BLUE) >= -(-MORE // A_NODE)
    assert not machines(home, GREEN)
    assert not home.items("nodes")
