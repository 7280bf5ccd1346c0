"""``nodewright completion``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nodewright.cli.screen import say

HELP = """Print what makes a shell complete commands, options, kinds, names, namespaces and contexts.

For bash: source <(nodewright completion bash). For zsh: source <(nodewright completion zsh). For fish:
nodewright completion fish | source. Names are read from the cluster that the command line means.

Exit code 0: printed; 2: wrong usage.
"""


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def command(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    from typer._completion_shared import get_completion_script  # noqa: PLC0415  (no public name)

    from nodewright.cli.main import COMPLETE  # noqa: PLC0415

    say(get_completion_script(prog_name="nodewright", complete_var=COMPLETE, shell=shell.value))
