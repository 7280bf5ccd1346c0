"""Two processes on one cluster, as a person starts them: one works, whatever options the other has."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.program import Run, Up
from tests.cli.processes import EXAMPLE

pytestmark = pytest.mark.e2e

LONG = ("--leader-elect-lease-duration=1h", "--leader-elect-renew-deadline=50m")
"""With it nobody can take a Lease because it has run out."""
NARROWED = [
    pytest.param(("--controllers=machine", *more), marks=pytest.mark.e2e) for more in ((), ("--machine-selector=x",))
]


class Second(Run):
    opening = "waiting: "


@pytest.fixture
def up(tmp_path: Path, kubectl_binary: Path) -> Iterator[Up]:
    with Up(tmp_path, kubectl_binary, f"--data-dir={tmp_path / 'data'}") as running:
        yield running


def run_beside(up: Up, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nodewright.cli", *arguments, f"--kubeconfig={up.kubeconfig}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=up.folder)


@pytest.mark.kubectl
@pytest.mark.parametrize("flags", [(), *NARROWED])
def test_run_beside_up_waits_and_changes_nothing(up: Up, flags: tuple[str, ...]) -> None:
    up.kubectl("apply", "-f", str(EXAMPLE))
    up.kubectl.wait("condition=Available", "md/workers")
    before = {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in up.kubectl.items("machines")}
    other = up.folder / "other"
    other.mkdir()
    with Second(other, up.kubectl, *flags) as second:
        assert f"waiting: nodewright up (process {up.pid} on host" in second.spoken
        assert "serves cluster, " in second.spoken
        # What the other does: a whole round of everything it would have begun with.
        up.kubectl("scale", "md/workers", "--replicas=4")
        up.kubectl.wait("jsonpath={.status.readyReplicas}=4", "md/workers")
    after = {each["metadata"]["name"]: each for each in up.kubectl.items("machines")}
    assert before.keys() <= after.keys()
    assert {each["status"]["phase"] for each in after.values()} == {"Running"}


@pytest.mark.kubectl
def test_run_that_is_not_to_wait_says_who_works(up: Up) -> None:
    done = run_beside(up, "run", "--no-leader-elect")
    assert done.returncode == 1
    assert f"another process is at work: nodewright up (process {up.pid} on host" in done.stderr
    assert "leave --no-leader-elect out to stand by" in done.stderr


@pytest.mark.kubectl
def test_up_that_was_killed_works_at_once_again(up: Up) -> None:
    up.kubectl("apply", "-f", str(EXAMPLE))
    up.kubectl.wait("condition=Available", "md/workers")
    up.stop(signal.SIGKILL)
    up.start()
    up.kubectl("scale", "md/workers", "--replicas=4")
    up.kubectl.wait("jsonpath={.status.readyReplicas}=4", "md/workers")


@pytest.mark.kubectl
def test_run_that_was_killed_works_at_once_again_whatever_its_lease_says(tmp_path: Path, kubectl_binary: Path) -> None:
    with Up(tmp_path, kubectl_binary, "--in-memory", "--no-controllers") as plane:
        cloud = f"--simulated-cloud={tmp_path / 'cloud'}"
        with Run(tmp_path, plane.kubectl, cloud, *LONG) as run:
            run.stop(signal.SIGKILL)
            run.start()
        with Run(tmp_path, plane.kubectl, cloud, "--controllers=machine", *LONG) as run:
            run.stop(signal.SIGKILL)
            with Run(tmp_path, plane.kubectl, cloud):
                pass


@pytest.mark.kubectl
def test_up_serves_beside_a_run_that_works_and_takes_over_when_that_ends(tmp_path: Path, kubectl_binary: Path) -> None:
    data = f"--data-dir={tmp_path / 'data'}"
    other = tmp_path / "other"
    other.mkdir()
    with Up(tmp_path, kubectl_binary, data, "--no-controllers") as up, Run(other, up.kubectl, *LONG) as run:
        up.stop()
        with Up(tmp_path, kubectl_binary, data) as again:
            assert "waiting: nodewright run (process" in again.spoken
            run.stop()
            again.kubectl("apply", "-f", str(EXAMPLE))
            again.kubectl.wait("condition=Available", "md/workers")


@pytest.mark.kubectl
def test_up_that_has_lost_its_lease_serves_on_and_its_controllers_begin_anew(up: Up) -> None:
    """As after the sleep of a laptop: the plane must not end with the controllers."""
    lease = ("lease/nodewright", "--namespace=nodewright-system")
    up.kubectl.until("plane-", "get", *lease, "-o", "jsonpath={.spec.holderIdentity}")
    up.kubectl("patch", *lease, "--type=merge", "-p", '{"spec":{"holderIdentity":"somebody"}}')
    up.says("waiting: somebody holds the Lease")
    assert "the controllers have stopped and begin anew" in up.log()
    up.kubectl("delete", *lease)
    up.kubectl("apply", "-f", str(EXAMPLE))
    up.kubectl.wait("condition=Available", "md/workers")
