"""``nodewright backup``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodewright.cli.archives.keys import KeyFlags
from nodewright.cli.commands.up import DEFAULT_FOLDER
from nodewright.cli.flags import with_flags
from nodewright.cli.screen import say

HELP = """Write all that `nodewright up` keeps, while it runs or stopped, into one encrypted file.

Hosts are not in it, and neither is a simulated cloud. Exit code 0: done; 1: failed; 2: wrong usage.
"""


@with_flags
def command(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it; one that is there is replaced.")],
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", metavar="DIR", help=f"Of what. [default: {DEFAULT_FOLDER}]")
    ] = None,
    key: KeyFlags,
) -> None:
    from nodewright.cli.archives.backups import take  # noqa: PLC0415
    from nodewright.cli.archives.contents import save  # noqa: PLC0415

    keys = key.keys(confirm=True)
    contents = take((data_dir or DEFAULT_FOLDER).absolute())
    save(file, contents, keys)
    say(f"{file}: {len(contents.entries)} objects at resourceVersion {contents.revision}")
