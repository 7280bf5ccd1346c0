"""``nodewright version``."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.options import Context, Kubeconfig
from nodewright.cli.screen import say
from nodewright.cli.structured import Output, OutputOption, show

HELP = """Print the version of Nodewright, of Python and of the API it serves; with --server also what a cluster has.

Exit code 0: printed; 1: the cluster does not answer; 2: wrong usage.
"""


def command(
    server: Annotated[bool, typer.Option("--server", help="Ask the cluster for its version and CRDs, too.")] = False,
    output: OutputOption = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    if (kubeconfig or context) and not server:
        raise CliError("--kubeconfig and --context name a cluster, and none is asked", "Add --server", USAGE)
    facts = _own()
    found = asyncio.run(_ask(Target(kubeconfig, context))) if server else None
    if output is not Output.TEXT:
        show({**facts, **(found or {})}, output)
        return
    say(f"nodewright {facts['nodewright']} (Python {facts['python']}, {facts['api']})")
    if found is not None:
        say(f"server {found['server']}")
        for name, state in found["crds"].items():
            say(f"{name}: {state}")


def own_version() -> str:
    """Of the program. Raises CliError where it is not installed."""
    import importlib.metadata  # noqa: PLC0415

    try:
        return importlib.metadata.version("nodewright")
    except importlib.metadata.PackageNotFoundError as error:
        raise CliError("nodewright is not installed here", "Run `make setup`") from error


def _own() -> dict[str, str]:
    import platform  # noqa: PLC0415

    return {"nodewright": own_version(), "python": platform.python_version(), "api": "cluster.k8s.io/v1alpha1"}


async def _ask(target: Target) -> dict[str, Any]:
    from nodewright.cli.cluster.platform import platform_of  # noqa: PLC0415

    async with client_of(await connect(target)) as client:
        found = await platform_of(client)
    return {"server": found.server, "crds": {name: _state(served) for name, served in found.crds.items()}}


def _state(served: tuple[str, ...]) -> str:
    return f"{', '.join(served)} served" if served else "missing; `nodewright install` brings it"
