"""kube-vip as a static pod: what is written, when, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from api.bootstrap import VirtualAddress
from api.validate import validate
from controllers.bootstrap import virtual_address
from controllers.bootstrap.join import Join
from controllers.bootstrap.plan import join_steps
from controllers.bootstrap.settings import effective
from controllers.bootstrap.steps import Files, Step
from controllers.bootstrap.upgrade import upgrade_steps
from tests.controllers.bootstrap.scenarios import SCENARIOS
from tests.controllers.bootstrap.test_control_plane import FIRST, OTHER, PLANE
from tests.controllers.bootstrap.test_join import steps_of

IMAGE = "registry.example:5000/kube-vip/kube-vip:v0.9.2"
NAME = "write the static pod of the virtual address"


def with_address(join: Join, **given_: Any) -> Join:
    asked = {"controlPlane": {"virtualAddress": {"image": IMAGE, **given_}}, **SOURCE}
    return replace(join, settings=effective({}, {"bootstrap": asked}))


SOURCE = {"archives": {"kubernetes": {"mirror": "https://mirror.example"}}}


def pods(join: Join) -> list[tuple[int, dict[str, Any]]]:
    """Where each is written among the steps, and it."""
    return [(number, content(step)) for number, step in enumerate(steps_of(join).steps) if step.name == NAME]


def content(step: Step) -> dict[str, Any]:
    assert isinstance(step.action, Files)
    [file] = step.action.files
    assert (file.path, file.mode) == ("/etc/kubernetes/manifests/kube-vip.yaml", 0o600)
    loaded: dict[str, Any] = json.loads(file.content)
    return loaded


def variables(pod: dict[str, Any]) -> dict[str, str]:
    [container] = pod["spec"]["containers"]
    return {each["name"]: each.get("value", "") for each in container["env"]}


def kubeconfig(pod: dict[str, Any]) -> str:
    [volume] = pod["spec"]["volumes"]
    assert volume["hostPath"]["type"] == "File"
    path: str = volume["hostPath"]["path"]
    return path


def test_the_first_host_has_it_before_kubeadm_init_and_takes_back_the_greater_rights_after() -> None:
    (before, begins), (after, stays) = pods(with_address(FIRST))
    names = [step.name for step in steps_of(with_address(FIRST)).steps]
    assert names.index("check that no cluster is there yet") < before < names.index("make the control plane") < after
    assert kubeconfig(begins) == "/etc/kubernetes/super-admin.conf"
    assert kubeconfig(stays) == "/etc/kubernetes/admin.conf"
    assert steps_of(with_address(FIRST)).steps[before].done_if, "a host that has made the cluster never gets them again"


def test_the_others_have_it_once_they_have_joined() -> None:
    [(number, pod)] = pods(with_address(OTHER))
    names = [step.name for step in steps_of(with_address(OTHER)).steps]
    assert names.index("join the control plane") < number
    assert kubeconfig(pod) == "/etc/kubernetes/admin.conf"


def test_the_pod_announces_the_endpoint_with_the_users_image() -> None:
    [(_, pod)] = pods(with_address(OTHER, interface="bond0.7"))
    [container] = pod["spec"]["containers"]
    found = variables(pod)
    assert container["image"] == IMAGE
    assert (found["address"], found["port"], found["vip_interface"]) == ("10.0.0.1", "6443", "bond0.7")
    assert (found["vip_arp"], found["cp_enable"], found["vip_leaderelection"]) == ("true", "true", "true")
    assert container["securityContext"]["capabilities"] == {"add": ["NET_ADMIN", "NET_RAW"], "drop": ["ALL"]}
    assert pod["spec"]["hostNetwork"] is True


def test_an_interface_that_is_not_given_is_left_to_it() -> None:
    [(_, pod)] = pods(with_address(OTHER))
    assert "vip_interface" not in variables(pod)


def test_an_address_of_ipv6_is_announced_as_one() -> None:
    plane = replace(PLANE, initializes=False, endpoint="[fd00::1]:6443")
    [(_, pod)] = pods(with_address(replace(OTHER, control_plane=plane)))
    found = variables(pod)
    assert (found["address"], found["port"], found["vip_cidr"]) == ("fd00::1", "6443", "128")


def test_an_upgrade_writes_it_anew() -> None:
    """So a new image reaches the hosts."""
    upgraded = upgrade_steps(with_address(replace(OTHER, cluster_version="1.36.3")))
    assert not isinstance(upgraded, tuple)
    [pod] = [content(step) for step in upgraded.steps if step.name == NAME]
    assert kubeconfig(pod) == "/etc/kubernetes/admin.conf"


def test_nobody_else_has_it() -> None:
    assert not pods(FIRST)
    worker = with_address(replace(SCENARIOS["archives"], control_plane=None))
    assert not pods(worker)


@pytest.mark.parametrize("make", [join_steps, upgrade_steps])
@pytest.mark.parametrize("host", ["api.example.com", "10.0.0.300", ""])
def test_an_endpoint_that_is_no_address_is_refused(make: Any, host: str) -> None:
    plane = replace(PLANE, initializes=False, endpoint=f"{host}:6443")
    found = make(with_address(replace(OTHER, control_plane=plane)))
    assert isinstance(found, tuple)
    assert "Cluster.spec.controlPlaneEndpoint.host" in [refusal.field for refusal in found]


@pytest.mark.parametrize("image", ["", "x y", "$(reboot)", "a\nb", "-x", "a@sha256:12", "`id`", 'a"b', "a" * 513])
def test_what_is_no_name_of_an_image_is_refused(image: str) -> None:
    with pytest.raises(ValidationError):
        VirtualAddress(image=image)


@pytest.mark.parametrize("interface", ["eth0;id", "a" * 16, "-x", "../x", "e h", "é"])
def test_what_is_no_name_of_an_interface_is_refused(interface: str) -> None:
    with pytest.raises(ValidationError):
        VirtualAddress(image=IMAGE, interface=interface)


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._/:-]{0,60}", fullmatch=True))
def test_any_image_arrives_as_it_is(image: str) -> None:
    pod = virtual_address.manifest(with_address(OTHER, image=image), "/etc/kubernetes/admin.conf")
    assert pod["spec"]["containers"][0]["image"] == image


@pytest.mark.parametrize(("host", "paths"), [("10.0.0.9", []), ("prod.example", ["spec.controlPlaneEndpoint.host"])])
def test_a_cluster_is_told_at_admission(host: str, paths: list[str]) -> None:
    spec = {
        "controlPlaneEndpoint": {"host": host, "port": 6443},
        "bootstrap": {"controlPlane": {"virtualAddress": {"image": IMAGE}}},
    }
    body = {"apiVersion": "cluster.k8s.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "prod"}, "spec": spec}
    assert [str(error.path) for error in validate(body)] == paths
