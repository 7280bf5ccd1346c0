"""One measured figure, the table that shows it and the file that keeps it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.text import Text

from nodewright.reports.columns import line_of, widths_of


@dataclass(frozen=True, slots=True)
class Figure:
    """``peer`` names what ``peer_value`` (same unit) was measured or promised for: a peer, a raw limit, a goal."""

    name: str
    value: float
    unit: str
    better: Literal["lower", "higher"]
    peer: str = ""
    peer_value: float | None = None


def show(title: str, figures: Sequence[Figure], console: Console) -> None:
    """Names are never cut, since one asks for a figure by its name; what it is compared with moves below it instead."""
    head = [Text(column, "bold") for column in ("figure", "value", "unit", "better", "beside")]
    measured = [[Text(f.name), Text(f"{f.value:.4g}"), Text(f.unit), Text(f.better)] for f in figures]
    widths = widths_of([head, *measured])
    lines = [Text(title, "italic"), line_of(head, widths)]
    for row, figure in zip(measured, figures, strict=True):
        beside = figure.peer if figure.peer_value is None else f"{figure.peer} {figure.peer_value:g}"
        line = line_of([*row, Text(beside)], [*widths[:-1], 0])
        if line.cell_len <= console.width or not beside:
            lines.append(line)
        else:
            lines += [line_of(row, widths), Text(f"    beside {beside}")]
    for line in lines:
        console.print(line, soft_wrap=True)


def keep(figures: Sequence[Figure], path: Path) -> None:
    """Write ``path``; figures of names that were not measured this time are kept."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(path.read_text()) if path.exists() else []
    measured = {figure.name for figure in figures}
    rows = [row for row in before if row["name"] not in measured] + [asdict(figure) for figure in figures]
    path.write_text(json.dumps(sorted(rows, key=lambda row: row["name"]), indent=2) + "\n")
