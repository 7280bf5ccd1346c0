"""The example of docs/providers.md, built as a package, passes the contract tests and is found by its entry point."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "providers.md"
SECONDS = 600


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page, each where the page says."""
    folder = tmp_path_factory.mktemp("file-hosts")
    for block in blocks(PAGE):
        if block.file:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
    return folder


@pytest.fixture(scope="module")
def installed(project: Path) -> Path:
    """A folder for PYTHONPATH with the built package and its metadata, as an installer would leave it."""
    _python(project, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist")
    (wheel,) = (project / "dist").glob("*.whl")
    folder = project / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_the_example_passes_the_contract_tests(project: Path, installed: Path) -> None:
    told = _python(
        project, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "tests", path=installed
    )
    assert " passed" in told
    assert "failed" not in told


def test_an_installed_provider_is_found_by_its_entry_point(project: Path, installed: Path) -> None:
    _python(project, "-m", "nodewright.cli", "validate", "machine.yaml", path=installed)


def test_without_the_package_its_kind_is_not_known(project: Path) -> None:
    with pytest.raises(AssertionError, match=r"no installed provider has the config type files\.example/v1"):
        _python(project, "-m", "nodewright.cli", "validate", "machine.yaml")


def test_its_schema_is_checked(project: Path, installed: Path) -> None:
    (project / "wrong.yaml").write_text((project / "machine.yaml").read_text() + "      size: enormous\n")
    with pytest.raises(AssertionError, match=r"size: must be one of small, large"):
        _python(project, "-m", "nodewright.cli", "validate", "wrong.yaml", path=installed)


def _python(project: Path, *arguments: str, path: Path | None = None) -> str:
    """Standard output of Python in the project's folder. Raises AssertionError with all output if it fails."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(p) for p in (path, ROOT) if p)}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{arguments}:\n{done.stdout}{done.stderr}"
    return done.stdout
