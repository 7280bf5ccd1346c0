"""Who serves an object, as `describe` tells it from the Leases."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from api import names
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_HEALTH_CHECK
from hack.program import Run, Up
from nodewright.cli.election import work_named
from nodewright.reports.tree.branch import Branch, wrong
from nodewright.reports.tree.serving import live, served_by
from nodewright.runtime.election.claims import Claim, Holder
from nodewright.runtime.election.process_identity import this_process
from tests.cli.processes import EXAMPLE, nodewright

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def lease(claims: tuple[Claim, ...], age: float = 1.0, process: Mapping[str, Any] | None = None) -> dict[str, Any]:
    renewed = NOW - timedelta(seconds=age)
    holder = Holder("me", "nodewright run", "host-1", process or {"pid": 7}, claims)
    return {
        "metadata": {
            "name": "nodewright",
            "namespace": names.SYSTEM_NAMESPACE,
            "annotations": {names.LEASE_HOLDER_ANNOTATION: holder.annotation()},
        },
        "spec": {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        },
    }


def machine(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "m", "namespace": "team-a", "labels": labels}}


def told(branch: Branch) -> list[tuple[str, str, str]]:
    return [(line.name, line.state, line.message) for line in branch.children]


def test_the_holder_of_a_live_lease_is_named() -> None:
    branch = served_by(MACHINE, machine(), live([lease(work_named("*", "").claims)], NOW))
    assert told(branch) == [
        (
            "Lease/nodewright-system/nodewright",
            "nodewright run (process 7 on host host-1)",
            "machine with labels !machine.k8s.io/controller",
        )
    ]
    assert not wrong(branch)


@pytest.mark.parametrize(
    "found",
    [
        [],
        [lease(work_named("*,-machine", "").claims)],
        [lease(work_named("*", "").claims, age=60)],
        [lease(work_named("*", "").claims, process={**this_process(), "startTime": 1})],
        [lease(work_named("machine", "zone=west").claims)],
        [lease(work_named("*", "", namespace="team-b").claims)],
    ],
    ids=["no lease", "other controllers", "run out", "killed", "another shard", "another namespace"],
)
def test_nobody_serves_a_machine_without_a_live_lease_for_it(found: list[dict[str, Any]]) -> None:
    branch = served_by(MACHINE, machine(zone="east"), live(found, NOW))
    assert told(branch) == [("nobody", "", "no process runs for it: machine")]
    assert "nodewright run" in branch.children[0].advice
    assert wrong(branch)


def test_of_a_cluster_it_says_which_part_nobody_does() -> None:
    cluster = {"metadata": {"name": "c", "namespace": "team-a"}}
    branch = served_by(CLUSTER, cluster, live([lease(work_named("*,-machine", "").claims)], NOW))
    assert [line[2] for line in told(branch)] == [
        "cluster, machinedeployment, machineset",
        "no process runs for it: machine",
    ]
    assert wrong(served_by(MACHINE_HEALTH_CHECK, cluster, ()))


@pytest.mark.e2e
@pytest.mark.kubectl
def test_describe_says_who_serves_and_that_nobody_does(tmp_path: Path, kubectl_binary: Path) -> None:
    with Up(tmp_path, kubectl_binary, "--in-memory", "--no-controllers") as plane:
        plane.kubectl("apply", "-f", str(EXAMPLE))
        ask = ("describe", "md", "workers", "--kubeconfig", str(plane.kubeconfig))
        shown = nodewright(*ask)
        assert shown.returncode == 1
        assert "no process runs for it: machinedeployment, machineset, machine" in " ".join(shown.stdout.split())
        with Run(tmp_path, plane.kubectl) as run:
            plane.kubectl.wait("jsonpath={.status.availableReplicas}=3", "md/workers")
            plane.kubectl.wait("condition=Available", "md/workers")
            shown = nodewright(*ask)
            assert f"nodewright run (process {run.pid} on host" in shown.stdout
            assert shown.returncode == 0, shown.stdout
        before = plane.kubectl("get", "machines", "-o", "jsonpath={.items[*].metadata.resourceVersion}")
        assert nodewright(*ask).returncode == 1
        assert plane.kubectl("get", "machines", "-o", "jsonpath={.items[*].metadata.resourceVersion}") == before
