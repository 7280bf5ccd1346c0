"""krew itself installs the plugin as docs/releasing.md says, and refuses an archive that was changed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack.pinned import KREW
from hack.release import krew, making
from hack.release.parts import commit_time
from nodewright import __version__

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]
ARCHIVE = f"nodewright-krew-{__version__}.tar.gz"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with kubectl and krew in a home of their own, and the artefacts in ``downloads``."""

    home: Path
    downloads: Path
    kubectl: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        own = f"{self.home / 'krew/bin'}:{self.home / 'bin'}:{Path(sys.executable).parent}"
        environment = {
            **os.environ,
            "HOME": str(self.home),
            "KREW_ROOT": str(self.home / "krew"),
            "PATH": f"{own}:{os.environ['PATH']}",
        }
        return subprocess.run(
            [self.kubectl, *words], cwd=self.downloads, env=environment, capture_output=True, text=True, timeout=600,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def install(self) -> subprocess.CompletedProcess[str]:
        return self.run("krew", "install", f"--manifest={krew.MANIFEST}", f"--archive={ARCHIVE}")


@pytest.fixture(scope="module")
def artefacts() -> dict[str, bytes]:
    made = making.distributions(commit_time())
    wheel = next(data for name, data in made.items() if name.endswith(".whl"))
    return krew.artefacts(__version__, wheel, commit_time())


@pytest.fixture
def person(tmp_path: Path, kubectl_binary: Path, artefacts: dict[str, bytes]) -> Person:
    program = KREW.ensure() if os.environ.get("CI") else KREW.find()
    if program is None:
        pytest.skip("krew is missing: run `make krew`")
    for name in ("home/bin", "downloads"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home/bin/kubectl-krew").symlink_to(program)
    for name, data in artefacts.items():
        (tmp_path / "downloads" / name).write_bytes(data)
    return Person(tmp_path / "home", tmp_path / "downloads", kubectl_binary)


def test_krew_installs_the_plugin_and_kubectl_runs_it(person: Person) -> None:
    installed = person.install()
    assert installed.returncode == 0, installed.stderr
    assert "Installed plugin: nodewright" in installed.stderr
    said = person.run("nodewright", "version")
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith(f"nodewright {__version__} ")


def test_krew_refuses_an_archive_that_was_changed(person: Person) -> None:
    archive = person.downloads / ARCHIVE
    archive.write_bytes(archive.read_bytes()[:-1] + b"?")
    refused = person.install()
    assert refused.returncode != 0
    assert "checksum" in refused.stderr
    assert not (person.home / "krew/bin/kubectl-nodewright").is_symlink()
