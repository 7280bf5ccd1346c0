"""`deploy/up/container.sh` as it is, by podman and runc: it serves, keeps its data over a restart, and stops by itself.

The engine's storage, and the network that counts as the machine's, are the test's own.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack import binaries
from hack.hosts import parts
from tests.docs.pages import ROOT
from tests.hosts.artefacts import IMAGE, image_archive
from tests.hosts.joining import until

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]
NAME, USER = "nodewright-up", 65532
SECONDS = 300


@dataclass(frozen=True, slots=True)
class Engine:
    """``program``: podman as this machine can run it. ``network``: name of the network namespace."""

    program: Path
    folder: Path
    network: str

    def __call__(self, *arguments: str) -> str:
        return parts.run(str(self.program), *arguments)

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def kubectl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        kubectl = [str(binaries.ensure("kubectl")), f"--kubeconfig={self.state}/up/kubeconfig", *arguments]
        command = ["nsenter", f"--net=/run/netns/{self.network}", *kubectl]
        home = {**os.environ, "HOME": str(self.folder)}
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=home)

    def answers(self, *arguments: str) -> bool:
        return self.kubectl(*arguments).returncode == 0


@pytest.fixture
def engine(tmp_path: Path, lab_folder: Path) -> Iterator[Engine]:
    network = f"nw-{uuid.uuid4().hex[:8]}"
    most = min(resource.getrlimit(resource.RLIMIT_NOFILE))
    config = tmp_path / "containers.conf"  # podman asks for more open files than a container may have that it runs in
    config.write_text(f'[containers]\ndefault_ulimits = ["nofile={most}:{most}", "nproc=4096:4096"]\n')
    program = tmp_path / "podman"
    podman = f"podman --runtime runc --root {tmp_path}/storage --runroot /run/{network}"
    program.write_text(f'#!/bin/sh\nCONTAINERS_CONF={config} exec nsenter --net=/run/netns/{network} {podman} "$@"\n')
    program.chmod(0o755)
    parts.run("ip", "netns", "add", network)
    parts.run("ip", "-n", network, "link", "set", "lo", "up")
    made = Engine(program, tmp_path, network)
    try:
        made("load", "--quiet", "--input", str(image_archive(tmp_path)))
        yield made
        made("rm", "--force", "--time", "5", NAME)
    finally:
        parts.run("ip", "netns", "delete", network)
        subprocess.run(["umount", "--quiet", f"{tmp_path}/storage/overlay"], check=False, capture_output=True)
        shutil.rmtree(f"/run/{network}", ignore_errors=True)


def test_it_serves_keeps_its_data_over_a_restart_and_stops(engine: Engine) -> None:
    script = [str(ROOT / "deploy/up/container.sh"), IMAGE, str(engine.state)]
    done = subprocess.run(
        script, env={**os.environ, "ENGINE": str(engine.program)}, capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    until(lambda: engine.answers("get", "namespaces"), SECONDS)
    made = engine.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    assert made.returncode == 0, made.stderr
    written = [each.lstat().st_uid for each in (engine.state / "up").iterdir()]
    assert set(written) == {USER}

    engine("restart", NAME)
    until(lambda: engine.answers("get", "configmap", "kept"), SECONDS)

    engine("stop", NAME)
    state = json.loads(engine("inspect", NAME))[0]["State"]
    assert (state["Status"], state["ExitCode"]) == ("exited", 0), engine("logs", NAME)
    assert not engine.answers("get", "namespaces")

    engine("start", NAME)
    until(lambda: engine.answers("get", "configmap", "kept"), SECONDS)
