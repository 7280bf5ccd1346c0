"""The example that ``up`` puts beside its kubeconfig and that ``demo`` plays with."""

from __future__ import annotations

from pathlib import Path

TEXT = (Path(__file__).parent / "cluster.yaml").read_text()
