"""Builds programs of ``hack/tools`` with Go, into the cache."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from hack.binaries import BinaryMissing

REMEDY = "Go 1.26+ is needed to build it"


def compiler() -> str:
    """Raises BinaryMissing."""
    go = shutil.which("go")
    if go is None:
        raise BinaryMissing(f"there is no Go: {REMEDY}")
    return go


def build(sources: Path, output: Path, package: str = ".") -> None:
    """Of exactly the modules that its ``go.sum`` names. Raises BinaryMissing."""
    command = [compiler(), "build", "-mod=readonly", "-ldflags=-s -w", "-o", str(output), package]
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BinaryMissing(f"building {package} failed:\n{done.stderr[-2000:]}")
