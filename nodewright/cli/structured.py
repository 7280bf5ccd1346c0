"""``-o json`` and ``-o yaml`` of commands that show something: the same value that the text is drawn from."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from nodewright.cli.screen import say


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


def show_next(value: Any, output: Output) -> None:
    """Print one of several values, a line of JSON or a YAML document each, so that a program reads while it goes on."""
    if output is Output.JSON:
        import json  # noqa: PLC0415

        say(json.dumps(value, ensure_ascii=False))
        return
    say("---")
    show(value, output)
