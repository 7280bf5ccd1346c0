"""``-o json`` and ``-o yaml`` of commands that show something: the same value that the text is drawn from."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodewright.cli.screen import say

if TYPE_CHECKING:
    from nodewright.cli.tree.branch import Branch


class Output(StrEnum):
    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="text, json or yaml.")]


def show(value: Any, output: Output) -> None:
    """Print a value of JSON types; ``output`` is JSON or YAML."""
    if output is Output.JSON:
        import json  # noqa: PLC0415

        say(json.dumps(value, indent=2, ensure_ascii=False))
        return
    import yaml  # noqa: PLC0415

    say(yaml.safe_dump(value, sort_keys=False, allow_unicode=True), nl=False)


def branch_value(branch: Branch) -> dict[str, Any]:
    """A tree as nested objects; what a line does not say is left out. ``mood``: ok, busy, wrong or paused."""
    from controllers.kernel.conditions import format_time  # noqa: PLC0415

    value: dict[str, Any] = {
        "name": branch.name,
        "mood": str(branch.mood),
        "state": branch.state,
        "reason": branch.reason,
        "since": format_time(branch.since) if branch.since is not None else "",
        "message": branch.message,
        "nextStep": branch.advice,
        "children": [branch_value(child) for child in branch.children],
    }
    return {name: each for name, each in value.items() if each}
