"""A command's options are declared once, as dataclasses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.testing import CliRunner

from nodewright.cli.flags import with_flags


@dataclass(frozen=True)
class Listening:
    host: Annotated[str, typer.Option("--host")] = "127.0.0.1"
    port: Annotated[int, typer.Option("--port", min=0)] = 0


def ran(*arguments: str, default: Listening | None = None) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    app = typer.Typer()

    if default is None:

        @app.command()
        @with_flags
        def command(
            *, before: Annotated[str, typer.Option("--before")] = "", flags: Listening, after: bool = False
        ) -> None:
            seen.update(before=before, flags=flags, after=after)
    else:

        @app.command()
        @with_flags
        def with_default(*, flags: Listening = default) -> None:
            seen.update(flags=flags)

    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return seen


def test_a_dataclass_stands_for_its_options() -> None:
    assert ran("--port", "7", "--after") == {"before": "", "flags": Listening("127.0.0.1", 7), "after": True}


def test_without_options_the_defaults_of_the_class_count() -> None:
    assert ran()["flags"] == Listening()


def test_a_command_may_have_defaults_of_its_own() -> None:
    assert ran("--host", "::1", default=Listening(port=8080))["flags"] == Listening("::1", 8080)
