"""A figure is asked for by its name, so the table of the benchmarks cuts none."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from hack.bench.figures import Figure, show
from hack.processor import ticks

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


def test_what_the_host_gave_to_others_is_a_share_of_what_was_wanted(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 20 30 9000 50 1 2 10 0 0\ncpu0 1 2 3\n")
    before = ticks(stat)
    stat.write_text("cpu  130 20 50 9900 50 6 7 35 0 0\ncpu0 1 2 3\n")
    assert ticks(stat).stolen_since(before) == 25 / (60 + 25)
    assert before.stolen_since(before) == 0
    assert ticks(tmp_path / "none").stolen_since(ticks(tmp_path / "none")) == 0
