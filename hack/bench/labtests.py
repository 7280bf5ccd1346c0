"""Cases whose figures a test on the lab's hosts prints: what it holds is measured, and what is measured holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def printed_by(test: str) -> str:
    """Run ``test`` (a pytest node id) and give what it prints. Raises RuntimeError with its end if it fails."""
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-n0", test]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stdout[-4000:])
    return done.stdout
