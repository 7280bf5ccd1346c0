"""The program as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path("nodewright/cli/examples/cluster.yaml").absolute()


def nodewright(*arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nodewright.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
