"""Two processes of ``run`` and one Lease: the leader is killed, the other goes on, and no host is made twice.

Terms are short, so that the test is; what is asserted are states, never how long they took.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack.program import Kubectl, Up
from hack.realplane import SERVERS, RealPlane
from tests.cli.hosts import hosts_in
from tests.cli.processes import EXAMPLE, nodewright
from tests.realplane import require

pytestmark = [pytest.mark.slow, pytest.mark.kubectl]

TERMS = (
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=200ms",
)
MACHINES = 8


@dataclass(frozen=True, slots=True)
class Plane:
    folder: Path
    kubectl: Kubectl

    def holder(self) -> str:
        return self.kubectl("get", "lease/nodewright", "-o", "jsonpath={.spec.holderIdentity}")


@contextmanager
def embedded(folder: Path, binary: Path) -> Iterator[Plane]:
    with Up(folder, binary, "--in-memory", "--no-controllers") as up:
        yield Plane(folder, up.kubectl)


@contextmanager
def real(folder: Path, binary: Path) -> Iterator[Plane]:
    require(SERVERS)
    with RealPlane(folder / "plane") as server:
        assert nodewright("install", f"--kubeconfig={server.kubeconfig}").returncode == 0
        yield Plane(folder, Kubectl(binary, server.kubeconfig, folder / "kubectl-cache"))


PLANES = {"embedded": embedded, "real": real}


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.realplane)])
def plane(request: pytest.FixtureRequest, tmp_path: Path, kubectl_binary: Path) -> Iterator[Plane]:
    with PLANES[request.param](tmp_path, kubectl_binary) as running:
        yield running


class Process:
    """One of several `nodewright run`; ended with the test, whatever happens."""

    def __init__(self, plane: Plane, name: str) -> None:
        kubeconfig, cloud = plane.kubectl.kubeconfig, plane.folder / "cloud"
        command = [sys.executable, "-m", "nodewright.cli", "run", f"--kubeconfig={kubeconfig}", "--leader-elect"]
        self.log = plane.folder / f"{name}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, f"--simulated-cloud={cloud}", *TERMS], stdout=subprocess.PIPE, stderr=log, text=True
            )

    def says(self, words: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(words):
                return
        raise AssertionError(f"it ended without saying {words!r}:\n{self.log.read_text()}")

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        with self.process:
            return self.process.wait(30)


@contextmanager
def running(plane: Plane, name: str) -> Iterator[Process]:
    process = Process(plane, name)
    try:
        yield process
    finally:
        process.end(signal.SIGKILL)


def test_the_other_goes_on_when_the_leader_is_killed_in_the_middle_of_its_work(plane: Plane) -> None:
    with running(plane, "first") as first, running(plane, "second") as second:
        first.says("at work while it holds the lease default/nodewright")
        second.says("at work while it holds the lease default/nodewright")
        plane.kubectl("apply", "-f", str(EXAMPLE))
        plane.kubectl("scale", "machinedeployment/workers", f"--replicas={MACHINES}")
        plane.kubectl.wait(f"jsonpath={{.status.replicas}}={MACHINES}", "machinedeployment/workers")
        holder = plane.holder()
        leader, other = (first, second) if f"_{first.process.pid}_" in holder else (second, first)
        assert leader.end(signal.SIGKILL) == -signal.SIGKILL
        other.says("ready")
        assert f"_{other.process.pid}_" in plane.holder()
        plane.kubectl.wait(f"jsonpath={{.status.availableReplicas}}={MACHINES}", "machinedeployment/workers")
        machines = plane.kubectl.items("machines")
        assert Counter(hosts_in(plane.folder / "cloud").values()) == Counter(m["metadata"]["uid"] for m in machines)
        assert len(machines) == MACHINES
        _loses(plane, other)


def _loses(plane: Plane, leader: Process) -> None:
    """A Lease that names another ends the process: what comes next is a new one, by whoever watches over it."""
    plane.kubectl("patch", "lease/nodewright", "--type=merge", "-p", '{"spec":{"holderIdentity":"somebody"}}')
    assert leader.process.wait(30) == 1
    assert "somebody holds it now" in leader.log.read_text()
    assert plane.holder() == "somebody"


def test_a_leader_that_was_frozen_wakes_up_to_find_that_it_leads_no_more(plane: Plane) -> None:
    """It can't know how long it slept, so it looks at the clock before each write, and ends."""
    with running(plane, "first") as first:
        first.says("ready")
        plane.kubectl("apply", "-f", str(EXAMPLE))
        plane.kubectl.wait("jsonpath={.status.replicas}=3", "machinedeployment/workers")
        with running(plane, "second") as second:
            second.says("at work while it holds the lease")
            first.process.send_signal(signal.SIGSTOP)
            plane.kubectl.wait("jsonpath={.spec.leaseTransitions}=1", "lease/nodewright")
            plane.kubectl("scale", "machinedeployment/workers", f"--replicas={MACHINES}")
            first.process.send_signal(signal.SIGCONT)
            assert first.process.wait(30) == 1
            second.says("ready")
            plane.kubectl.wait(f"jsonpath={{.status.availableReplicas}}={MACHINES}", "machinedeployment/workers")
            machines = plane.kubectl.items("machines")
            assert Counter(hosts_in(plane.folder / "cloud").values()) == Counter(m["metadata"]["uid"] for m in machines)


def test_a_leader_that_stops_in_good_order_lets_go(plane: Plane) -> None:
    with running(plane, "first") as first:
        first.says("ready")
        assert f"_{first.process.pid}_" in plane.holder()
        assert first.end(signal.SIGTERM) == 0
        assert plane.holder() == ""
