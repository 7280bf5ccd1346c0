"""The program as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

EXAMPLE = Path("nodewright/cli/examples/cluster.yaml").absolute()


def nodewright(*arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nodewright.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


@contextmanager
def following(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """One that runs on; it is killed at the end if it still does."""
    command = [sys.executable, "-m", "nodewright.cli", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
