"""``examples/scenarios``: each is tried as its first lines say, and ``nodewright status`` names what it is about."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.program import Kubectl, Up
from tests.cli.processes import nodewright
from tests.docs.pages import ROOT

pytestmark = pytest.mark.e2e

SCENARIOS = ROOT / "examples" / "scenarios"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Kubectl]:
    with Up(tmp_path_factory.mktemp("scenarios"), kubectl_binary, "--in-memory") as running:
        yield running.kubectl


def status(kubectl: Kubectl, code: int, words: str) -> str:
    """What it says and ends with, once it says these ``words``."""
    deadline = time.monotonic() + 300
    while True:
        shown = nodewright("status", "--kubeconfig", str(kubectl.kubeconfig))
        said = " ".join(shown.stdout.split())
        if shown.returncode == code and words in said:
            return said
        assert time.monotonic() < deadline, shown.stdout + shown.stderr


def start(kubectl: Kubectl, name: str) -> None:
    kubectl("apply", "-f", str(SCENARIOS / f"{name}.yaml"))


def end(kubectl: Kubectl, *names: str) -> None:
    for name in names:
        kubectl("delete", "--wait", "--ignore-not-found", "-f", str(SCENARIOS / f"{name}.yaml"))
    kubectl("wait", "--for=delete", "machines", "--all", "--timeout=240s", timeout=300)


def machines(kubectl: Kubectl) -> set[str]:
    return set(kubectl("get", "machines", "-l", "pool=spot", "-o", "name").split())


def test_a_quota_that_is_used_up(plane: Kubectl) -> None:
    start(plane, "quota")
    plane.wait("jsonpath={.status.readyReplicas}=2", "machineset/crowd")
    said = status(plane, 1, "QuotaExceeded")
    assert "Free or raise the quota" in said
    end(plane, "quota")


def test_a_zone_without_a_host(plane: Kubectl) -> None:
    start(plane, "zone-outage")
    plane.wait("jsonpath={.status.readyReplicas}=3", "machineset/spread")
    said = status(plane, 0, "FailureDomainExhausted")
    assert "zone-b" in said
    header, *rows = plane("get", "machines", "-l", "pool=spread", "-o", "wide").splitlines()
    assert "ZONE" in header.split()
    assert [row for row in rows if "zone-a" not in row.split()] == []
    end(plane, "zone-outage")


@pytest.mark.slow
def test_hosts_that_are_taken_away_are_replaced(plane: Kubectl) -> None:
    start(plane, "spot-loss")
    plane.wait("jsonpath={.status.readyReplicas}=3", "machineset/spot")
    first = machines(plane)
    deadline = time.monotonic() + 600
    while first <= machines(plane):
        assert time.monotonic() < deadline, "of three hosts that last two minutes on average none was lost"
        time.sleep(1)
    end(plane, "spot-loss")


def test_a_drain_that_a_budget_blocks_whatever_other_nodes_there_are(plane: Kubectl) -> None:
    start(plane, "zone-outage")
    plane.wait("jsonpath={.status.readyReplicas}=3", "machineset/spread")
    start(plane, "pdb-blocked")
    plane.wait("condition=Ready", "pod/keep")
    plane("delete", "machineset", "keeper", "--wait=false")
    plane.wait(
        'jsonpath={.status.conditions[?(@.type=="Deleting")].reason}=DrainBlocked', "machine", "-l", "pool=keeper"
    )
    said = status(plane, 1, "PodDisruptionBudget default/keep")
    assert "Give the PodDisruptionBudget room" in said
    plane("delete", "pdb", "keep")
    end(plane, "zone-outage", "pdb-blocked")
