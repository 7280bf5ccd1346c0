"""``run``: the controllers as an operator beside an API server that knows nothing of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.program import Run, Up
from nodewright.cli.election import reconcilers_named
from tests.cli.processes import EXAMPLE


@pytest.fixture
def server(tmp_path: Path, kubectl_binary: Path) -> Iterator[Up]:
    with Up(tmp_path, kubectl_binary, "--in-memory", "--no-controllers") as running:
        yield running


@pytest.mark.e2e
def test_it_turns_machines_into_nodes_and_goes_on_after_a_restart(server: Up, tmp_path: Path) -> None:
    with Run(tmp_path, server.kubectl, f"--simulated-cloud={tmp_path / 'cloud'}") as controllers:
        server.kubectl("apply", "-f", str(EXAMPLE))
        server.kubectl.wait("jsonpath={.status.availableReplicas}=3", "machinedeployment/workers")
        before = server.kubectl.items("machines")
        assert controllers.stop() == 0
        server.kubectl("scale", "machinedeployment/workers", "--replicas=4")
        controllers.start()
        server.kubectl.wait("jsonpath={.status.availableReplicas}=4", "machinedeployment/workers")
        after = {m["metadata"]["uid"]: m["spec"]["providerID"] for m in server.kubectl.items("machines")}
        assert {m["metadata"]["uid"]: m["spec"]["providerID"] for m in before}.items() <= after.items()
        assert controllers.stop() == 0


def test_a_controller_that_has_to_be_named_comes_on_top_of_all() -> None:
    usual = [reconciler.name for reconciler in reconcilers_named("*")]
    assert "machine" in usual
    assert "certificatesigningrequest" not in usual
    assert [reconciler.name for reconciler in reconcilers_named("*,certificatesigningrequest")] == [
        *usual,
        "certificatesigningrequest",
    ]
    assert [reconciler.name for reconciler in reconcilers_named("certificatesigningrequest")] == [
        "certificatesigningrequest"
    ]


@pytest.mark.e2e
def test_only_the_controllers_that_are_named_work(server: Up, tmp_path: Path) -> None:
    with Run(tmp_path, server.kubectl, "--controllers=machinedeployment,machineset") as controllers:
        server.kubectl("apply", "-f", str(EXAMPLE))
        server.kubectl.wait("jsonpath={.status.replicas}=3", "machinedeployment/workers")
        machines = server.kubectl.items("machines")
        assert len(machines) == 3
        assert all("providerID" not in json.dumps(m["spec"]) for m in machines)
        assert controllers.stop() == 0
