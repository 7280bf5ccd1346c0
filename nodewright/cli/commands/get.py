"""``nodewright get``."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodewright.cli import completing
from nodewright.cli.choosing import AllNamespaces
from nodewright.cli.cluster.access import Target
from nodewright.cli.exits import FAILED, USAGE, CliError
from nodewright.cli.help import Command
from nodewright.cli.options import Namespace
from nodewright.cli.structured import Output, OutputOption, show

if TYPE_CHECKING:
    from rich.text import Text

    from nodewright.cli.listing.reading import Answer
    from nodewright.cli.listing.rows import Row

HELP = """List Clusters of several management clusters.

Exit code 0: listed, though there may be none; 1: one of the management clusters could not be read; 2: wrong usage.
"""
group = typer.Typer(help=HELP, no_args_is_help=True)

TITLES = ("CONTEXT", "NAMESPACE", "NAME", "ENDPOINT", "VERSION", "CP", "WORKERS", "CONDITION", "AGE")


@group.callback()
def get() -> None:
    """List Clusters of several management clusters."""


@group.command("clusters", cls=Command, short_help="List Clusters, of all contexts and kubeconfigs that are named")
def clusters(  # noqa: PLR0913, PLR0917  (one parameter per option)
    kubeconfigs: Annotated[
        list[Path] | None, typer.Option("--kubeconfig", metavar="FILE", help="Which kubeconfig; repeatable.")
    ] = None,
    contexts: Annotated[
        list[str] | None,
        typer.Option(
            "--context", metavar="NAME", help="Which context; repeatable.", autocompletion=completing.contexts
        ),
    ] = None,
    all_contexts: Annotated[bool, typer.Option("--all-contexts", help="Every context of the kubeconfigs.")] = False,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, max=3600, help="For each management cluster.")
    ] = 15.0,
    output: OutputOption = Output.TEXT,
) -> None:
    """List Clusters with their endpoint, version, Machines that are ready and condition. All are asked at once."""
    from nodewright.cli.listing.reading import ask  # noqa: PLC0415

    if contexts and all_contexts:
        raise CliError("--context and --all-contexts exclude each other", code=USAGE)
    sides = _sides(kubeconfigs or [], contexts or [], every=all_contexts)
    answers = asyncio.run(ask(sides, None if all_namespaces else namespace, timeout))
    if output is Output.TEXT:
        _print(answers)
    else:
        show(_value(answers), output)
    if any(answer.problem for answer in answers):
        raise typer.Exit(FAILED)


def _sides(files: list[Path], contexts: list[str], *, every: bool) -> list[tuple[str, Target]]:
    """Each with its title. Raises CliError for a kubeconfig that can't be read where its contexts have to be known."""
    places: list[Path | None] = list(dict.fromkeys(files)) or [None]
    if contexts:
        named = [(each, context) for context in dict.fromkeys(contexts) for each in _holding(places, context)]
    elif every:
        named = [(each, context) for each in places for context in _contexts(each)]
    else:
        return [(str(each or "current"), Target(each, None)) for each in places]
    several = len(places) > 1
    return [(f"{each}: {context}" if several else context, Target(each, context)) for each, context in named]


def _holding(places: list[Path | None], context: str) -> list[Path | None]:
    """Where that context is; all of the places if it is nowhere, so that the row says what there is."""
    if len(places) == 1:
        return places
    return [each for each in places if context in _contexts(each)] or places


def _contexts(file: Path | None) -> list[str]:
    from nodewright.cli.cluster.access import plain_errors  # noqa: PLC0415
    from nodewright.runtime.kube.kubeconfig import context_names  # noqa: PLC0415

    with plain_errors():
        return context_names(file)


def _value(answers: list[Answer]) -> dict[str, Any]:
    return {"managementClusters": [_answer(each) for each in answers]}


def _answer(answer: Answer) -> dict[str, Any]:
    value: dict[str, Any] = {"context": answer.title, "clusters": [_row_value(row) for row in answer.rows]}
    return {**value, "problem": answer.problem} if answer.problem else value


def _row_value(row: Row) -> dict[str, Any]:
    from controllers.kernel.conditions import format_time  # noqa: PLC0415

    value = {
        "namespace": row.cluster.namespace,
        "name": row.cluster.name,
        "endpoint": row.endpoint,
        "version": row.version,
        "controlPlane": {"ready": row.control_plane.ready, "wanted": row.control_plane.wanted},
        "workers": {"ready": row.workers.ready, "wanted": row.workers.wanted},
        "condition": row.condition,
        "message": row.message,
        "created": format_time(row.created) if row.created is not None else "",
    }
    return {name: each for name, each in value.items() if each != ""}


def _print(answers: list[Answer]) -> None:
    from rich.text import Text  # noqa: PLC0415

    from nodewright.cli.screen import console, say  # noqa: PLC0415
    from nodewright.reports.columns import aligned  # noqa: PLC0415

    if not any(answer.rows or answer.problem for answer in answers):
        say("there is no Cluster; `nodewright create cluster` makes one")
        return
    table, below = _table(answers)
    out = console()
    for number, line in enumerate(aligned(table)):
        out.print(line, soft_wrap=True)
        for text in _folded(below.get(number, ""), out.width):
            out.print(Text(f"    {text}", "dim"), soft_wrap=True)


def _table(answers: list[Answer]) -> tuple[list[list[Text]], dict[int, str]]:
    """The rows, titles first, and by number of a row what is to stand below it."""
    from rich.text import Text  # noqa: PLC0415

    now = datetime.now(UTC)
    table = [[Text(title, "bold") for title in TITLES]]
    below: dict[int, str] = {}
    for answer in answers:
        for row in answer.rows:
            table.append(_cells(answer.title, row, now))
            below[len(table) - 1] = row.message
        if answer.problem:
            table.append([Text(answer.title), *map(Text, "------"), Text("Unreachable", "bold red"), Text("-")])
            below[len(table) - 1] = answer.problem
    return table, below


def _folded(text: str, width: int) -> list[str]:
    import textwrap  # noqa: PLC0415

    return textwrap.wrap(text, max(40, width - 4), break_long_words=False, break_on_hyphens=False)


def _cells(title: str, row: Row, now: datetime) -> list[Text]:
    from rich.text import Text  # noqa: PLC0415

    from nodewright.reports.tree.drawing import age  # noqa: PLC0415

    plain = (title, row.cluster.namespace, row.cluster.name, row.endpoint or "-", row.version or "-")
    counts = (str(row.control_plane), str(row.workers))
    style = {"Ready": "green", "Paused": "magenta"}.get(row.condition, "yellow")
    last = age(row.created, now) or "-"
    return [*map(Text, plain), *map(Text, counts), Text(row.condition, style), Text(last)]
