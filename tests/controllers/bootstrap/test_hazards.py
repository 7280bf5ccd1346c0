"""The hazard table: what each rule finds and leaves alone, and the real kubeadm and kubelet as judges of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.bootstrap import hazards as table
from controllers.bootstrap.hazards import Context, hazards
from controllers.kernel.version import parse
from hack import binaries

V1BETA3, V1BETA4 = "kubeadm.k8s.io/v1beta3", "kubeadm.k8s.io/v1beta4"
UPGRADE = {"control_plane": True, "kubelet_client_binding": True, "etcd_version": "3.5.26"}
CASES: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("", "1.36.3", {}, []),
    ("", "v1.36.3", {"cluster_version": "v1.36.0"}, []),
    ("", "1.36.3", {"cluster_version": "1.35.9"}, ["kubelet-newer-than-api-server"]),
    ("", "1.36.3", {"cluster_version": "1.35.9-eks-1a2b"}, ["kubelet-newer-than-api-server"]),
    ("", "1.35.0", {"cluster_version": "1.36.0+k3s1"}, ["kubeadm-older-than-cluster"]),
    ("", "1.33.0", {"cluster_version": "1.36.3"}, ["kubeadm-older-than-cluster"]),
    ("", "1.32.9", {"cluster_version": "1.36.3"}, ["kubelet-too-old", "kubeadm-older-than-cluster"]),
    ("", "1.30.14", {}, ["kubeadm-without-v1beta4"]),
    ("", "1.30.14", {"kubeadm_api": V1BETA3}, []),
    ("", "1.31.0", {}, []),
    ("", "1.36.3", {"kubeadm_api": V1BETA3}, ["kubeadm-v1beta3-deprecated"]),
    ("", "1.37.0-rc.1", {"kubeadm_api": V1BETA3}, ["kubeadm-v1beta3-gone"]),
    ("", "1.37.2", {"kubeadm_api": V1BETA4}, []),
    ("", "1.35.4", {"kubeadm_gates": ("ControlPlaneKubeletLocalMode",)}, []),
    ("", "1.36.0", {"kubeadm_gates": ("ControlPlaneKubeletLocalMode",)}, ["kubeadm-gate-unknown"]),
    ("", "1.36.0", {"kubeadm_gates": ("NeverHeardOf", "{new.x}")}, ["kubeadm-gate-unknown"] * 2),
    ("", "1.45.0", {"kubeadm_gates": ("OfTheFuture",)}, []),
    ("", "1.34.9", {"kubelet_args": {"pod-infra-container-image": "pause"}}, []),
    ("", "1.35.0", {"kubelet_args": {"pod-infra-container-image": "pause", "node-ip": "::"}}, ["kubelet-flag-removed"]),
    ("", "1.34.9", {"cgroup": "v1"}, []),
    ("", "1.35.0", {"cgroup": "v2"}, []),
    ("", "1.35.0", {"cgroup": "v1"}, ["cgroup-v1"]),
    ("", "1.35.0", {"cgroup": "v1", "kubelet_configuration": {"failCgroupV1": True}}, ["cgroup-v1"]),
    ("", "1.35.0", {"cgroup": "v1", "kubelet_configuration": {"failCgroupV1": False}}, ["cgroup-v1-deprecated"]),
    ("", "1.35.0", {"container_runtime": "containerd/1.7.24"}, ["containerd-without-runtime-config"]),
    ("", "1.34.0", {"container_runtime": "containerd/1.7.24"}, []),
    ("", "1.37.0", {"container_runtime": "containerd/2.0.0"}, []),
    ("", "1.37.0", {"container_runtime": "containerd"}, []),
    ("", "1.33.9", {"encryption_algorithm": "ECDSA-P384"}, ["ecdsa-p384"]),
    ("", "1.34.0", {"encryption_algorithm": "ECDSA-P384"}, []),
    ("1.33.13", "1.34.4", UPGRADE, []),
    ("1.33.13", "1.34.4", {**UPGRADE, "etcd_version": "3.5.24"}, ["etcd-revived-members"]),
    ("1.33.13", "1.34.4", {**UPGRADE, "etcd_version": ""}, ["etcd-revived-members"]),
    ("1.33.13", "1.34.4", {**UPGRADE, "etcd_version": "", "external_etcd": True}, []),
    ("1.34.4", "1.35.4", {**UPGRADE, "etcd_version": "3.5.24"}, []),
    ("1.34.6", "1.35.5", {**UPGRADE, "kubelet_client_binding": False}, ["apiserver-kubelet-client"]),
    ("1.34.6", "1.35.5", UPGRADE, []),
    ("1.36.0", "1.36.3", {**UPGRADE, "kubelet_client_binding": False}, ["apiserver-kubelet-client"]),
    ("1.36.3", "1.37.2", {**UPGRADE, "kubelet_client_binding": False}, []),
    ("1.35.5", "1.36.3", {**UPGRADE, "kubelet_client_binding": False}, []),
    ("1.34.4", "1.35.4", {**UPGRADE, "kubelet_client_binding": False}, []),
    ("1.34.6", "1.35.5", {**UPGRADE, "control_plane": False, "kubelet_client_binding": False}, []),
    ("1.34.4", "1.36.0", UPGRADE, ["control-plane-skips-a-minor"]),
    ("1.36.0", "1.35.9", UPGRADE, ["control-plane-downgrade"]),
    ("1.36.3", "1.36.0", UPGRADE, []),
    ("1.33.0", "1.36.0", {}, []),
    ("nonsense", "1.36.0", {}, []),
    ("", "", {"cgroup": "v1"}, []),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "known", "want"), CASES)
def test_each_rule_finds_its_hazard_and_no_other(old: str, new: str, known: dict[str, Any], want: list[str]) -> None:
    assert [hazard.id for hazard in hazards(old, new, Context(**known))] == want


def test_every_rule_has_a_case_that_it_finds_and_says_what_to_do() -> None:
    found = {hazard.id: hazard for old, new, known, _ in CASES for hazard in hazards(old, new, Context(**known))}
    assert list(dict.fromkeys(rule.id for rule in table.RULES)) == [rule.id for rule in table.RULES]
    assert set(found) == {rule.id for rule in table.RULES}
    for hazard in found.values():
        assert all((hazard.field, hazard.text, hazard.remedy, hazard.source)), hazard.id
        assert "{" not in hazard.message.replace("{new.x}", ""), hazard.message


texts = st.one_of(st.text(max_size=20), st.from_regex(r"v?[12]\.(2[0-9]|3[0-9])\.[0-9]{1,2}", fullmatch=True))


@given(texts, texts, st.builds(
    Context, st.booleans(), texts, st.builds("containerd/{}".format, texts), st.sampled_from(["", "v1", "v2"]),
    st.dictionaries(st.sampled_from(["failCgroupV1", "x"]), st.none() | st.booleans()),
    st.dictionaries(st.sampled_from(["container-runtime", "x"]), texts),
    st.lists(texts, max_size=3).map(tuple), st.sampled_from(["", V1BETA3, V1BETA4]), texts, texts, st.booleans(),
))  # fmt: skip
def test_any_input_is_answered_and_no_answer_is_long(old: str, new: str, context: Context) -> None:
    for hazard in hazards(old, new, context):
        assert len(hazard.message) < 400
        assert parse(new) is not None


def test_a_new_host_of_the_same_version_has_no_hazard_in_any_supported_version() -> None:
    for minor in range(31, 38):
        version = f"1.{minor}.0"
        assert hazards("", version, Context(cluster_version=version, cgroup="v2")) == ()


KUBEADM, KUBELET = binaries.find("kubeadm"), binaries.find("kubelet")
PINNED = binaries.kubernetes_version()
needs_kubeadm = pytest.mark.skipif(KUBEADM is None, reason=f"kubeadm not found: {binaries.REMEDY}")
needs_kubelet = pytest.mark.skipif(KUBELET is None, reason=f"kubelet not found: {binaries.REMEDY}")


def validated(folder: Path, **document: Any) -> subprocess.CompletedProcess[str]:
    """What kubeadm itself says of a ClusterConfiguration."""
    file = folder / "cluster.json"
    base = {"apiVersion": V1BETA4, "kind": "ClusterConfiguration", "kubernetesVersion": PINNED}
    file.write_text(json.dumps({**base, **document}))
    command = [str(KUBEADM), "config", "validate", "--config", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def refusals(**known: Any) -> list[str]:
    return [hazard.id for hazard in hazards("", PINNED, Context(**known)) if hazard.kind == "refuse"]


@needs_kubeadm
@pytest.mark.parametrize("gate", [*table.KUBEADM_GATES, "NeverHeardOf"])
def test_kubeadm_itself_knows_the_gates_that_the_table_says_it_knows(tmp_path: Path, gate: str) -> None:
    done = validated(tmp_path, featureGates={gate: False})
    assert (done.returncode == 0) == (refusals(kubeadm_gates=(gate,)) == []), done.stderr


@needs_kubeadm
def test_the_table_has_every_gate_that_kubeadm_itself_has() -> None:
    text = subprocess.run([str(KUBEADM), "init", "--help"], capture_output=True, text=True, check=True).stdout
    gates = {word.split("=")[0] for word in text.split() if word.endswith("=true|false")}
    minor = (parse(PINNED) or (0, 0, 0))[1]
    assert gates == {name for name, (first, last) in table.KUBEADM_GATES.items() if first <= minor <= last}


@needs_kubeadm
@pytest.mark.parametrize("api", [V1BETA3, V1BETA4])
def test_kubeadm_itself_reads_the_versions_of_its_documents_that_the_table_says(tmp_path: Path, api: str) -> None:
    done = validated(tmp_path, apiVersion=api)
    assert (done.returncode == 0) == (refusals(kubeadm_api=api) == []), done.stderr
    deprecated = "deprecated" in done.stderr
    warned = [hazard.id for hazard in hazards("", PINNED, Context(kubeadm_api=api)) if hazard.kind == "warn"]
    assert deprecated == bool(warned)


@needs_kubeadm
@pytest.mark.parametrize("algorithm", ["ECDSA-P384", "ECDSA-P256"])
def test_kubeadm_itself_takes_the_algorithms_that_the_table_says(tmp_path: Path, algorithm: str) -> None:
    done = validated(tmp_path, encryptionAlgorithm=algorithm)
    assert (done.returncode == 0) == (refusals(encryption_algorithm=algorithm) == []), done.stderr


@needs_kubelet
@pytest.mark.parametrize("flag", [*table.KUBELET_FLAGS, "node-ip", "container-runtime-endpoint"])
def test_the_kubelet_itself_does_not_know_the_flags_that_the_table_says_are_gone(flag: str) -> None:
    done = subprocess.run([str(KUBELET), f"--{flag}=1", "--version"], capture_output=True, text=True, check=False)
    assert ("unknown flag" in done.stderr) == (refusals(kubelet_args={flag: "1"}) != [])


def test_the_documentation_has_the_table() -> None:
    text = (Path(__file__).parents[3] / "docs/tasks/join.md").read_text()
    assert "\n".join(table.rows()) in text
