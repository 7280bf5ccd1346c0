"""docs/tasks/one-machine.md on a real host: the wheel, the unit of deploy/up, and what systemd does with it."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyrage
import pytest

from hack import binaries
from hack.hosts.guests import Guest
from hack.hosts.lab import Lab, Record
from tests.docs.pages import ROOT, blocks
from tests.hosts.artefacts import wheelhouse
from tests.hosts.joining import until

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]
PAGE = ROOT / "docs" / "tasks" / "one-machine.md"
UNIT = "nodewright-up"
FOLDER = "/var/lib/nodewright/up"
SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Box:
    """The machine that manages clusters."""

    guest: Guest

    def run(self, command: str) -> str:
        """As root, in a folder with what a person has brought along. It has to end with 0."""
        done = self.guest.execute(f"cd /root; {command}")
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}{self.log()}"
        return done.stdout.strip()

    def log(self) -> str:
        return self.guest.execute(f"journalctl -u {UNIT} -n 40 --no-pager").stdout

    def kubectl(self, *arguments: str) -> str:
        return self.run(f"/opt/payload/kubectl --kubeconfig {FOLDER}/kubeconfig {shlex.join(arguments)}")

    def answers(self) -> bool:
        probe = f"/opt/payload/kubectl --kubeconfig {FOLDER}/kubeconfig get machinesets --request-timeout=30s"
        return self.guest.execute(probe).returncode == 0

    def apply(self, obj: dict[str, Any]) -> None:
        self.run(
            f"echo {shlex.quote(json.dumps(obj))} | /opt/payload/kubectl --kubeconfig {FOLDER}/kubeconfig apply -f -"
        )

    def ready(self) -> str:
        return self.kubectl("get", "machineset", "few", "-o", "jsonpath={.status.readyReplicas}")

    def pid(self) -> str:
        """Of the service's process; "0" without."""
        return self.run(f"systemctl show {UNIT} --property MainPID --value")


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory, lab_folder: Path) -> Iterator[Box]:
    """A host with Python and systemd that reaches nobody; wheels and kubectl lie at /opt/payload."""
    folder = tmp_path_factory.mktemp("service")
    lab = Lab.make(folder / "lab")
    try:
        shutil.copytree(wheelhouse(folder / "wheels"), lab.payload / "wheels", ignore=shutil.ignore_patterns("tool"))
        shutil.copy(binaries.ensure("kubectl"), lab.payload / "kubectl")
        guest = lab.guest(lab.start(Record("box", "box", 0, "2026-01-01T00:00:00+00:00", {}), {}))
        shutil.copytree(ROOT / "deploy" / "up", guest.root / "root" / "deploy" / "up")
        guest.wait_booted(SECONDS)
        made = Box(guest)
        made.run("cp /opt/payload/wheels/nodewright-*.whl .")
        yield made
    finally:
        lab.clean()


def as_a_service() -> list[str]:
    """The commands of the page, up to the service that runs."""
    [block] = [block for block in blocks(PAGE) if "runnable" in block.info.split()]
    return [line.removeprefix("$ ") for line in block.text.splitlines()]


def few(replicas: int) -> dict[str, Any]:
    config = {"apiVersion": "simulated.nodewright.dev/v1alpha1", "kind": "SimulatedMachineConfig"}
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "MachineSet",
        "metadata": {"name": "few", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"pool": "few"}},
            "template": {"metadata": {"labels": {"pool": "few"}}, "spec": {"providerConfig": {"value": config}}},
        },
    }


def test_the_unit_serves_after_a_start_a_restart_and_a_kill_and_is_backed_up(box: Box) -> None:
    """One test: each step finds what the one before has left."""
    for command in as_a_service():
        box.run(f"export PIP_NO_INDEX=1 PIP_FIND_LINKS=/opt/payload/wheels; {command}")
    until(box.answers, SECONDS)
    box.apply(few(2))
    until(lambda: box.ready() == "2", SECONDS)
    _is_confined(box)

    began = box.pid()
    box.run(f"systemctl restart {UNIT}")
    until(box.answers, SECONDS)
    assert box.pid() not in ("0", began)
    until(lambda: box.ready() == "2", SECONDS)

    began = box.pid()
    box.run(f"kill -9 {began}")
    until(lambda: box.pid() not in ("0", began) and box.answers(), SECONDS)
    box.apply(few(3))
    until(lambda: box.ready() == "3", SECONDS)

    _is_backed_up(box)
    box.run(f"systemctl stop {UNIT}")
    assert box.run(f"systemctl show {UNIT} --property Result --value") == "success", "SIGTERM ends it well"


def _is_confined(box: Box) -> None:
    """A user of its own, without capabilities, that sees of the machine's folders what it needs."""
    pid = box.pid()
    assert box.run(f"ps -o user= -p {pid}") == "nodewright"
    status = box.run(f"grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/{pid}/status").split()
    assert dict(zip(status[::2], status[1::2], strict=True)) == {
        "CapEff:": "0" * 16, "CapBnd:": "0" * 16, "NoNewPrivs:": "1", "Seccomp:": "2",
    }  # fmt: skip
    modes = box.run(f"stat -c '%U %a' /var/lib/nodewright {FOLDER} {FOLDER}/kubeconfig").splitlines()
    assert modes == ["nodewright 700", "nodewright 700", "nodewright 600"]
    inside = f"nsenter -t {pid} -m setpriv --reuid nodewright --clear-groups"
    assert box.guest.execute(f"{inside} touch /opt/nodewright/mine").returncode != 0


def _is_backed_up(box: Box) -> None:
    """While it runs, by the unit beside it, to a key whose secret half this machine does not have."""
    key = pyrage.x25519.Identity.generate()
    box.run(f"mkdir /etc/nodewright && echo RECIPIENT={key.to_public()} > /etc/nodewright/backup.env")
    box.run("cp deploy/up/nodewright-backup.service deploy/up/nodewright-backup.timer /etc/systemd/system/")
    box.run("systemctl daemon-reload && systemctl start nodewright-backup")
    backup = "/var/lib/nodewright-backups/latest.age"
    assert box.run(f"stat -c '%U %a' {backup}") == "nodewright 600"
    box.run(f"umask 077; echo {key} > key.txt")
    said = box.run(f"/opt/nodewright/bin/nodewright restore {backup} --check --identity-file key.txt")
    assert "MachineSet" in said or "objects" in said, said
