"""Live progress: a bar on a terminal, a line every tenth otherwise. On standard error, so that output stays clean."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nodewright.cli.screen import console, say

Tell = Callable[[int, str], None]
"""``(how many are done, what is remarkable about the last one or "")``."""


@contextmanager
def counting(what: str, total: int) -> Iterator[Tell]:
    """Show how many of ``total`` are done."""
    if not sys.stderr.isatty():
        yield _by_tenths(what, total)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=total)
        remarks = 0

        def tell(done: int, remark: str) -> None:
            nonlocal remarks
            remarks += bool(remark)
            bar.update(task, completed=done, description=f"{what} ({remarks}× {remark})" if remark else None)

        yield tell


def _by_tenths(what: str, total: int) -> Tell:
    step = max(1, total // 10)

    def tell(done: int, remark: str) -> None:
        if done % step == 0 or remark:
            say(f"{done}/{total} {what}{f': {remark}' if remark else ''}", err=True)

    return tell
