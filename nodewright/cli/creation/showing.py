"""Shows a cluster while it is made or taken down: a live tree on a terminal, a line for each step otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from nodewright.cli.screen import console, say
from nodewright.reports.tree.branch import Branch
from nodewright.reports.tree.drawing import lines

if TYPE_CHECKING:
    from rich.console import Group

_LONGEST_MESSAGE = 160
"""Characters of a message in a line; the tree shows all of it."""

Lines = dict[tuple[str, ...], tuple[str, str, str]]
"""Path in the tree to state, reason and message."""


class Display(Protocol):
    def show(self, tree: Branch | None, now: datetime) -> None:
        """This is how things are now; None: there is no such Cluster."""

    def say(self, text: str) -> None:
        """A line that stays."""

    def close(self) -> None: ...


def display() -> Display:
    """For standard output, whatever it is."""
    return LiveDisplay() if sys.stdout.isatty() else PlainDisplay()


class PlainDisplay:
    """For pipes, logs and CI. Each line begins with the seconds since the start."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._before: Lines = {}

    def show(self, tree: Branch | None, now: datetime) -> None:
        del now
        after = dict(_lines_of(tree)) if tree is not None else {}
        for line in changes(self._before, after):
            self.say(line)
        self._before = after

    def say(self, text: str) -> None:
        say(f"{time.monotonic() - self._started:7.1f}s  {text}")

    def close(self) -> None:
        """Nothing is open."""


class LiveDisplay:
    """For people: the tree of `nodewright describe`, which changes in place."""

    def __init__(self) -> None:
        from rich.live import Live  # noqa: PLC0415

        self._console = console(sys.stdout)
        self._started = time.monotonic()
        self._tree: tuple[Branch, datetime] | None = None
        self._live = Live(console=self._console, refresh_per_second=4, get_renderable=self._drawn)
        self._live.start()

    def show(self, tree: Branch | None, now: datetime) -> None:
        self._tree = (tree, now) if tree is not None else None

    def say(self, text: str) -> None:
        self._console.print(text, markup=False)

    def close(self) -> None:
        self._live.stop()

    def _drawn(self) -> Group:
        from rich.console import Group  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        drawn = lines(*self._tree, self._console.width) if self._tree is not None else []
        return Group(*drawn, Text(f"{time.monotonic() - self._started:5.1f} s", "dim"))


def changes(before: Lines, after: Lines) -> Iterator[str]:
    """What is new, top down, then what is gone. Lines that are no objects are shown for Machines alone."""
    for path, reported in after.items():
        if before.get(path) != reported and any("/" in path[-1] or above.startswith("Machine/") for above in path[-2:]):
            state, reason, message = reported
            words = " ".join(word for word in (state, reason) if word)
            shown = message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}…"
            yield f"{' › '.join(path[-2:])}: {words}{f': {shown}' if shown else ''}".rstrip(": ")
    for path in before:
        if path not in after and "/" in path[-1] and path[:-1] not in before.keys() - after.keys():
            yield f"{path[-1]} is gone"


def _lines_of(branch: Branch, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], tuple[str, str, str]]]:
    path = (*above, branch.name)
    yield path, (branch.state, branch.reason, " ".join(branch.message.split()))
    for child in branch.children:
        yield from _lines_of(child, path)
