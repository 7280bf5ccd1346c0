"""One measured figure, the table that shows it and the file that keeps it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table


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
    table = Table(title=title, title_justify="left")
    for column in ("figure", "value", "unit", "better", "beside", ""):
        table.add_column(column, justify="right" if column in ("value", "") else "left")
    for figure in figures:
        beside = "" if figure.peer_value is None else f"{figure.peer_value:g}"
        table.add_row(figure.name, f"{figure.value:.4g}", figure.unit, figure.better, figure.peer, beside)
    console.print(table)


def keep(figures: Sequence[Figure], path: Path) -> None:
    """Write ``path``; figures of names that were not measured this time are kept."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(path.read_text()) if path.exists() else []
    measured = {figure.name for figure in figures}
    rows = [row for row in before if row["name"] not in measured] + [asdict(figure) for figure in figures]
    path.write_text(json.dumps(sorted(rows, key=lambda row: row["name"]), indent=2) + "\n")
