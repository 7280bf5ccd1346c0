"""The examples are objects that the simulated provider and the API accept."""

from __future__ import annotations

from typing import Any

import pytest

from api.providerconfig import read, read_class
from nodewright.cli.examples import TEXT
from providers.simulated.config import KIND, SimulatedMachineConfig
from tests.api.samples import EXAMPLES, examples


def _configurations() -> dict[str, Any]:
    found = {}
    for name, obj in examples().items():
        spec = obj.get("spec", {})
        config = (
            read_class(obj) if obj["kind"] == "MachineClass" else read(spec.get("template", {}).get("spec") or spec)
        )
        if config and config.value is not None:
            found[name] = config
    return found


CONFIGURATIONS = _configurations()


def test_all_examples_are_there() -> None:
    want = {"cluster.yaml", "machineset.yaml", "machine.yaml", "legacy-string.yaml"}
    assert want <= {file.name for file in EXAMPLES.glob("*.yaml")}


def test_the_package_carries_the_cluster_example_as_it_is() -> None:
    assert (EXAMPLES / "cluster.yaml").read_text() == TEXT


def test_the_cluster_example_asks_for_three_simulated_machines() -> None:
    deployment = examples()["cluster.yaml MachineDeployment"]
    assert deployment["spec"]["replicas"] == 3
    assert (
        deployment["spec"]["template"]["spec"]["clusterName"] == examples()["cluster.yaml Cluster"]["metadata"]["name"]
    )
    assert CONFIGURATIONS["cluster.yaml MachineDeployment"].kind == KIND


def test_a_reference_in_the_examples_names_a_class_in_the_same_file() -> None:
    config = read(examples()["machineset.yaml MachineSet"]["spec"]["template"]["spec"])
    assert config is not None
    assert config.machine_class_ref is not None
    assert config.machine_class_ref.name == examples()["machineset.yaml MachineClass"]["metadata"]["name"]


SIMULATED = {name: config for name, config in CONFIGURATIONS.items() if config.kind == KIND}


@pytest.mark.parametrize("config", SIMULATED.values(), ids=SIMULATED.keys())
def test_simulated_configurations_are_accepted_by_their_provider(config: Any) -> None:
    assert SimulatedMachineConfig.model_validate(config.value)


def test_only_the_kubermatic_manifest_needs_another_provider() -> None:
    assert set(CONFIGURATIONS) - set(SIMULATED) == {"kubermatic-style.yaml MachineDeployment"}
