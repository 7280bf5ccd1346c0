"""Where output goes: a terminal with colours, or a file with none. All that a command prints passes here.

Text of others (names, messages, files) may hold characters that steer a terminal; none of them gets there.
"""

from __future__ import annotations

import os
import sys
from typing import IO, TYPE_CHECKING, Any

from api.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, ConsoleOptions, ConsoleRenderable
    from rich.segment import Segment

FILE_WIDTH = 10_000
"""Columns when nobody looks: so wide that lines stay whole for grep."""


def console(file: IO[str] | None = None) -> Console:
    """A rich console for standard output (or ``file``). NO_COLOR and dumb terminals are respected by rich."""
    from rich.console import Console  # noqa: PLC0415

    stream = file or sys.stdout
    if stream.isatty():
        made = Console(file=stream, highlight=False)
    else:
        width = int(os.environ["COLUMNS"]) if os.environ.get("COLUMNS", "").isdigit() else FILE_WIDTH
        made = Console(file=stream, highlight=False, width=width, soft_wrap=False)
    made.push_render_hook(_LineCleaner(stream))  # type: ignore[arg-type]
    return made


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a line, or with ``nl`` False a part of one, on standard output (or error)."""
    stream = sys.stderr if err else sys.stdout
    stream.write(_printable(visible(text), stream) + ("\n" if nl else ""))
    stream.flush()


def write(text: str) -> None:
    """Print what is to become a file: byte for byte into a pipe or file, as text on a terminal."""
    sys.stdout.write(_printable(visible(text) if sys.stdout.isatty() else text, sys.stdout))
    sys.stdout.flush()


_PLAIN = str.maketrans({"✔": "+", "✘": "x", "…": "~", "‖": "=", "×": "x", "→": ">", "›": ">", "├": "|", "└": "`",
                        "─": "-", "│": "|", "“": '"', "”": '"', "’": "'", "–": "-", "—": "-"})  # fmt: skip
"""Marks and ribs of our own for terminals without them: one character each, so that columns stay where they are."""


def _printable(text: str, stream: IO[str]) -> str:
    return printable(text, getattr(stream, "encoding", None) or "utf-8")


def printable(text: str, encoding: str) -> str:
    """A terminal of few characters (LANG=C) gets marks of its own, and what else it lacks written out."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_PLAIN).encode(encoding, "backslashreplace").decode(encoding)
    return text


class _LineCleaner:
    """A render hook of rich: wraps all that is printed to ``stream``."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def process_renderables(self, renderables: Sequence[ConsoleRenderable]) -> list[Any]:
        return [_Shown(one, self._stream) for one in renderables]


class _Shown:
    """What rich would print, with visible text; codes of rich's own stand in the styles."""

    def __init__(self, inner: ConsoleRenderable, stream: IO[str]) -> None:
        self._inner = inner
        self._stream = stream

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        from rich.segment import Segment  # noqa: PLC0415

        for segment in console.render(self._inner, options):
            text = segment.text if segment.control else _printable(visible(segment.text), self._stream)
            yield segment if segment.control else Segment(text, segment.style)
