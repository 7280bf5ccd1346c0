"""The revisions of a MachineDeployment as lines for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nodewright.reports.columns import GAP, line_of, widths_of

if TYPE_CHECKING:
    from rich.text import Text

    from nodewright.cli.rollout.history import Revision

_HEAD = ("REVISION", "MACHINESET", "MACHINES", "KUBELET", "REMARK", "CHANGE-CAUSE")
_LEAST_CAUSE = 20
"""Columns; where a cause has fewer, it stands below its revision."""
_INDENT = " " * 4


def lines(known: Sequence[Revision], width: int) -> list[Text]:
    """Columns as kubectl writes them. Causes, and remarks where need be, are folded to ``width`` columns."""
    from rich.text import Text  # noqa: PLC0415

    cells = [(str(one.number), one.machine_set, str(one.machines), one.kubelet, one.remark or "-") for one in known]
    rows = [[Text(cell) for cell in row] for row in cells]
    head = [Text(title, "bold") for title in _HEAD]
    widths = widths_of([head[:-1], *rows])
    free = width - sum(widths) - GAP * len(widths)
    if free >= min(_LEAST_CAUSE, max(len(text) for text in (_HEAD[-1], *(one.cause for one in known)))):
        drawn = [line_of(head, [*widths, 0])]
        for row, one in zip(rows, known, strict=True):
            first, *more = _folded(one.cause or "-", free)
            drawn.append(line_of([*row, Text(first)], [*widths, 0]))
            drawn += [Text(" " * (width - free) + line) for line in more]
        return drawn
    drawn = [line_of(head[:-2], widths)]
    for row, one in zip(rows, known, strict=True):
        drawn.append(line_of(row[:-1], widths))
        drawn += [Text(_INDENT + line) for line in _below(one, width)]
    return drawn


def _below(one: Revision, width: int) -> Iterator[str]:
    for title, text in (("remark", one.remark), ("change-cause", one.cause)):
        if text:
            yield from _folded(f"{title}: {text}", width - len(_INDENT))


def _folded(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, _LEAST_CAUSE), break_long_words=False, break_on_hyphens=False) or [""]
