"""Each kind of bad input has its condition, names the field, and harms no other Machine and no host that runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from controllers.kernel.actions import CreateHost
from controllers.kernel.refs import Key
from tests.builders import SIMULATED, machine, machine_class
from tests.controllers.machine.arena import Arena

NOBODY = {"apiVersion": "nobody.example/v1", "kind": "Nothing"}

BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "no config at all": ({}, "InvalidConfiguration", "spec.providerConfig: is required"),
    "both names of the field": (
        {"providerConfig": {"value": SIMULATED}, "providerSpec": {"value": SIMULATED}},
        "InvalidConfiguration",
        "spec.providerSpec: at most one of",
    ),
    "neither value nor valueFrom": ({"providerConfig": {}}, "InvalidConfiguration", "spec.providerConfig: is required"),
    "value and valueFrom": (
        {"providerConfig": {"value": SIMULATED, "valueFrom": {"machineClass": {"name": "c"}}}},
        "InvalidConfiguration",
        "spec.providerConfig.valueFrom: may not be given together",
    ),
    "a provider that is not installed": (
        {"providerConfig": {"value": NOBODY}},
        "ProviderUnknown",
        "spec.providerConfig.value.apiVersion: no installed provider has the config type nobody.example/v1 Nothing",
    ),
    "a config without a kind": (
        {"providerSpec": {"value": {"apiVersion": "x/v1"}}},
        "InvalidConfiguration",
        "spec.providerSpec.value.kind: is required",
    ),
    "a config of a wrong type": (
        {"providerConfig": {"value": {**SIMULATED, "cpus": "many"}}},
        "InvalidConfiguration",
        "spec.providerConfig.value.cpus: must be a whole number, is 'many'",
    ),
    "a misspelt field": (
        {"providerConfig": {"value": {**SIMULATED, "bootSecond": 1}}},
        "InvalidConfiguration",
        "did you mean 'bootSeconds'?",
    ),
    "text that is no YAML": (
        {"providerConfig": "kind: [1"},
        "InvalidConfiguration",
        "spec.providerConfig: the text is neither YAML nor JSON",
    ),
    "text with aliases": (
        {"providerConfig": "a: &a [x]\nb: [*a, *a]"},
        "InvalidConfiguration",
        "aliases are not allowed",
    ),
    "a class of another namespace": (
        {"providerConfig": {"valueFrom": {"machineClass": {"name": "c", "namespace": "other"}}}},
        "InvalidConfiguration",
        "spec.providerConfig.valueFrom.machineClass.namespace: must be the Machine's own namespace 'default'",
    ),
    "a class without a name": (
        {"providerConfig": {"valueFrom": {"machineClass": {}}}},
        "InvalidConfiguration",
        "spec.providerConfig.valueFrom.machineClass.name: must name a MachineClass",
    ),
    "labels that are a list": (
        {"providerConfig": {"value": SIMULATED}, "metadata": {"labels": ["a"]}},
        "InvalidConfiguration",
        "spec.metadata.labels: must be an object, is list",
    ),
    "a version that is a number": (
        {"providerConfig": {"value": SIMULATED}, "versions": {"kubelet": 1.34}},
        "InvalidConfiguration",
        "spec.versions.kubelet: must be a string, is float",
    ),
    "a taint without an effect": (
        {"providerConfig": {"value": SIMULATED}, "taints": [{"key": "gpu"}]},
        "InvalidConfiguration",
        "spec.taints[0]: must have a key and an effect",
    ),
}


def with_spec(spec: dict[str, Any]) -> tuple[Arena, Key]:
    arena = Arena()
    builder = machine("m-1")
    builder.body["spec"] = spec
    return arena, arena.apply(builder)


@pytest.mark.parametrize("case", BAD)
def test_bad_input_fails_the_machine_with_the_field_named(case: str) -> None:
    spec, reason, text = BAD[case]
    arena, key = with_spec(spec)
    arena.run(key, 300)
    status = arena.machine(key)["status"]
    assert arena.condition(key, "InfrastructureReady")["reason"] == reason
    assert arena.condition(key, "Ready")["reason"] == reason
    assert text in status["failureMessage"] == status["errorMessage"]
    assert status["phase"] == "Failed"
    assert status["errorReason"] == "InvalidConfiguration"
    assert arena.writes["POST Event"] == 1
    assert arena.writes["PATCH Machine status"] == 1
    assert not any(isinstance(action, CreateHost) for action in arena.done)


@pytest.mark.parametrize("case", BAD)
def test_mended_input_heals_the_machine(case: str) -> None:
    arena, key = with_spec(BAD[case][0])
    arena.run(key, 120)
    fixed = machine("m-1").build()["spec"]
    cleared = dict.fromkeys(BAD[case][0])
    if isinstance(BAD[case][0].get("providerConfig"), dict):
        cleared["providerConfig"] = {"value": None, "valueFrom": None}
    arena.edit(key, {"spec": cleared})
    arena.edit(key, {"spec": fixed})
    for name in ("bootSecond", "cpus"):
        arena.edit(key, {"spec": {"providerConfig": {"value": {name: None}}}})
    arena.run(key, 120)
    assert arena.condition(key, "Ready")["status"] == "True"
    assert "failureMessage" not in arena.machine(key)["status"]
    assert "errorReason" not in arena.machine(key)["status"]


def test_a_missing_class_is_waited_for_and_is_no_failure() -> None:
    arena, key = with_spec({"providerConfig": {"valueFrom": {"machineClass": {"name": "small"}}}})
    arena.run(key, 60)
    assert arena.condition(key, "Ready")["reason"] == "MachineClassNotFound"
    assert "there is no MachineClass default/small" in arena.condition(key, "Ready")["message"]
    assert arena.machine(key)["status"]["phase"] == "Pending"
    assert "errorReason" not in arena.machine(key)["status"]
    arena.view.put(machine_class("small"))
    arena.run(key)
    assert arena.condition(key, "Ready")["status"] == "True"


@pytest.mark.parametrize(
    ("field", "form"),
    [
        ("providerConfig", {"value": SIMULATED}),
        ("providerConfig", json.dumps(SIMULATED)),
        ("providerConfig", yaml.safe_dump(SIMULATED)),
        ("providerConfig", {"value": json.dumps(SIMULATED)}),
        ("providerSpec", {"value": SIMULATED}),
        ("providerSpec", {"value": json.dumps(SIMULATED)}),
        ("providerSpec", {"value": SIMULATED, "valueFrom": {}}),
    ],
)
def test_all_generations_of_the_config_make_the_same_host(field: str, form: Any) -> None:
    arena, key = with_spec({field: form, "versions": {"kubelet": "1.34.0"}})
    arena.run(key)
    assert arena.condition(key, "Ready")["status"] == "True"
    reference, other = with_spec({"providerConfig": {"value": SIMULATED}, "versions": {"kubelet": "1.34.0"}})
    reference.run(other)
    assert arena.world.hosts()[0].spec_hash == reference.world.hosts()[0].spec_hash


def test_an_edit_that_breaks_the_config_of_a_running_machine_does_not_fail_it() -> None:
    arena, key = with_spec(machine("m-1").build()["spec"])
    arena.run(key)
    arena.edit(key, {"spec": {"providerConfig": {"value": {"cpus": -1}}}})
    arena.run(key, 120)
    status = arena.machine(key)["status"]
    assert arena.condition(key, "UpToDate")["status"] == "False"
    assert "spec.providerConfig.value.cpus" in arena.condition(key, "UpToDate")["message"]
    assert arena.condition(key, "Ready")["status"] == "True"
    assert status["phase"] == "Running"
    assert "errorReason" not in status


def test_a_config_that_only_the_provider_can_refuse_is_terminal_and_heals_with_the_spec() -> None:
    arena, key = with_spec(machine("m-1").provider_config(zone="nowhere", cloud={"zones": {"a": 1}}).build()["spec"])
    arena.run(key, 200)
    status = arena.machine(key)["status"]
    assert status["phase"] == "Failed"
    assert "there is no zone 'nowhere'" in status["failureMessage"]
    arena.edit(key, {"spec": {"providerConfig": {"value": {"zone": "a"}}}})
    arena.run(key, 30)
    assert arena.condition(key, "Ready")["status"] == "True"


def test_a_host_that_does_not_boot_fails_the_machine_for_the_autoscaler_to_see() -> None:
    arena, key = with_spec(machine("m-1").provider_config(bootFailureRate=1).build()["spec"])
    arena.run(key, 120)
    status = arena.machine(key)["status"]
    assert status["phase"] == "Failed"
    assert status["failureMessage"] == "host m-1 failed: the host did not boot; delete the Machine"
    assert "nodeRef" not in status
