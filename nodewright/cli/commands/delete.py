"""``nodewright delete``."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli.commands.up import DEFAULT_FOLDER
from nodewright.cli.exits import INTERRUPTED, CliError
from nodewright.cli.help import Command
from nodewright.cli.options import LogLevel, Verbosity
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from controllers.kernel.refs import Key
    from nodewright.cli.creation.showing import Display
    from nodewright.cli.embedded.session import Session

HELP = """Take down what `nodewright create` has made.

Exit code 0: nothing of it is left; 1: something could not be removed and is named; 2: wrong usage; 130: stopped before
the end. After 1 and 130 the same command goes on.
"""
group = typer.Typer(help=HELP, no_args_is_help=True)

TIMEOUT = 1800.0


@group.callback()
def delete() -> None:
    """Take down what `nodewright create` has made."""


@dataclass(frozen=True, slots=True)
class _Order:
    cluster: Key
    folder: Path
    timeout: float
    unreachable: bool
    simulated_cloud: Path | None


@group.command("cluster", cls=Command, short_help="Delete a Cluster with all its Machines and their hosts")
def cluster(  # noqa: PLR0913, PLR0917  (one parameter per option)
    name: Annotated[str, typer.Argument(metavar="NAME", help="The Cluster's name.")],
    namespace: Annotated[str, typer.Option("--namespace", "-n", metavar="NS", help="Which namespace.")] = "default",
    data_dir: Annotated[
        Path, typer.Option("--data-dir", metavar="DIR", help="Where its objects are, as of `nodewright up`.")
    ] = DEFAULT_FOLDER,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0, help="Give up after so long; 0: never.")
    ] = TIMEOUT,
    unreachable: Annotated[
        bool, typer.Option("--unreachable", help="Its API is gone for good: remove all hosts at once, drain nothing.")
    ] = False,
    simulated_cloud: Annotated[
        Path | None,
        typer.Option("--simulated-cloud", metavar="DIR", help="Cloud shared with `nodewright up`."),
    ] = None,
    log_level: LogLevel = Verbosity.ERROR,
) -> None:
    """Delete workers first, then control planes and the Cluster, and wait until their hosts are gone.

    Objects that were moved into the cluster come back first. What can't be removed is named with the reason.
    """
    from controllers.kernel.refs import Key  # noqa: PLC0415
    from nodewright.runtime.telemetry.logs import configure  # noqa: PLC0415

    configure(level=log_level.value)
    folder = data_dir.absolute()
    if not folder.is_dir():
        raise CliError(f"{folder} does not exist, so it holds no Cluster", "Name its folder with --data-dir")
    cloud = simulated_cloud and simulated_cloud.absolute()
    order = _Order(Key(namespace, name), folder, timeout, unreachable, cloud)
    if not asyncio.run(_delete(order)):
        raise typer.Exit(INTERRUPTED)


async def _delete(order: _Order) -> bool:
    from nodewright.cli.creation.removing import named  # noqa: PLC0415
    from nodewright.cli.creation.showing import display  # noqa: PLC0415
    from nodewright.cli.embedded.session import SessionOptions, session  # noqa: PLC0415
    from nodewright.cli.embedded.working import work_in  # noqa: PLC0415
    from nodewright.runtime.signals import stop_on_signals  # noqa: PLC0415

    stop, left = asyncio.Event(), list[str]()
    stop_on_signals(stop)
    async with session(SessionOptions(order.folder, simulated_cloud=order.simulated_cloud), stop) as running:
        if stop.is_set():
            return False
        shown = display()
        try:
            done = await work_in(running, _work(running, order, shown, left))
        finally:
            shown.close()
    if not done:
        say(f"stopped before the end; left are: {named(left)}. The same command goes on", err=True)
    return done


async def _work(running: Session, order: _Order, shown: Display, left: list[str]) -> None:
    from nodewright.cli.cluster.access import client_of  # noqa: PLC0415
    from nodewright.cli.creation.moved_in import MovedIn  # noqa: PLC0415
    from nodewright.cli.creation.removing import Removal  # noqa: PLC0415

    started = time.monotonic()
    moved = MovedIn(order.folder, order.cluster, shown.say)
    async with client_of(running.connection) as client:
        if moved.has_begun:
            left[:] = [f"Cluster {order.cluster.name}, whose objects are in itself"]
            await moved.bring_back(client)
            if not order.unreachable:
                await moved.end_controllers()
        removal = Removal(client, order.cluster, shown, order.timeout)
        try:
            await removal.run(unreachable=order.unreachable)
        finally:
            left[:] = removal.left
        moved.forget()
    shown.close()
    say(f"Cluster {order.cluster} is gone with all its Machines after {time.monotonic() - started:.0f} s")
