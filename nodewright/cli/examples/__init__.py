"""The example that ``up`` puts beside its kubeconfig and that ``demo`` plays with."""

from __future__ import annotations

from pathlib import Path

TEXT = (Path(__file__).parent / "cluster.yaml").read_text()


def write_example(folder: Path) -> Path:
    """Put the example into ``folder`` unless one is there already (a person may have edited it)."""
    path = folder / "example.yaml"
    if not path.exists():
        path.write_text(TEXT)
    return path
