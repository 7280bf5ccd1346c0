"""``nodewright gateway cloudpool``."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodewright.cli.cluster.access import Target, connect, plain_errors
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.flags import with_flags
from nodewright.cli.gateways import listener_flags
from nodewright.cli.gateways.listener_flags import ListenerFlags
from nodewright.cli.options import Context, Format, Kubeconfig, LogFormat, LogLevel, Verbosity
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from nodewright.gateways.cloudpool.instances import Instances

HELP = """Serve MachineDeployments and MachineSets as cloudpools: any cloudpool client scales them.

An only pool is served at the root, all of them below /cloudpools/NAME. Exit code 0: stopped as asked; 1: failed;
2: wrong usage.
"""
_FIRST_LOOK = 3.0
"""Seconds for the cluster to show which pools are there, before it is said that they are served."""


@with_flags
def command(  # noqa: PLR0913  (one parameter per option or group of them)
    *,
    pools: Annotated[
        list[str] | None,
        typer.Option(
            "--pool",
            metavar="[NAME=]KIND/[NS/]OBJECT",
            help="A pool; KIND is md or ms, NS is default if left out. May be repeated.",
        ),
    ] = None,
    state_file: Annotated[
        Path | None,
        typer.Option("--state-file", metavar="FILE", help="Keep what clients configure there. [default: in memory]"),
    ] = None,
    stopped: Annotated[bool, typer.Option("--stopped/--no-stopped", help="Pools wait for a client's start.")] = False,
    listener: ListenerFlags = ListenerFlags(port=9010),  # noqa: B008 - frozen
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    log_level: LogLevel = Verbosity.INFO,
    log_format: LogFormat = Format.AUTO,
) -> None:
    from nodewright.runtime.telemetry.logs import configure  # noqa: PLC0415

    instances = _instances(pools or [], stopped, state_file)
    configure(json=log_format.json, level=log_level.value)
    asyncio.run(_run(Target(kubeconfig, context), instances, listener))


def _instances(pools: list[str], stopped: bool, state_file: Path | None) -> Instances:
    from nodewright.gateways.cloudpool.instances import InstanceError, Instances, parse_pool  # noqa: PLC0415

    try:
        given = [parse_pool(text) for text in pools]
    except InstanceError as error:
        raise CliError(str(error), code=USAGE) from error
    twice = {name for name, _ in given if sum(other == name for other, _ in given) > 1}
    if twice:
        raise CliError(f"two pools are named {sorted(twice)[0]}", "Name one of them otherwise: NAME=KIND/OBJECT", USAGE)
    try:
        return Instances(dict(given), not stopped, state_file)
    except InstanceError as error:
        raise CliError(str(error), "Remove it, or name another --state-file") from error


async def _run(target: Target, instances: Instances, flags: ListenerFlags) -> None:
    from nodewright.gateways.cloudpool.server import CloudpoolServer, ServerOptions  # noqa: PLC0415
    from nodewright.runtime.kube.client import KubeClient  # noqa: PLC0415

    connection = await connect(target)
    options = ServerOptions(flags.listener())

    async def start(stack: AsyncExitStack) -> Any:
        client = await stack.enter_async_context(KubeClient(connection, "cloudpool"))
        say(f"cloudpools of {connection.server}: {instances}")
        server = await stack.enter_async_context(CloudpoolServer(client, instances, options))
        for line in await server.missing(_FIRST_LOOK):
            say(line)
        return server

    with plain_errors():
        await listener_flags.serve(flags, start, asyncio.Event)
