"""Where output goes: a terminal with colours, or a file with none."""

from __future__ import annotations

import os
import sys
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

FILE_WIDTH = 10_000
"""Columns when nobody looks: so wide that lines stay whole for grep."""


def console(file: IO[str] | None = None) -> Console:
    """A rich console for standard output (or ``file``). NO_COLOR and dumb terminals are respected by rich."""
    from rich.console import Console  # noqa: PLC0415

    stream = file or sys.stdout
    if stream.isatty():
        return Console(file=stream, highlight=False)
    width = int(os.environ["COLUMNS"]) if os.environ.get("COLUMNS", "").isdigit() else FILE_WIDTH
    return Console(file=stream, highlight=False, width=width, soft_wrap=False)
