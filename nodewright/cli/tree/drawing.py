"""Draw a tree with rich: one row a line, aligned columns, colours where the terminal has them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from nodewright.cli.tree.branch import Branch, Mood

if TYPE_CHECKING:
    from rich.table import Table

STYLES = {Mood.GOOD: "green", Mood.BUSY: "yellow", Mood.BAD: "bold red", Mood.PAUSED: "magenta", Mood.PLAIN: "dim"}
MARKS = {Mood.GOOD: "✔", Mood.BUSY: "…", Mood.BAD: "✘", Mood.PAUSED: "‖", Mood.PLAIN: " "}


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


def table(tree: Branch, now: datetime) -> Table:
    """The tree as a rich table."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title, wrap in (("NAME", False), ("", False), ("STATE", False), ("REASON", False), ("SINCE", False)):
        drawn.add_column(title, no_wrap=not wrap)
    drawn.add_column("MESSAGE", overflow="fold", min_width=20)
    for prefix, branch in rows(tree):
        style = STYLES[branch.mood]
        say = "\n".join(part for part in (branch.message, f"→ {branch.advice}" if branch.advice else "") if part)
        drawn.add_row(
            Text(prefix, "dim").append(branch.name, "bold" if "/" in branch.name else ""),
            Text(MARKS[branch.mood], style),
            Text(branch.state, style),
            Text(branch.reason, style),
            Text(age(branch.since, now), "dim"),
            Text(say),
        )
    return drawn


def rows(tree: Branch, prefix: str = "", below: str = "") -> Iterator[tuple[str, Branch]]:
    """Each line with the ribs of the tree before it."""
    yield prefix, tree
    last = len(tree.children) - 1
    for index, child in enumerate(tree.children):
        yield from rows(child, below + ("└─" if index == last else "├─"), below + ("  " if index == last else "│ "))
