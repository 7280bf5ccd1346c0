"""``nodewright restore``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodewright.cli.archives.keys import KeyFlags
from nodewright.cli.commands.up import DEFAULT_FOLDER
from nodewright.cli.flags import with_flags
from nodewright.cli.screen import say

HELP = """Make a data folder of `nodewright up` from a backup. The folder must be empty; all of it appears at once.

Exit code 0: done and checked; 1: it can't be restored, and nothing was; 2: wrong usage.
"""


@with_flags
def command(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `nodewright backup` has written.")],
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", metavar="DIR", help=f"Where to. [default: {DEFAULT_FOLDER}]")
    ] = None,
    key: KeyFlags,
    check: Annotated[bool, typer.Option("--check", help="Only look whether it could be restored.")] = False,
) -> None:
    from nodewright.cli.archives import backups  # noqa: PLC0415
    from nodewright.cli.archives.contents import BACKUP, load  # noqa: PLC0415

    folder = (data_dir or DEFAULT_FOLDER).absolute()
    if not check:
        backups.refuse_used(folder)  # before a passphrase is asked for
    contents = load(file, key.keys(), BACKUP)
    what = f"{len(contents.entries)} objects of {contents.made}, written by Nodewright {contents.version}"
    if check:
        backups.check(contents)
        say(f"{file} can be restored: {what}")
        return
    backups.restore(contents, folder)
    say(f"{folder}: {what}; read again and compared")
    say("What was made since then has no Machine here: hosts of it stay claimed and are reported as orphans.")
    say(f"Start it with `nodewright up --data-dir {folder}`; the one that it was taken of must not run any more.")
