"""``nodewright down``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodewright.cli.commands.up import DEFAULT_FOLDER
from nodewright.cli.screen import say

HELP = """Stop the control plane that `nodewright up` has started, and wait until it has ended. Its state is kept.

Exit code 0: it has ended, or none was running; 1: it did not end; 2: wrong usage.
"""


def command(
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", metavar="DIR", help=f"Whose. [default: {DEFAULT_FOLDER}]")
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0, help="How long to wait for its end.")
    ] = 60.0,
) -> None:
    from nodewright.cli.embedded.detached import stop  # noqa: PLC0415

    folder = (data_dir or DEFAULT_FOLDER).absolute()
    process = stop(folder, timeout)
    say(f"stopped process {process}; {folder} is kept" if process else f"no control plane is running in {folder}")
