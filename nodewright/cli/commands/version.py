"""``nodewright version``."""

from __future__ import annotations

from typing import Annotated

import typer

from nodewright.cli.exits import CliError
from nodewright.cli.screen import say

HELP = "Print the version of Nodewright, of Python and of the API it serves."


def command(
    output: Annotated[str, typer.Option("--output", "-o", metavar="FORMAT", help="text or json.")] = "text",
) -> None:
    import importlib.metadata  # noqa: PLC0415
    import json  # noqa: PLC0415
    import platform  # noqa: PLC0415

    try:
        version = importlib.metadata.version("nodewright")
    except importlib.metadata.PackageNotFoundError as error:
        raise CliError("nodewright is not installed here", "Run `make setup`") from error
    facts = {"nodewright": version, "python": platform.python_version(), "api": "cluster.k8s.io/v1alpha1"}
    if output == "json":
        say(json.dumps(facts))
    elif output == "text":
        say(f"nodewright {version} (Python {facts['python']}, {facts['api']})")
    else:
        raise CliError(f'--output must be text or json, not "{output}"', code=2)
