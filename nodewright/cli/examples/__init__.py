"""The example that ``up`` puts beside its kubeconfig and ``demo`` plays with: a copy of ``examples/cluster.yaml``."""

from __future__ import annotations

import os
from pathlib import Path

TEXT = (Path(__file__).parent / "cluster.yaml").read_text()


def write_example(folder: Path) -> Path:
    """Put the example into ``folder`` (mode 0600) unless one is there already (a person may have edited it)."""
    path = folder / "example.yaml"
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(TEXT)
    return path
