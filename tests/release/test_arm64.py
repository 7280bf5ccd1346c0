"""The image for another architecture than this machine's: what is in it is of that architecture, and it runs."""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack.release import image, making, tree
from hack.release.parts import ROOT, ReleaseError, commit_time
from hack.release.tree import Tree
from nodewright import __version__
from tests.realplane import lacking

pytestmark = pytest.mark.slow
AARCH64 = 183
"""The number of the machine in an ELF header."""
EMULATOR = "qemu-aarch64-static"


@dataclass(frozen=True, slots=True)
class Built:
    """``files``: of all layers. ``blobs``: of the OCI layout, by path."""

    image: image.Image
    files: Tree
    blobs: dict[str, bytes]

    def blob(self, digest: str) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.blobs[f"blobs/{digest.replace(':', '/')}"])
        return found


@pytest.fixture(scope="module")
def built() -> Built:
    made = making.distributions(commit_time())
    wheel = next(data for name, data in made.items() if name.endswith(".whl"))
    request = image.Request("nodewright:test", __version__, wheel, ["arm64"], commit_time(), ROOT / "build/debian")
    try:
        found = image.build(request)
    except ReleaseError as error:
        lacking(f"the image for arm64 needs its packages of Debian 12: {error}")
    (contents,) = found.contents
    files = {**contents.system, **contents.locked, **contents.program}
    blobs = {path: each.data for path, each in tree.from_tar(found.archive).items() if each.kind == tree.FILE}
    return Built(found, files, blobs)


def test_every_program_and_library_is_of_the_architecture_that_was_asked_for(built: Built) -> None:
    machines = {path: struct.unpack("<H", head[18:20])[0] for path, head in _elf(built.files)}
    assert {path for path, machine in machines.items() if machine != AARCH64} == set()
    assert "usr/bin/python3.11" in machines
    assert len(machines) > 100  # Python, its libraries, and those of the wheels


def test_the_image_says_which_architecture_it_is_of(built: Built) -> None:
    (top,) = json.loads(built.blobs["index.json"])["manifests"]
    assert top["platform"] == {"architecture": "arm64", "os": "linux"}
    config = built.blob(built.blob(top["digest"])["config"]["digest"])  # type: ignore[index]
    assert (config["architecture"], config["os"]) == ("arm64", "linux")
    assert {package.architecture for package in built.image.contents[0].packages} == {"all", "arm64"}


def test_the_program_runs_in_it(built: Built, tmp_path: Path) -> None:
    emulator = shutil.which(EMULATOR)
    if emulator is None or os.geteuid() != 0:
        pytest.skip(f"{EMULATOR} is missing (`apt-get install qemu-user-static`), or this is not root")
    _unpack(built.files, tmp_path)
    shutil.copy(emulator, tmp_path / "tmp" / EMULATOR)
    python = ["chroot", tmp_path, f"/tmp/{EMULATOR}", "/usr/bin/python3.11"]
    said = subprocess.run(
        [*python, "-sP", "/usr/local/bin/nodewright", "version"],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith(f"nodewright {__version__} ")
    native = "import platform, ssl, sqlite3, orjson, grpc, pydantic_core, numpy; print(platform.machine())"
    said = subprocess.run([*python, "-sPc", native], capture_output=True, text=True, timeout=900, check=False)
    assert (said.returncode, said.stdout) == (0, "aarch64\n"), said.stderr


def _elf(files: Tree) -> Iterator[tuple[str, bytes]]:
    for path, entry in files.items():
        if entry.kind == tree.FILE and entry.data[:4] == b"\x7fELF":
            yield path, entry.data


def _unpack(files: Tree, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(tree.to_tar(files, 0))) as archive:
        archive.extractall(folder, filter="fully_trusted")
