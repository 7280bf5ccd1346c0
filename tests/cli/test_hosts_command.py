"""``nodewright hosts``: against a real API server, and hosts behind real SSH."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh
import pytest
import pytest_asyncio

from hack.program import Kubectl, Up
from nodewright.cli import main
from nodewright.cli.exits import FAILED, OK, USAGE
from nodewright.cli.hosts.showing import Checked, checked_lines, pools_lines
from providers.ssh.checkup import Finding, findings
from providers.ssh.pool import read
from tests.providers.sshworld import POOL, SECRET, USER_KEY, World

NOW = 1_800_000_000.0
GOOD = {
    "init": "systemd", "system": "debian 12", "machine": "x86_64", "time": str(int(NOW)), "memory": "4096",
    "disk": "20000", "missing": "",
}  # fmt: skip


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Kubectl]:
    with Up(tmp_path_factory.mktemp("hosts"), kubectl_binary, "--in-memory", "--no-controllers") as running:
        yield running.kubectl


@dataclass(frozen=True, slots=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Scene:
    kubectl: Kubectl
    world: World
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    async def __call__(self, *arguments: str, answer: str = "") -> Done:
        """In a thread with a loop of its own: the hosts answer meanwhile. ``answer``: what a person types."""
        self.monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        self.capsys.readouterr()
        line = ["hosts", *arguments, "--kubeconfig", str(self.kubectl.kubeconfig)]
        code = await asyncio.to_thread(main.run, line)
        said = self.capsys.readouterr()
        return Done(code, said.out, said.err)

    def entries(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.kubectl.json("get", "sshhostpool", POOL)["spec"]["hosts"]
        return found


@pytest_asyncio.fixture
async def scene(
    plane: Kubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Scene]:
    world = World(tmp_path, 2, {})
    await world.up()
    key = base64.b64encode(USER_KEY.export_private_key()).decode()
    pool = {**world.objects.pool, "metadata": {"name": POOL, "namespace": "default"}}
    secret = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": "default"},
        "type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": key},
    }  # fmt: skip
    for obj in (secret, pool):
        await asyncio.to_thread(plane, "apply", "-f", "-", stdin=json.dumps(obj))
    yield Scene(plane, world, capsys, monkeypatch)
    await asyncio.to_thread(plane, "delete", "sshhostpool", POOL)
    await world.down()


@pytest.mark.kubectl
async def test_the_hosts_are_listed_as_they_were_seen_last(scene: Scene) -> None:
    status = {
        "h1": {"state": "Claimed", "machine": "default/m-1"},
        "h2": {"state": "Unreachable", "reason": "no answer"},
    }
    patch = json.dumps({"status": {"hosts": status}})
    await asyncio.to_thread(
        scene.kubectl, "patch", "sshhostpool", POOL, "--subresource=status", "--type=merge", f"--patch={patch}"
    )
    shown = (await scene("list")).stdout.splitlines()
    assert shown[0].split() == ["POOL", "HOST", "ADDRESS", "STATE", "ZONE", "MACHINE"]
    assert [line.split()[1] for line in shown[1:3]] == ["h1", "h2"]
    assert shown[3].strip() == "no answer"
    (pool,) = json.loads((await scene("list", POOL, "-o", "json")).stdout)["pools"]
    assert [host["state"] for host in pool["hosts"]] == ["Claimed", "Unreachable"]


@pytest.mark.kubectl
async def test_hosts_are_looked_at_and_those_with_a_problem_are_named(scene: Scene) -> None:
    done = await scene("check", POOL, "h1")
    assert (done.returncode, done.stderr) == (OK, "")
    assert done.stdout.split()[:2] == ["✔", "h1"]
    await scene.world.hosts["h2"].down()
    done = await scene("check", POOL, "-o", "json")
    assert done.returncode == FAILED
    first, second = json.loads(done.stdout)["hosts"]
    assert first["findings"] == []
    assert "can't be reached" in second["findings"][0]["problem"]
    assert "sshd" in second["findings"][0]["remedy"]


@pytest.mark.kubectl
async def test_a_quarantined_host_is_released_when_a_person_says_so(scene: Scene) -> None:
    host = scene.world.hosts["h1"]
    done = await scene("release", POOL, "h1", "--yes")
    assert done.returncode == FAILED
    assert "is not in quarantine" in done.stderr
    host.home.mkdir(parents=True)
    (host.home / "quarantine").write_text("the kubelet still runs\n")
    done = await scene("release", POOL, "h1")  # nobody is there to answer
    assert done.returncode != OK
    assert "the kubelet still runs" in done.stdout
    assert (host.home / "quarantine").exists()
    assert (await scene("release", POOL, "h1", answer="y\n")).returncode == OK
    assert not (host.home / "quarantine").exists()


@pytest.mark.kubectl
async def test_a_host_that_is_a_machines_is_not_released(scene: Scene) -> None:
    host = scene.world.hosts["h1"]
    host.home.mkdir(parents=True)
    (host.home / "quarantine").write_text("left\n")
    (host.home / "claim").write_text("0123456789ab\n{}\n")
    done = await scene("release", POOL, "h1", "--yes")
    assert (done.returncode, (host.home / "quarantine").exists()) == (FAILED, True)
    assert "is a Machine's" in done.stderr


@pytest.mark.kubectl
async def test_a_host_is_added_with_the_key_that_it_shows_if_that_is_the_right_one(scene: Scene) -> None:
    host = scene.world.hosts["h2"]
    known = host.key.convert_to_public().get_fingerprint()
    wanted = ("add", POOL, "h3", "127.0.0.1", f"--port={host.port}", "--zone=a", "--label=disk=ssd")
    done = await scene(*wanted, "--fingerprint=SHA256:another")
    assert done.returncode == FAILED
    assert known in done.stderr
    assert (await scene(*wanted)).returncode != OK  # nobody is there to answer
    assert len(scene.entries()) == 2
    assert (await scene(*wanted, f"--fingerprint={known}")).returncode == OK
    added = scene.entries()[2]
    assert (added["name"], added["zone"], added["labels"]) == ("h3", "a", {"disk": "ssd"})
    assert asyncssh.import_public_key(added["hostKeys"][0]) == host.key.convert_to_public()
    assert (await scene("check", POOL, "h3")).returncode == OK
    assert "already" in (await scene(*wanted, "--yes")).stderr


@pytest.mark.kubectl
async def test_what_is_not_there_is_said(scene: Scene) -> None:
    assert "there is no SSHHostPool default/nobody" in (await scene("check", "nobody")).stderr
    assert "has no host h9" in (await scene("check", POOL, "h9")).stderr
    done = await scene("add", POOL, "h4", "127.0.0.1", "--label=no-equals-sign")
    assert done.returncode == USAGE


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({"init": "sh"}, "process 1 is sh"),
        ({"missing": "flock\nsha256sum"}, "flock, sha256sum not found"),
        ({"fetcher": "curl"}, "neither curl nor wget"),
        ({"time": str(int(NOW) + 300)}, "its clock is 300 s ahead"),
        ({"time": str(int(NOW) - 300)}, "its clock is 300 s behind"),
        ({"memory": "256"}, "256 MiB of memory"),
        ({"disk": "100"}, "100 MiB free"),
        ({"joined": "yes"}, "it is a Node already"),
        ({"kubelet": "yes"}, "it is a Node already"),
        ({"quarantine": "the kubelet\nstill runs"}, "quarantined: the kubelet still runs"),
    ],
)
def test_each_problem_is_found_alone_and_has_a_remedy(told: dict[str, str], problem: str) -> None:
    assert findings(GOOD, NOW) == ()
    (found,) = findings({**GOOD, **told}, NOW)
    assert problem in found.problem
    assert found.remedy


@pytest.mark.parametrize("told", [{}, {"time": "x", "memory": "é", "disk": "-"}])
def test_any_answer_is_read(told: dict[str, str]) -> None:
    assert findings(told, NOW)


def test_a_claimed_host_is_a_node_by_right() -> None:
    assert findings({**GOOD, "joined": "yes", "kubelet": "yes", "claim": "{}"}, NOW) == ()


def test_rows_fit_the_screen() -> None:
    hosts = [{"name": f"rack-{n}", "address": f"10.0.0.{n}", "hostKeys": ["ssh-ed25519 AAAA"]} for n in range(3)]
    spec = {"secretName": "key", "hosts": hosts}
    status = {"hosts": {"rack-0": {"state": "Claimed", "machine": "default/workers-x7k2p-0"}}}
    pool = read({"metadata": {"name": "racks"}, "spec": spec, "status": status})
    assert max(line.cell_len for line in pools_lines([pool])) <= 80
    assert "docs/providers/ssh.md" in str(pools_lines([])[0])
    here, there = ({**pool.object, "metadata": {"name": "racks", "namespace": name}} for name in ("a", "b"))
    rows = [str(line).split()[:3] for line in pools_lines([read(here), read(there)], namespaces=True)]
    assert rows[:2] == [["NAMESPACE", "POOL", "HOST"], ["a", "racks", "rack-0"]]
    assert rows[-1] == ["b", "racks", "rack-2"]
    checked = Checked("rack-0", "10.0.0.1:22", "debian 12 x86_64", (Finding("its clock is 300 s ahead", "set it"),))
    assert max(line.cell_len for line in checked_lines([checked])) <= 80
