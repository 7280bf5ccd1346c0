"""A figure is asked for by its name, so the table of the benchmarks cuts none."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from hack.bench.figures import Figure, show

LONG = Figure(
    "filter_500_classes_5000_nodes_seconds", 0.4321, "seconds", "lower", "the fastest peer, in one process", 1.5
)
ALONE = Figure("provreq_1000_small_longest_look_seconds", 2, "s", "lower")


@pytest.mark.parametrize("width", [80, 160])
def test_names_and_values_are_whole_at_any_width(width: int) -> None:
    file = StringIO()
    show("autoscaler", [LONG, ALONE], Console(file=file, width=width))
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    shown = " ".join(file.getvalue().split())
    assert "filter_500_classes_5000_nodes_seconds 0.4321 seconds lower" in shown
    assert "the fastest peer, in one process 1.5" in shown
    assert "provreq_1000_small_longest_look_seconds 2 s lower" in shown
