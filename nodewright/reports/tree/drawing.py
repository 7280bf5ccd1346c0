"""Draw a tree with rich: one row a line, aligned columns, colours where the terminal has them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from nodewright.reports.columns import GAP, line_of, widths_of
from nodewright.reports.tree.branch import Branch, Mood
from nodewright.reports.tree.runbooks import with_runbook

if TYPE_CHECKING:
    from rich.text import Text

STYLES = {Mood.GOOD: "green", Mood.BUSY: "yellow", Mood.BAD: "bold red", Mood.PAUSED: "magenta", Mood.PLAIN: "dim"}
MARKS = {Mood.GOOD: "✔", Mood.BUSY: "…", Mood.BAD: "✘", Mood.PAUSED: "‖", Mood.PLAIN: " "}

LEAST_WIDTH = 40
"""Columns; in a narrower column sentences can't be read."""


def age(since: datetime | None, now: datetime) -> str:
    """As kubectl writes it: ``12s``, ``5m3s``, ``4h10m``, ``3d``."""
    if since is None:
        return ""
    seconds = max(0, int((now - since).total_seconds()))
    if seconds < 120:
        return f"{seconds}s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 10:
        return f"{minutes}m{seconds}s" if seconds else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    if hours < 8:
        return f"{hours}h{minutes}m" if minutes else f"{hours}h"
    return f"{hours}h" if hours < 48 else f"{hours // 24}d"


def lines(tree: Branch, now: datetime, width: int) -> list[Text]:
    """The tree for a terminal of ``width`` columns: messages beside it where there is room, else below their line.

    Where even the columns have no room, each line has its own.
    """
    from rich.text import Text  # noqa: PLC0415

    branches = list(rows(tree))
    head = [Text(title, "bold") for title in ("NAME", "", "STATE", "REASON", "SINCE")]
    table = [_cells(prefix, branch, now) for prefix, branch in branches]
    measured = ([head, *table], [head, *map(_aligned_part, table, branches)])
    widths = next((found for found in map(widths_of, measured) if sum(found) + GAP * (len(found) - 1) <= width), None)
    if widths is None:
        return [line for cells, row in zip(table, branches, strict=True) for line in _loose(cells, row, width)]
    free = width - sum(widths) - GAP * len(widths)
    drawn = [line_of([*head, Text("MESSAGE", "bold")] if free >= LEAST_WIDTH else head, [*widths, 0])]
    for cells, (prefix, branch) in zip(table, branches, strict=True):
        below = _ribs_below(prefix, branch)
        if line_of(cells, widths).cell_len > width:
            drawn.extend(_loose(cells, (prefix, branch), width))
        elif free >= LEAST_WIDTH:
            message_lines = _wrapped(branch, free)
            drawn.append(line_of([*cells, Text(message_lines[0] if message_lines else "")], [*widths, 0]))
            gap = " " * (width - free - len(below))
            drawn.extend(Text(below, "dim").append(gap + more, "not dim") for more in message_lines[1:])
        else:
            drawn.append(line_of(cells, widths))
            drawn.extend(_below(below, _wrapped(branch, max(LEAST_WIDTH, width - len(below) - GAP))))
    return drawn


def _aligned_part(cells: list[Text], row: tuple[str, Branch]) -> list[Text]:
    """Cells by which columns are measured where room is short: a state behind which nothing stands may be longer."""
    _, branch = row
    return cells[:2] if not (branch.reason or branch.since or branch.message or branch.advice) else cells


def _loose(cells: list[Text], row: tuple[str, Branch], width: int) -> Iterator[Text]:
    """One branch without columns; what does not fit behind its name stands below it."""
    from rich.text import Text  # noqa: PLC0415

    prefix, branch = row
    below = _ribs_below(prefix, branch)
    free = max(LEAST_WIDTH, width - len(below) - GAP)
    name, *rest = (cell for cell in cells if cell.plain.strip())
    states = Text(" " * GAP).join(rest)
    if not rest or name.cell_len + GAP + states.cell_len <= width:
        yield Text(" " * GAP).join([name, states] if rest else [name])
    else:
        yield name
        folded = [states] if len(below) + GAP + states.cell_len <= width else map(Text, _folded(states.plain, free))
        yield from (Text(below + " " * GAP, "dim").append_text(line) for line in folded)
    yield from _below(below, _wrapped(branch, free))


def _below(ribs: str, texts: list[str]) -> Iterator[Text]:
    from rich.text import Text  # noqa: PLC0415

    yield from (Text(ribs, "dim").append(" " * GAP + text, "not dim") for text in texts)


def _ribs_below(prefix: str, branch: Branch) -> str:
    return prefix.replace("├─", "│ ").replace("└─", "  ") + ("│ " if branch.children else "  ")


def sentences(tree: Branch, width: int) -> list[Text]:
    """The tree without columns, ``NAME — REASON: MESSAGE`` a line, in lines of ``width`` columns."""
    from rich.text import Text  # noqa: PLC0415

    drawn: list[Text] = []
    for prefix, branch in rows(tree):
        mark = f"{MARKS[branch.mood]} " if branch.mood else ""
        message = ": ".join(part for part in (branch.reason, branch.message) if part)
        below = _ribs_below(prefix, branch)
        free = max(LEAST_WIDTH, width - len(prefix))
        folded = _folded(f"{mark}{branch.name}" + (f" — {message}" if message else ""), free)
        first = Text(prefix, "dim").append(mark, STYLES[branch.mood])
        name, dash, rest = folded[0].removeprefix(mark).partition(" — ")
        is_object = "/" in branch.name and " " not in branch.name
        drawn.append(first.append(name, "not dim bold" if is_object else "not dim").append(dash + rest, "dim"))
        drawn.extend(Text(f"{below}  {more}", "dim") for more in _rewrapped(folded[1:], width - len(below) - GAP))
    return drawn


def _folded(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(LEAST_WIDTH, width), break_long_words=False, break_on_hyphens=False) or [""]


def _rewrapped(folded: list[str], width: int) -> list[str]:
    """Lines below the first have the tree's ribs before them, so less room."""
    return _folded(" ".join(folded), width) if folded else []


def _cells(prefix: str, branch: Branch, now: datetime) -> list[Text]:
    from rich.text import Text  # noqa: PLC0415

    style = STYLES[branch.mood]
    return [
        Text(prefix, "dim").append(branch.name, "not dim bold" if "/" in branch.name else "not dim"),
        Text(MARKS[branch.mood], style),
        Text(branch.state, style),
        Text(branch.reason, style),
        Text(age(branch.since, now), "dim"),
    ]


def _wrapped(branch: Branch, free: int) -> list[str]:
    """Message and advice in lines that are broken between words only: names and fields stay whole."""
    step = with_runbook(branch.advice, branch.reason)
    parts = (branch.message, f"→ {step}" if step else "")
    paragraphs = [line for part in parts for line in part.splitlines()]
    return [
        line
        for paragraph in paragraphs
        for line in textwrap.wrap(paragraph, free, break_long_words=False, break_on_hyphens=False)
    ]


def rows(tree: Branch, prefix: str = "", below: str = "") -> Iterator[tuple[str, Branch]]:
    """Each line with the ribs of the tree before it."""
    yield prefix, tree
    last = len(tree.children) - 1
    for index, child in enumerate(tree.children):
        yield from rows(child, below + ("└─" if index == last else "├─"), below + ("  " if index == last else "│ "))
