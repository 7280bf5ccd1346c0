"""What the host of a control plane is given: kubeadm's documents and the steps, for the first and for the others."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.bootstrap import BootstrapSpec
from controllers.bootstrap import documents, shell
from controllers.bootstrap.authorities import AUTHORITIES, CLUSTER_CA, NEW_KEYS
from controllers.bootstrap.control_plane import ControlPlane
from controllers.bootstrap.control_plane_steps import DONE, INIT_CONFIG, init_documents
from controllers.bootstrap.founding import Founded
from controllers.bootstrap.join import Join
from controllers.bootstrap.ordering import Rendering
from controllers.bootstrap.plan import join_steps
from controllers.bootstrap.settings import Settings
from controllers.bootstrap.steps import Files, Script, Steps
from controllers.bootstrap.upgrade import upgrade_steps
from hack import binaries
from tests.builders.clock import NOW
from tests.controllers.bootstrap.test_join import JOIN, steps_of

KUBEADM = binaries.find("kubeadm")
PKI = {
    each.suffix: NEW_KEYS.authority(each.common_name, NOW) if each.common_name else NEW_KEYS.signing()
    for each in AUTHORITIES
}
PLANE = ControlPlane("prod", "1.36.3", "10.0.0.1:6443", "10.96.0.0/16", "10.244.0.0/16", "cluster.local", pki=PKI)
FIRST = replace(JOIN, ca=PKI[CLUSTER_CA.suffix].certificate, control_plane=PLANE)
OTHER = replace(FIRST, control_plane=replace(PLANE, initializes=False))


def script_of(join: Join, name: str) -> str:
    action = next(step.action for step in steps_of(join).steps if step.name == name)
    assert isinstance(action, Script)
    return action.content


def files_of(join: Join) -> dict[str, Any]:
    return {
        file.path: file for step in steps_of(join).steps if isinstance(step.action, Files) for file in step.action.files
    }


def test_the_first_host_looks_whether_a_cluster_answers_and_makes_one_then() -> None:
    names = [step.name for step in steps_of(FIRST).steps]
    assert names.index("check that no cluster is there yet") < names.index("make the control plane")
    assert "https://10.0.0.1:6443/version" in script_of(FIRST, "check that no cluster is there yet")
    script = script_of(FIRST, "make the control plane")
    assert f"kubeadm init --config={INIT_CONFIG} --skip-token-print" in script
    assert script.rstrip().endswith(f": > {DONE}")


def test_the_others_join_it_and_a_join_that_was_cut_off_takes_its_member_of_etcd_away_first() -> None:
    steps = steps_of(OTHER)
    step = next(step for step in steps.steps if step.name == "join the control plane")
    assert step.undo is not None
    assert step.undo.argv[:2] == ("kubeadm", "reset")
    assert "/etc/kubernetes/pki" not in step.undo.argv
    assert step.done_if == (DONE,)
    document = json.loads(files_of(OTHER)[documents.JOIN_CONFIG].content)
    assert document["controlPlane"] == {}


@pytest.mark.parametrize("join", [FIRST, OTHER], ids=["first", "other"])
def test_each_gets_all_authorities_readable_by_root_alone_and_keeps_them(join: Join) -> None:
    files = files_of(join)
    for authority in AUTHORITIES:
        key = files[authority.file_of_key]
        assert (key.mode, key.secret) == (0o600, True)
        assert key.content == PKI[authority.suffix].key
        assert files[authority.file_of_certificate].content == PKI[authority.suffix].certificate
        assert authority.file_of_key not in steps_of(join).forget


def test_a_host_that_makes_the_cluster_has_nobody_to_report_to_and_needs_no_token() -> None:
    assert steps_of(FIRST).reporting is None
    assert JOIN.token not in shell.render(steps_of(FIRST))
    assert steps_of(OTHER).reporting is not None


def test_taints_are_kubeadms_unless_the_machine_has_some() -> None:
    [init, _] = init_documents(FIRST)
    assert "taints" not in init["nodeRegistration"]
    assert documents.join_configuration(JOIN)["nodeRegistration"]["taints"] == []


def test_the_cluster_is_as_its_object_says() -> None:
    asked = {
        "controlPlane": {
            "imageRepository": "mirror.example/k8s",
            "certSANs": ["b.example", "a.example"],
            "disabledAddons": ["CoreDNS", "KubeProxy"],
            "apiServerExtraArgs": [{"name": "v", "value": "2"}],
            "etcdExtraArgs": [{"name": "quota-backend-bytes", "value": "8589934592"}],
        }
    }
    spec = BootstrapSpec.model_validate(asked)
    [_, document] = init_documents(replace(FIRST, settings=Settings(spec)))
    assert document["kubernetesVersion"] == "v1.36.3"
    assert document["controlPlaneEndpoint"] == "10.0.0.1:6443"
    assert document["networking"] == {
        "serviceSubnet": "10.96.0.0/16",
        "podSubnet": "10.244.0.0/16",
        "dnsDomain": "cluster.local",
    }
    assert document["apiServer"] == {
        "extraArgs": [{"name": "v", "value": "2"}],
        "certSANs": ["a.example", "b.example"],
    }
    assert document["etcd"]["local"]["extraArgs"][0]["name"] == "quota-backend-bytes"
    assert document["dns"] == document["proxy"] == {"disabled": True}
    assert document["imageRepository"] == "mirror.example/k8s"


def test_without_authorities_all_can_be_checked_and_they_are_in_no_digest() -> None:
    before = replace(FIRST, ca="", control_plane=replace(PLANE, pki=None))
    assert isinstance(join_steps(before), Steps)
    assert repr(before.control_plane) == repr(PLANE)
    render = Rendering(before, "script")
    first, other = (render(JOIN.token, {}, Founded(makes, PKI)).decode() for makes in (True, False))
    assert first != other


@pytest.mark.parametrize(
    ("kubelet", "cluster", "field"),
    [
        ("1.35.4", "", "kubelet_version"),
        ("1.36.3", "1.34.4", "control_plane_version"),
        ("1.36.3", "1.35.4", ""),
        ("1.36.3", "1.37.1", "control_plane_version"),
        ("1.36.3", "1.36.9", ""),
    ],
)
def test_a_version_that_can_not_join_is_refused(kubelet: str, cluster: str, field: str) -> None:
    found = join_steps(replace(OTHER, kubelet_version=kubelet, cluster_version=cluster))
    assert ([each.field for each in found] if isinstance(found, tuple) else [""]) == [field]


@pytest.mark.parametrize(
    ("before", "allowed"),
    [("1.36.3", True), ("1.36.1", True), ("1.35.4", True), ("1.34.9", False), ("1.36.4", False), ("1.37.0", False)],
)
def test_an_upgrade_goes_by_one_minor_version_and_never_back(before: str, allowed: bool) -> None:
    archives = {"kubernetes": {"mirror": "https://mirror.example"}}
    spec = BootstrapSpec.model_validate({"archives": archives})
    join = replace(OTHER, cluster_version=before, settings=Settings(spec, "Archives"))
    found = upgrade_steps(join)
    assert isinstance(found, Steps) == allowed
    if isinstance(found, Steps):
        names = [step.name for step in found.steps]
        order = ["install kubeadm 1.36.3", "upgrade the control plane to v1.36.3", "install kubelet 1.36.3"]
        assert [name for name in names if name in order] == order


argument = st.fixed_dictionaries(
    {
        "name": st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True),
        "value": st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=40),
    }
)
asked = st.fixed_dictionaries(
    {},
    optional={
        "certSANs": st.lists(st.sampled_from(["a.example", "10.0.0.9", "b.c.example"]), unique=True, max_size=3),
        "disabledAddons": st.lists(st.sampled_from(["CoreDNS", "KubeProxy"]), unique=True),
        "apiServerExtraArgs": st.lists(argument, max_size=3),
        "controllerManagerExtraArgs": st.lists(argument, max_size=3),
        "schedulerExtraArgs": st.lists(argument, max_size=3),
        "etcdExtraArgs": st.lists(argument, max_size=3),
        "imageRepository": st.sampled_from(["registry.example", "registry.example:5000/k8s"]),
    },
)


@pytest.mark.skipif(KUBEADM is None, reason=f"kubeadm not found: {binaries.REMEDY}")
@given(asked=asked)
@settings(max_examples=20, deadline=None)
def test_kubeadm_itself_takes_every_init_configuration(tmp_path_factory: Any, asked: Any) -> None:
    spec = BootstrapSpec.model_validate({"controlPlane": asked})
    file = tmp_path_factory.mktemp("init") / "init.json"
    join = replace(FIRST, settings=Settings(spec))
    file.write_text(str(files_of(join)[INIT_CONFIG].content))
    command = [str(KUBEADM), "config", "validate", "--config", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("join", [FIRST, OTHER], ids=["first", "other"])
def test_the_script_is_shell(join: Join) -> None:
    done = subprocess.run(["sh", "-n"], input=shell.render(steps_of(join)), text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
