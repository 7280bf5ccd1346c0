"""``kubectl_complete-nodewright``: kubectl runs it when Tab is pressed behind ``kubectl nodewright``.

It gets the words so far, the last one unfinished or empty, and prints what fits, a line each, and at last a colon with
the sum of cobra's directives (cobra's ShellCompDirective).
"""

from __future__ import annotations

import io
import os
import shlex
import sys
from contextlib import redirect_stdout
from typing import NoReturn

from nodewright.cli.main import COMPLETE, run
from nodewright.cli.screen import say

_FILES_TOO = 0
_NO_FILES = 4


def main() -> NoReturn:
    words = sys.argv[1:]
    os.environ |= {
        "COMP_WORDS": shlex.join(["nodewright", *words]),
        "COMP_CWORD": str(max(len(words), 1)),
        COMPLETE: "complete_bash",
    }
    found = io.StringIO()
    with redirect_stdout(found):
        run([])
    lines = found.getvalue().split()
    say("\n".join([*lines, f":{_NO_FILES if lines else _FILES_TOO}"]))
    sys.exit(0)
