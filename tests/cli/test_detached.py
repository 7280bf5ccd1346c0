"""``nodewright up --detach`` and ``nodewright down``: one process after the other, and what goes wrong."""

from __future__ import annotations

import os
from pathlib import Path

from nodewright.cli.embedded.detached import holder_of
from nodewright.cli.embedded.folder import held
from nodewright.cli.exits import FAILED, OK, USAGE
from tests.cli.processes import nodewright


def test_it_serves_in_the_background_until_it_is_taken_down(tmp_path: Path) -> None:
    folder = str(tmp_path / "plane")
    up = nodewright("up", "--detach", "--no-controllers", "--data-dir", folder)
    try:
        assert up.returncode == OK, up.stderr
        assert up.stdout.startswith("ready")
        assert f"nodewright down --data-dir {folder}" in up.stdout
        assert holder_of(Path(folder)) not in (0, os.getpid())
        version = nodewright("version", "--server", "--kubeconfig", f"{folder}/kubeconfig")
        assert version.returncode == OK, version.stderr
        again = nodewright("up", "-d", "--no-controllers", "--data-dir", folder)
        assert again.returncode == FAILED
        assert "is in use by another control plane" in again.stderr
    finally:
        down = nodewright("down", "--data-dir", folder)
    assert down.returncode == OK, down.stderr
    assert down.stdout.startswith("stopped process ")
    assert holder_of(Path(folder)) == 0
    assert (Path(folder) / "up.log").stat().st_mode & 0o777 == 0o600
    nothing = nodewright("down", "--data-dir", folder)
    assert (nothing.returncode, nothing.stdout.split(" in ")[0]) == (OK, "no control plane is running")


def test_a_plane_in_memory_is_not_detached() -> None:
    refused = nodewright("up", "--detach", "--in-memory")
    assert refused.returncode == USAGE
    assert "--detach needs a data folder" in refused.stderr


def test_one_that_does_not_end_is_told_with_what_to_do(tmp_path: Path) -> None:
    """The test itself holds the folder, but writes another process into the lock that nobody may signal: none."""
    with held(tmp_path / "plane"):
        (tmp_path / "plane" / "lock").write_text("999999999")
        told = nodewright("down", "--data-dir", str(tmp_path / "plane"), "--timeout", "0")
    assert told.returncode == FAILED
    assert "process 999999999 did not end within 0 s" in told.stderr
