"""What is refused before anything is made, and what a worker's steps are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controllers.bootstrap.documents import join_configuration
from controllers.bootstrap.join import Install, Join, Refusal, refusals
from controllers.bootstrap.plan import join_steps
from controllers.bootstrap.steps import Binary, Files, Present, Steps

CA = """\
-----BEGIN CERTIFICATE-----
MIIBPDCB5KADAgECAgEBMAoGCCqGSM49BAMCMBUxEzARBgNVBAMMCmt1YmVybmV0
ZXMwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBUxEzARBgNVBAMM
Cmt1YmVybmV0ZXMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARciIiKqjHJVZVz
QdqWgKXTebwDVh1Ng+ejfXyVuDk4pCqHpTG7u/t5NYp+bBO/Ks5d4IxUP9a99uAy
sixvNQQ0oyMwITAPBgNVHRMBAf8EBTADAQH/MA4GA1UdDwEB/wQEAwICpDAKBggq
hkjOPQQDAgNHADBEAiAmRKf6HY1xKKOWMjAVvqDBuwgK7rQV0v/w3cBAMAc7zgIg
VVq8r6kKtRjh2suVdFVVNJCS1Kj7R8PZoq+hqZkqtC4=
-----END CERTIFICATE-----
"""
"""Of a CA that is valid from 2020 to 2119; nobody has its key."""
JOIN = Join(
    node_name="worker-1",
    kubelet_version="1.36.3",
    server="https://10.0.0.1:6443",
    ca=CA,
    token="abcdef.0123456789abcdef",
)


def steps_of(join: Join) -> Steps:
    found = join_steps(join)
    assert isinstance(found, Steps), found
    return found


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        (replace(JOIN, node_name="Worker_1"), "node_name"),
        (replace(JOIN, node_name="$(reboot)"), "node_name"),
        (replace(JOIN, kubelet_version="1.36"), "kubelet_version"),
        (replace(JOIN, kubelet_version="1.36.3; reboot"), "kubelet_version"),
        (replace(JOIN, server="http://10.0.0.1:6443"), "server"),
        (replace(JOIN, server="https://10.0.0.1:6443/path"), "server"),
        (replace(JOIN, ca="nothing"), "ca"),
        (replace(JOIN, token="abcdef"), "token"),
        (replace(JOIN, container_runtime="crio/1.30"), "container_runtime"),
        (replace(JOIN, cluster_version="later"), "cluster_version"),
    ],
)
def test_what_can_not_work_is_refused_with_its_field(changed: Join, field: str) -> None:
    found = join_steps(changed)
    assert isinstance(found, tuple)
    assert [each.field for each in found] == [field]


@pytest.mark.parametrize(
    ("kubelet", "cluster", "allowed"),
    [("1.36.3", "1.36.0", True), ("1.37.0", "1.36.3", False), ("1.33.0", "1.36.3", True), ("1.32.9", "1.36.3", False),
     ("2.36.0", "1.36.3", False)],
)  # fmt: skip
def test_the_version_skew_policy_is_kept(kubelet: str, cluster: str, allowed: bool) -> None:
    found = refusals(replace(JOIN, kubelet_version=kubelet, cluster_version=cluster))
    assert [each.field for each in found] == ([] if allowed else ["kubelet_version"])


def test_all_that_is_wrong_is_named_at_once() -> None:
    found = refusals(replace(JOIN, node_name="_", token="", ca=""))
    assert {each.field for each in found} == {"node_name", "token", "ca"}
    assert all(isinstance(each, Refusal) and each.message for each in found)


def test_without_a_mirror_the_image_brings_the_programs() -> None:
    versions = {s.action.path: s.action.version for s in steps_of(JOIN).steps if isinstance(s.action, Present)}
    assert versions == {"/usr/bin/containerd": "", "/usr/bin/kubelet": "1.36.3", "/usr/bin/kubeadm": "1.36.3"}


def test_from_a_mirror_each_program_has_an_address_and_a_checksum() -> None:
    digest = "a" * 64
    join = replace(JOIN, install=Install("https://mirror.test/k8s/", sha256={"kubelet": digest}))
    found = {s.action.path: s.action for s in steps_of(join).steps if isinstance(s.action, Binary)}
    assert found["/usr/bin/kubelet"].url == "https://mirror.test/k8s/v1.36.3/bin/linux/amd64/kubelet"
    assert [found[path].sha256 for path in ("/usr/bin/kubelet", "/usr/bin/kubeadm")] == [digest, ""]


def test_a_runtime_version_that_is_asked_for_is_compared() -> None:
    found = steps_of(replace(JOIN, container_runtime="containerd/1.7"))
    assert [s.action.version for s in found.steps if s.name == "check containerd 1.7" and isinstance(s.action, Present)]


def test_the_token_stands_in_secret_files_alone_and_those_are_forgotten() -> None:
    found = steps_of(JOIN)
    holding = [step for step in found.steps if JOIN.token in repr(step)]
    assert [type(step.action) for step in holding] == [Files]
    files = [file for step in found.steps if isinstance(step.action, Files) for file in step.action.files]
    secret = {file.path for file in files if file.secret}
    assert secret == set(found.forget)
    assert {file.mode for file in files if file.secret} == {0o600}


def test_without_a_name_the_node_is_called_as_its_host() -> None:
    assert "name" not in join_configuration(replace(JOIN, node_name=""))["nodeRegistration"]
    assert join_configuration(JOIN)["nodeRegistration"]["name"] == "worker-1"
