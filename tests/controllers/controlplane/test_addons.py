"""kube-proxy and CoreDNS after an upgrade by replacement: once, after all, and only what is kubeadm's."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kernel.refs import DAEMON_SET, DEPLOYMENT, MACHINE_DEPLOYMENT
from tests.builders.plans import patches, status_of
from tests.controllers.controlplane.test_reconciler import ControlPlaneBuilder, members, planned, three, world
from tests.controllers.controlplane.test_together import pool

OLD = "registry.k8s.io/kube-proxy:v1.35.4"


def kube_proxy(image: str, *others: dict[str, Any]) -> dict[str, Any]:
    containers = [{"name": "kube-proxy", "image": image, "command": ["/usr/local/bin/kube-proxy"]}, *others]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "kube-proxy", "namespace": "kube-system", "uid": "proxy", "resourceVersion": "17"},
        "spec": {"template": {"spec": {"containers": containers}}},
    }


def written(proxy: dict[str, Any] | None, *, version: str = "1.36.0", runs: str = "v1.36.0", **spec: Any) -> Any:
    control_plane = ControlPlaneBuilder(version=version, **spec)
    machines = three(control_plane, "1.36.0")
    for each in machines:
        each.status["versions"] = {"kubelet": runs}
    view = world(control_plane, *machines).put(pool("web", "1.35.4"))
    if proxy is not None:
        view.put(proxy)
    return planned(view, members(True, True, True))


def test_it_gets_the_version_once_all_have_it() -> None:
    plan = written(kube_proxy(OLD, {"name": "exporter", "image": "exporter:1"}))
    patch = patches(plan, DAEMON_SET)["kube-proxy"]
    raised, exporter = patch.patch["spec"]["template"]["spec"]["containers"]
    assert raised["image"] == "registry.k8s.io/kube-proxy:v1.36.0"
    assert raised["command"] == ["/usr/local/bin/kube-proxy"]
    assert exporter == {"name": "exporter", "image": "exporter:1"}
    assert patch.resource_version == "17"
    assert status_of(plan)["next"] == "kube-proxy gets 1.36.0, which goes with 1.36.0 of the control plane"


@pytest.mark.parametrize(("version", "runs"), [("1.36.0", "v1.35.4"), ("1.36.1", "v1.36.0")])
def test_it_waits_for_the_whole_control_plane(version: str, runs: str) -> None:
    assert not patches(written(kube_proxy(OLD), version=version, runs=runs), DAEMON_SET)


@pytest.mark.parametrize(
    "image",
    [
        "registry.k8s.io/kube-proxy:v1.36.0",
        "registry.k8s.io/kube-proxy:v1.37.0",
        f"{OLD}@sha256:{'0' * 64}",
        "mine/proxy:v1.35.4",
        "registry.k8s.io/kube-proxy:latest",
        "registry.k8s.io/kube-proxy:v1.35.4-mine",
        "",
    ],
)
def test_what_it_has_or_a_person_chose_stays(image: str) -> None:
    assert not patches(written(kube_proxy(image)), DAEMON_SET)


@pytest.mark.parametrize("containers", [None, {}, "x", [None, 3], [{"image": ["x"]}]])
def test_what_can_not_be_read_is_left_alone(containers: Any) -> None:
    proxy = kube_proxy(OLD)
    proxy["spec"]["template"]["spec"]["containers"] = containers
    assert not patches(written(proxy), DAEMON_SET)


def test_workers_come_after_it() -> None:
    first = written(kube_proxy(OLD), upgrade="Together")
    assert patches(first, DAEMON_SET)
    assert not patches(first, MACHINE_DEPLOYMENT)
    assert patches(written(kube_proxy(OLD.replace("1.35.4", "1.36.0")), upgrade="Together"), MACHINE_DEPLOYMENT)
    assert patches(written(None, upgrade="Together"), MACHINE_DEPLOYMENT)


def test_a_mirror_with_a_port_keeps_its_name() -> None:
    plan = written(kube_proxy("mirror.example:5000/k8s/kube-proxy:v1.35.4"))
    [container] = patches(plan, DAEMON_SET)["kube-proxy"].patch["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "mirror.example:5000/k8s/kube-proxy:v1.36.0"


# -- CoreDNS


def core_dns(image: str) -> dict[str, Any]:
    found = kube_proxy(image)
    found |= {"kind": "Deployment", "metadata": {**found["metadata"], "name": "coredns", "uid": "dns"}}
    return found


DNS = "registry.k8s.io/coredns/coredns:v1.13.1"


def test_core_dns_gets_what_kubeadm_has_for_the_version_and_kube_proxy_comes_before() -> None:
    plan = written(core_dns(DNS))
    [container] = patches(plan, DEPLOYMENT)["coredns"].patch["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.k8s.io/coredns/coredns:v1.14.2"
    assert status_of(plan)["next"] == "CoreDNS gets 1.14.2, which goes with 1.36.0 of the control plane"
    control_plane = ControlPlaneBuilder()
    machines = three(control_plane)
    for each in machines:
        each.status["versions"] = {"kubelet": "v1.36.0"}
    both = planned(world(control_plane, *machines).put(core_dns(DNS), kube_proxy(OLD)), members(True, True, True))
    assert patches(both, DAEMON_SET)
    assert not patches(both, DEPLOYMENT)


@pytest.mark.parametrize(
    "image",
    [
        "registry.k8s.io/coredns/coredns:v1.14.2",
        "registry.k8s.io/coredns/coredns:v1.15.0",
        "registry.k8s.io/coredns/coredns:v1.7.1",
        f"{DNS}@sha256:{'0' * 64}",
        "mine/dns:v1.13.1",
        "registry.k8s.io/kube-proxy:v1.13.1",
    ],
)
def test_core_dns_of_a_persons_or_of_a_corefile_that_would_not_be_read_stays(image: str) -> None:
    assert not patches(written(core_dns(image)), DEPLOYMENT)


def test_nobody_guesses_the_core_dns_of_a_version_that_is_not_known() -> None:
    assert not patches(written(core_dns(DNS), version="1.99.0", runs="v1.99.0"), DEPLOYMENT)
