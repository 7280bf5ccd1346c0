"""``nodewright convert``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nodewright.cli.choosing import Files, NamedFiles, some_files
from nodewright.cli.exits import FAILED
from nodewright.cli.screen import say, write

HELP = """Move provider configurations from providerSpec, or from text, to providerConfig; or to providerSpec.

ProvisioningRequests that are spelt as in their proposal (provisioningClass, Parameters) get the fields that are served.

Reads files, folders or standard input (`-`) and writes all documents to standard output; what has nothing to convert
is passed on as it is written. Exit code 0: done; 1: something could not be converted, it is named and passed on as it
is; 2: wrong usage.
"""


class Target(StrEnum):
    PROVIDER_CONFIG = "providerConfig"
    PROVIDER_SPEC = "providerSpec"


def command(
    files: NamedFiles = None,
    filenames: Files = None,
    to: Annotated[Target, typer.Option("--to", help="The field to move configurations to.")] = Target.PROVIDER_CONFIG,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Errors only, no remarks and no summary.")] = False,
) -> None:
    from nodewright.cli.commands.validate import texts  # noqa: PLC0415
    from nodewright.cli.manifests.rewriting import joined, rewrite  # noqa: PLC0415

    done = [rewrite(name, text, to.value) for name, text in texts(some_files(files, filenames))]
    for part in joined([result.text for result in done]):
        write(part)
    faults = [fault for result in done for fault in result.faults]
    for fault in faults:
        say(fault.line(), err=True)
    if not quiet:
        for remark in [remark for result in done for remark in result.remarks]:
            say(f"{remark.line()} (kept as it is)", err=True)
        count = sum(result.changed for result in done)
        say(f"{count} object{'s' if count != 1 else ''} converted", err=True)
    if faults:
        raise typer.Exit(FAILED)
