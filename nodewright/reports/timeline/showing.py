"""A timeline as lines for a terminal, and as a value for programs."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from controllers.kernel.conditions import format_time
from nodewright.reports.tree.branch import Mood
from nodewright.reports.tree.drawing import MARKS

if TYPE_CHECKING:
    from rich.text import Text

    from nodewright.reports.timeline.entries import Entry

_STAMP = len("2026-06-01T12:00:00Z")


def as_value(entry: Entry) -> dict[str, Any]:
    """What is empty is left out."""
    value: dict[str, Any] = {
        "at": format_time(entry.at) if entry.at is not None else "",
        "first": format_time(entry.first) if entry.first is not None else "",
        "source": str(entry.source),
        "object": entry.object,
        "reason": entry.reason,
        "message": entry.message,
        "count": entry.count if entry.count > 1 else 0,
        "wrong": entry.wrong,
    }
    return {name: each for name, each in value.items() if each}


def as_lines(entry: Entry, width: int) -> list[Text]:
    """``TIME  MARK OBJECT REASON  message``; what does not fit into ``width`` columns stands below, indented."""
    from rich.text import Text  # noqa: PLC0415

    stamp = format_time(entry.at) if entry.at is not None else "-"
    mark = MARKS[Mood.BAD] if entry.wrong else MARKS[Mood.PLAIN]
    times = f" ({entry.count}×)" if entry.count > 1 else ""
    message = f": {entry.message}" if entry.message else ""
    indent = " " * (_STAMP + 3)
    wrapped = textwrap.wrap(
        f"{entry.object} {entry.reason}{times}{message}",
        max(width, 50),
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    first = Text(stamp.ljust(_STAMP), "dim").append(f" {mark} ", "bold red").append(wrapped[0].strip(), "not dim")
    return [first, *map(Text, wrapped[1:])]
