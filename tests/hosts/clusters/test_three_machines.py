"""docs/tasks/three-machines.md on three real hosts: each command of the page, as a newcomer types it.

Put in place of the page's: addresses, host keys, the wheel's dependencies (as the lock has them), the download server
of Kubernetes, and the network plugin, which lab hosts have. What this machine's kernel needs is put beside.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack import binaries
from hack.hosts import cluster, files
from hack.hosts.mirror import Mirror, checksums
from tests.docs.pages import ROOT, blocks
from tests.hosts.artefacts import wheelhouse
from tests.hosts.clusters.making import machines_of_people
from tests.hosts.joining import BEFORE, VERSION, programs
from tests.hosts.sshpools import Pool

pytestmark = [pytest.mark.hosts, pytest.mark.hosts_long, pytest.mark.slow, pytest.mark.kubectl]
PAGE = ROOT / "docs" / "tasks" / "three-machines.md"
HOSTS = {"10.1.0.11": "rack1", "10.1.0.12": "rack2", "10.1.0.13": "rack3"}
"""Address on the page → host."""
DOWNLOADS = "https://dl.k8s.io"
NETWORK = "{apiVersion: v1, kind: ConfigMap, metadata: {name: network, namespace: kube-system}}\n"
LEFT_OF_IT = "/etc/kubernetes/* /usr/bin/kubelet /usr/bin/kubeadm /var/lib/nodewright/ssh/claim"
SECONDS = 1200


def commands() -> list[str]:
    marked = [block for block in blocks(PAGE) if "runnable" in block.info.split()]
    return [line.removeprefix("$ ") for block in marked for line in block.text.splitlines() if line.startswith("$ ")]


@dataclass(slots=True)
class Newcomer:
    """Types commands one after the other; variables that one exports are there for the next."""

    folder: Path
    environment: Mapping[str, str]
    exported: Path = field(init=False)

    def __post_init__(self) -> None:
        self.exported = self.folder / "exported.sh"
        self.exported.touch()

    def types(self, command: str) -> str:
        """What it prints. It has to end with 0."""
        line = f". {self.exported}; {command}\ncode=$?; export -p > {self.exported}; exit $code"
        done = subprocess.run(
            ["/bin/bash", "-c", line], cwd=self.folder, env=dict(self.environment), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout


@contextmanager
def agent(folder: Path, key: Path) -> Iterator[str]:
    """Holds the key with which the newcomer logs in to the machines so far; gives its socket."""
    socket = folder / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()  # it listens
            add = ["ssh-add", "-q", str(key)]
            subprocess.run(add, check=True, env={**os.environ, "SSH_AUTH_SOCK": str(socket)})
            yield str(socket)
        finally:
            process.kill()


@contextmanager
def newcomer(folder: Path, pool: Pool) -> Iterator[Newcomer]:
    """On a computer with Python, ssh and kubectl, and the files of the page."""
    home = folder / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    house = wheelhouse(folder / "wheels")
    for wheel in house.glob("nodewright-*.whl"):
        (home / wheel.name).symlink_to(wheel)
    (home / "kubectl").symlink_to(binaries.ensure("kubectl"))
    for block in blocks(PAGE):
        if block.file:
            (home / block.file).write_text(_with_hosts(block.text, pool))
    (home / "network.yaml").write_text(NETWORK)
    inherited = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "VIRTUAL_ENV")}
    with agent(folder, pool.key) as socket:
        own = {"HOME": str(home), "SSH_AUTH_SOCK": socket, "PATH": f"{home}:{os.environ['PATH']}"}
        person = Newcomer(home, {**inherited, **own, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(house)})
        try:
            yield person
        finally:
            if (home / "tool/bin/nodewright").exists():
                person.types("nodewright down")


def _with_hosts(text: str, pool: Pool) -> str:
    """Each pool's hosts with the addresses and keys of the lab's."""
    documents = list(yaml.safe_load_all(text))
    for document in documents:
        document["spec"]["hosts"] = [pool.entry(host["name"]) for host in document["spec"]["hosts"]]
    return yaml.safe_dump_all(documents)


def _bootstrap(mirror: Mirror, *, older: bool) -> dict[str, Any]:
    """What the page asks for, with checksums, since the mirror speaks http; and what lab hosts need beside."""
    return {
        "archives": mirror.archives(programs(older=older)),
        "files": [files.CONTAINERD_FILE],
        "nodeRegistration": {"ignorePreflightErrors": [cluster.NO_CGROUP_2]},
        "kubeletConfiguration": {"failCgroupV1": False, "failSwapOn": False},
        "controlPlane": {"disabledAddons": ["CoreDNS", "KubeProxy"]},
    }


def _edit(file: Path, mirror: Mirror) -> None:
    documents = list(yaml.safe_load_all(file.read_text()))
    assert documents[0]["spec"]["bootstrap"] == {"archives": {"kubernetes": {"mirror": mirror.url}}}
    documents[0]["spec"]["bootstrap"] = _bootstrap(mirror, older=True)
    file.write_text(yaml.safe_dump_all(documents))


def test_three_machines_become_a_cluster_that_grows_and_is_upgraded_and_are_free_again(
    tmp_path: Path, lab_folder: Path
) -> None:
    with (
        machines_of_people(tmp_path, [*HOSTS.values()], older=True) as (pool, mirror),
        newcomer(tmp_path, pool) as person,
    ):
        said = {}
        for command in commands():
            typed = command.replace(DOWNLOADS, mirror.url)
            for address, name in HOSTS.items():
                typed = typed.replace(address, pool.guests[name].address)
            if command.startswith("kubectl patch machine "):
                digests = {"spec": {"bootstrap": {"archives": {"kubernetes": {"sha256": checksums(programs())}}}}}
                person.types(f"kubectl patch cluster prod --type=merge -p '{json.dumps(digests)}'")
            said[command] = person.types(typed)
            if command.startswith("sed -i "):
                _edit(person.folder / "cluster.yaml", mirror)
        nodes = [text for command, text in said.items() if command.endswith("get nodes")]
        _check(nodes[-1])
        for guest in pool.guests.values():
            left = guest.execute(
                "ls -d /etc/kubernetes/* /usr/bin/kubelet /usr/bin/kubeadm /var/lib/nodewright/ssh/claim"
            )
            assert left.stdout == ""


def _check(nodes: str) -> None:
    """Three Ready ones of the new version."""
    rows = [line.split() for line in nodes.splitlines()[1:]]
    assert [(row[1], row[-1]) for row in rows] == [("Ready", VERSION)] * 3, nodes


def test_the_versions_of_the_page_are_those_that_are_tested() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"--kubernetes-version {BEFORE.removeprefix('v')} " in page
    assert f"={VERSION} machine/prod-cp-1" in page
