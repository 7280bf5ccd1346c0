"""What the release needs from this machine: programs, the repository, and one error for all that may be missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


class ReleaseError(Exception):
    """A release can't be made or is not what it should be; the message says why and what to do."""


def run(*command: str, folder: Path = ROOT, env: Mapping[str, str] | None = None) -> bytes:
    """What a program prints. Raises ReleaseError with the end of what it said on standard error."""
    variables = {**os.environ, **(env or {})}
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False, env=variables)
    except FileNotFoundError as error:
        raise ReleaseError(f"{command[0]} is not installed") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[-2000:]
        raise ReleaseError(f"{' '.join(command)[:200]} ended with {done.returncode}: {said}")
    return done.stdout


def uv() -> str:
    """The uv that `make setup` works with. Raises ReleaseError if there is none."""
    found = shutil.which("uv") or (str(ROOT / "build/uv/bin/uv") if (ROOT / "build/uv/bin/uv").is_file() else None)
    if found is None:
        raise ReleaseError("uv is not installed: run `make build/uv/bin/uv`")
    return found


def commit_time(folder: Path = ROOT) -> int:
    """Seconds since the epoch of the commit that is released, or ``SOURCE_DATE_EPOCH`` where that is set.

    Every time in an artefact is this one, so that a second build has the same bytes. Raises
    ReleaseError outside of git.
    """
    named = os.environ.get("SOURCE_DATE_EPOCH", "")
    return int(named) if named.isdigit() else int(run("git", "log", "-1", "--format=%ct", folder=folder))
