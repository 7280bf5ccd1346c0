"""``nodewright uninstall``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.options import Context, Kubeconfig

if TYPE_CHECKING:
    from nodewright.cli.installation.removing import Removal

HELP = """Take the controllers, their rights and their namespace out of a cluster; with `--crds` the kinds too.

It refuses while Machines exist and names them: nobody else could remove their hosts. It removes what bears the label
`app.kubernetes.io/part-of=nodewright`. Safe to repeat. Exit code 0: gone; 1: refused or failed; 2: wrong usage.
"""


def command(
    crds: Annotated[
        bool, typer.Option("--crds", help="The CustomResourceDefinitions too, with what is left of their objects.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be deleted, delete nothing.")] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=1, help="Seconds to wait until things are gone.")
    ] = 120,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    from nodewright.cli.installation.removing import Removal  # noqa: PLC0415

    asyncio.run(_uninstall(Target(kubeconfig, context), Removal(crds, dry_run, timeout)))


async def _uninstall(target: Target, how: Removal) -> None:
    from nodewright.cli.installation.removing import remove  # noqa: PLC0415

    async with client_of(await connect(target)) as client:
        await remove(client, how)
