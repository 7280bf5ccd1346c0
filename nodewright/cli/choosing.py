"""Which objects a command is about: ``-A``, ``-l`` and ``-f``, as kubectl has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli.exits import USAGE, CliError

if TYPE_CHECKING:
    from api.selectors import Selector

AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="All namespaces, whatever -n says.")]
Labels = Annotated[
    str, typer.Option("--selector", "-l", metavar="SELECTOR", help="Only those whose labels match, as for kubectl.")
]
NamedFiles = Annotated[list[str] | None, typer.Argument(metavar="FILE", help="Files or folders; - is standard input.")]
Files = Annotated[
    list[str] | None,
    typer.Option("--filename", "-f", metavar="FILE", help="The same as FILE, as kubectl has it. Repeatable."),
]


def selector_of(labels: str) -> Selector:
    """Without labels it matches everything. Raises CliError (usage) if it can't be read."""
    from api.selectors import Selector, SelectorError, parse  # noqa: PLC0415

    try:
        return parse(labels) if labels else Selector()
    except SelectorError as error:
        raise CliError(f"-l: {error}", "It is written like pool=racks,tier!=test", USAGE) from error


def files_of(named: list[str] | None, options: list[str] | None) -> list[str]:
    """``FILE`` and ``-f FILE`` together."""
    return [*(named or ()), *(options or ())]


def some_files(named: list[str] | None, options: list[str] | None) -> list[str]:
    """The same. Raises CliError (usage) where there is none."""
    found = files_of(named, options)
    if not found:
        raise CliError("no file is named", "Name files or folders; - is standard input", USAGE)
    return found
