"""An API server warns of fields that no kind of Nodewright has, by policies made from the CRDs. They refuse nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack import field_policy
from hack.program import Kubectl
from hack.realplane import RealPlane
from tests.api.samples import examples
from tests.docs.pages import ROOT

FOLDER = ROOT / "deploy" / "components" / "unknown-fields"
SECONDS = 300.0
"""A policy counts some seconds after it was made."""


def by_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each["spec"] for each in field_policy.documents() if each["kind"] == kind}


def test_what_lies_in_the_folder_is_current() -> None:
    assert field_policy.main(["--check"]) == 0


def test_every_policy_only_warns_and_fails_open() -> None:
    policies, bindings = by_kind("ValidatingAdmissionPolicy"), by_kind("ValidatingAdmissionPolicyBinding")
    assert {name.split("-")[1] for name in policies} == {
        "machine", "machineset", "machinedeployment", "cluster", "controlplane",
    }  # fmt: skip
    assert {name: spec["policyName"] for name, spec in bindings.items()} == {name: name for name in policies}
    assert all(spec["validationActions"] == ["Warn"] for spec in bindings.values())
    assert all(spec["failurePolicy"] == "Ignore" for spec in policies.values())


@pytest.fixture(scope="module")
def kubectl(real_plane: RealPlane, kubectl_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("policies")
    run = Kubectl(kubectl_binary, real_plane.kubeconfig, folder / "cache")
    run("create", "-f", str(FOLDER / "policies.yaml"))
    yield run
    run("delete", "-f", str(FOLDER / "policies.yaml"), "--wait")


def machine(**fields: Any) -> dict[str, Any]:
    config = {"apiVersion": "simulated.nodewright.dev/v1alpha1", "kind": "SimulatedMachineConfig"}
    spec = {"providerConfig": {"value": config}, **fields}
    head = {"apiVersion": "cluster.k8s.io/v1alpha1", "kind": "Machine"}
    return {**head, "metadata": {"name": "warned", "namespace": "default"}, "spec": spec}


def warnings(kubectl: Kubectl, obj: dict[str, Any]) -> str:
    done = kubectl.run("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(obj))
    assert done.code == 0, done.err
    return done.err


@pytest.mark.realplane
@pytest.mark.slow
@pytest.mark.parametrize("name", examples())
def test_a_real_server_takes_what_is_spelt_right_without_a_word(kubectl: Kubectl, name: str) -> None:
    wait_for_policies(kubectl)
    assert "nodewright-" not in warnings(kubectl, examples()[name])


@pytest.mark.realplane
@pytest.mark.slow
def test_a_real_server_takes_a_misspelt_field_and_warns(kubectl: Kubectl) -> None:
    wait_for_policies(kubectl)
    shown = warnings(kubectl, machine(verions={"kubelet": "1.34.4"}, nodeDrainTimout="3m"))
    assert "spec has fields that Nodewright does not know: " in shown
    assert "verions" in shown
    assert "nodeDrainTimout" in shown


def wait_for_policies(kubectl: Kubectl) -> None:
    kinds = {"MachineSet": "machineset", "MachineDeployment": "machinedeployment"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": machine(typo=1)["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = [{**machine(), "kind": kind, "spec": spec} for kind in kinds]
    end = time.monotonic() + SECONDS
    for obj in [machine(typo=1), *made]:
        while "typo" not in warnings(kubectl, obj):
            assert time.monotonic() < end, f"no warning for {obj['kind']}"
