"""Columns that stand below each other, as kubectl writes them.

Nothing is cut, however narrow the terminal: a name that is to be copied or grepped is worth a line that wraps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

GAP = 2


def widths_of(rows: Sequence[Sequence[Text]]) -> list[int]:
    """How wide each column has to be; rows may be of different lengths."""
    most = max((len(row) for row in rows), default=0)
    return [max(row[i].cell_len for row in rows if i < len(row)) for i in range(most)]


def aligned(rows: Sequence[Sequence[Text]]) -> list[Text]:
    """A line for each row. Print them with ``soft_wrap=True``."""
    widths = widths_of(rows)
    return [line_of(row, widths) for row in rows]


def line_of(row: Sequence[Text], widths: Sequence[int]) -> Text:
    from rich.text import Text  # noqa: PLC0415

    line = Text()
    for cell, width in zip(row, widths, strict=False):
        line.append_text(cell).append(" " * (width - cell.cell_len + GAP))
    line.rstrip()
    return line
