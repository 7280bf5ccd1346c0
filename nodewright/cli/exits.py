"""How a command ends: exit codes, and errors that say what to do next."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from nodewright.cli.screen import say

OK = 0
FAILED = 1
"""Findings were made or the work failed."""
USAGE = 2
"""The command line itself was wrong."""
INTERRUPTED = 130
"""Ended by Ctrl-C before the work was done."""


class CliError(Exception):
    """Ends a command with one line on standard error. The message names what is wrong, ``hint`` what to do next."""

    def __init__(self, message: str, hint: str = "", code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code

    def line(self) -> str:
        """The whole line, without the program's name; newlines of foreign messages are folded."""
        text = " ".join(self.message.split())
        return f"{text.rstrip('.')}. {' '.join(self.hint.split())}" if self.hint else text


def leave_at_once(error: CliError) -> NoReturn:
    """End the process without waiting for anything that still runs in it, threads of a provider's library included."""
    say(f"nodewright: {error.line()}", err=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(error.code)
