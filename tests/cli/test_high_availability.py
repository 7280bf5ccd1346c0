"""Two processes of ``run`` and one Lease: the leader is killed, the other goes on, and no host is made twice.

Terms are short, so that the test is; what is asserted are states, never how long they took.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack.program import Kubectl, Replica, Up
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
        return self.kubectl(
            "-n", "nodewright-system", "get", "lease/nodewright", "-o", "jsonpath={.spec.holderIdentity}"
        )


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


def replica(plane: Plane, name: str) -> Replica:
    return Replica(plane.folder / name, plane.kubectl, *TERMS)


def test_the_other_goes_on_when_the_leader_is_killed_in_the_middle_of_its_work(plane: Plane) -> None:
    with replica(plane, "first") as first, replica(plane, "second") as second:
        plane.kubectl("apply", "-f", str(EXAMPLE))
        plane.kubectl("scale", "machinedeployment/workers", f"--replicas={MACHINES}")
        plane.kubectl.wait(f"jsonpath={{.status.replicas}}={MACHINES}", "machinedeployment/workers")
        leader, other = (first, second) if first.holds(plane.holder()) else (second, first)
        assert leader.stop(signal.SIGKILL) == -signal.SIGKILL
        other.says("ready")
        assert other.holds(plane.holder())
        plane.kubectl.wait(f"jsonpath={{.status.availableReplicas}}={MACHINES}", "machinedeployment/workers")
        assert len(_one_host_each(plane)) == MACHINES
        _loses(plane, other)


def _one_host_each(plane: Plane) -> list[str]:
    """UIDs of the Machines, each of which has exactly one host."""
    uids = [machine["metadata"]["uid"] for machine in plane.kubectl.items("machines")]
    assert Counter(hosts_in(plane.folder / "cloud").values()) == Counter(uids)
    return uids


def _loses(plane: Plane, leader: Replica) -> None:
    """A Lease that names another ends the process: what comes next is a new one, by whoever watches over it."""
    plane.kubectl(
        "-n",
        "nodewright-system",
        "patch",
        "lease/nodewright",
        "--type=merge",
        "-p",
        '{"spec":{"holderIdentity":"somebody"}}',
    )
    assert leader.ended() == 1
    assert "somebody holds it now" in leader.log()
    assert plane.holder() == "somebody"


def test_a_leader_that_was_frozen_wakes_up_to_find_that_it_leads_no_more(plane: Plane) -> None:
    """It can't know how long it slept, so it looks at the clock before each write, and ends."""
    with replica(plane, "first") as first:
        first.says("ready")
        plane.kubectl("apply", "-f", str(EXAMPLE))
        plane.kubectl.wait("jsonpath={.status.replicas}=3", "machinedeployment/workers")
        with replica(plane, "second") as second:
            first.send(signal.SIGSTOP)
            plane.kubectl.wait("jsonpath={.spec.leaseTransitions}=1", "lease/nodewright", "-n", "nodewright-system")
            plane.kubectl("scale", "machinedeployment/workers", f"--replicas={MACHINES}")
            first.send(signal.SIGCONT)
            assert first.ended() == 1
            second.says("ready")
            plane.kubectl.wait(f"jsonpath={{.status.availableReplicas}}={MACHINES}", "machinedeployment/workers")
            _one_host_each(plane)


def test_a_leader_that_stops_in_good_order_lets_go(plane: Plane) -> None:
    with replica(plane, "first") as first:
        first.says("ready")
        assert first.holds(plane.holder())
        assert first.stop() == 0
        assert plane.holder() == ""
