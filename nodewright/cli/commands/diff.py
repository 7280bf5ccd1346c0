"""``nodewright diff``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli.cluster.access import Target
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.options import Context, Kubeconfig, Namespace
from nodewright.cli.screen import say
from nodewright.cli.structured import Output, OutputOption, show

if TYPE_CHECKING:
    from nodewright.cli.comparing.differences import Difference
    from nodewright.cli.comparing.sides import Side

HELP = """Show how what was declared differs: files, objects, Clusters with all that belongs to them, or contexts.

Defaults, status, what servers and controllers note down, and what controllers made are left out. Values of Secrets are
compared and never shown. Exit code as of diff, 0: nothing differs; 1: something does; 2: it can't be told.
"""
DIFFERENT = 1
TROUBLE = USAGE
"""As ``diff`` has it: 1 is an answer here, so that nothing else may end with it."""
_SIDE = "A file or folder, KIND/NAME, NAMESPACE/NAME of a Cluster, or namespace/NAME."


def command(  # noqa: PLR0913, PLR0917  (one parameter per option)
    a: Annotated[str, typer.Argument(metavar="A", help=_SIDE)],
    b: Annotated[str, typer.Argument(metavar="B", help="The same, of the other side.")],
    namespace: Namespace = None,
    to_kubeconfig: Annotated[
        Path | None, typer.Option("--to-kubeconfig", metavar="FILE", help="Where B is, if not where A is.")
    ] = None,
    to_context: Annotated[
        str | None, typer.Option("--to-context", metavar="NAME", help="The context of B, if not that of A.")
    ] = None,
    output: OutputOption = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    here = Target(kubeconfig, context)
    there = Target(to_kubeconfig or kubeconfig, to_context or (None if to_kubeconfig else context))
    try:
        sides = _sides(a, b, (here, there), namespace)
    except CliError as error:
        raise CliError(error.message, error.hint, TROUBLE) from error
    from nodewright.cli.comparing.differences import differences  # noqa: PLC0415

    pair = all(side.single for side in sides)
    kinds = {each.kind for side in sides for each in side.declarations}
    found = differences(sides[0].declarations, sides[1].declarations, pair=pair and len(kinds) == 1)
    _print(sides, found, output)
    if found:
        raise typer.Exit(DIFFERENT)


def _sides(a: str, b: str, targets: tuple[Target, Target], namespace: str | None) -> tuple[Side, Side]:
    from nodewright.cli.comparing.sides import comparable, from_cluster, from_files, is_file  # noqa: PLC0415

    if a == b == "-":
        raise CliError("standard input can be one side only", code=USAGE)
    files = [is_file(word) for word in (a, b)]

    async def side(word: str, target: Target, file: bool) -> Side:
        return from_files(word, namespace) if file else await from_cluster(word, target, namespace)

    async def both() -> tuple[Side, Side]:
        first, second = await asyncio.gather(side(a, targets[0], files[0]), side(b, targets[1], files[1]))
        return comparable(first, second, live=not all(files))

    return asyncio.run(both())


def _print(sides: tuple[Side, Side], found: list[Difference], output: Output) -> None:
    from nodewright.cli.comparing.showing import as_data, as_tree  # noqa: PLC0415

    if output is not Output.TEXT:
        show(as_data(*sides, found), output)
        return
    from nodewright.cli.screen import console  # noqa: PLC0415
    from nodewright.reports.tree.drawing import sentences  # noqa: PLC0415

    out = console()
    for line in sentences(as_tree(*sides, found), out.width) if found else ():
        out.print(line, soft_wrap=True)
    for side in sides:
        for text in side.skipped:
            say(text, err=True)
