"""Options that several commands share, so that they are spelled and explained alike."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nodewright.cli import completing
from nodewright.cli.exits import USAGE, CliError

Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig", metavar="FILE", help="Which kubeconfig; else $KUBECONFIG, ~/.kube/config, in-cluster."
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        help="Which context of the kubeconfig.",
        autocompletion=completing.contexts,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NS", help="Which namespace.", autocompletion=completing.namespaces),
]


class Verbosity(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


LogLevel = Annotated[Verbosity, typer.Option("--log-level", help="How much to log on standard error.")]


class Format(StrEnum):
    AUTO = "auto"
    JSON = "json"
    TEXT = "text"

    @property
    def json(self) -> bool | None:
        """For ``logs.configure``: None leaves the choice to what standard error is."""
        return None if self is Format.AUTO else self is Format.JSON


LogFormat = Annotated[
    Format, typer.Option("--log-format", help="How to log; auto: text on a terminal, else one JSON object a line.")
]


def one_object(kind: str, name: str | None, example: str) -> tuple[str, str]:
    """Kind and name of ``KIND NAME`` or, as kubectl takes it too, ``KIND/NAME``. Raises CliError (usage)."""
    if name is None:
        kind, _, name = kind.partition("/")
    if not kind or not name or "/" in kind + name:
        raise CliError(f"{kind!r} names no object", f"Name one like {example}", USAGE)
    return kind, name


def duration_of(option: str, text: str) -> timedelta:
    """``90s``, ``10m``, ``720h``, ``0``. Raises CliError (usage) that names the ``option``."""
    from api.durations import parse_duration  # noqa: PLC0415

    try:
        return parse_duration(text)
    except ValueError as error:
        raise CliError(f"{option}: {error}", code=USAGE) from error
