"""``nodewright create``."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli.commands.up import DEFAULT_FOLDER
from nodewright.cli.exits import INTERRUPTED, USAGE, CliError
from nodewright.cli.help import Command
from nodewright.cli.options import LogLevel, Verbosity
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from nodewright.cli.creation.creating import Order
    from nodewright.cli.creation.showing import Display
    from nodewright.cli.embedded.session import Session

HELP = """Make a cluster from files, without a management cluster: this process is the management cluster.

Exit code 0: the cluster is ready; 1: something is wrong; 2: wrong usage; 130: stopped before the end. After 1 and 130
the same command goes on.
"""
group = typer.Typer(help=HELP, no_args_is_help=True)

TIMEOUT = 3600.0


@group.callback()
def create() -> None:
    """Make a cluster from files, without a management cluster."""


@group.command("cluster", cls=Command, short_help="Make one cluster from YAML files and wait until it is ready")
def cluster(  # noqa: PLR0913, PLR0917  (one parameter per option)
    files: Annotated[
        list[str],
        typer.Option("--filename", "-f", metavar="FILE", help="File or folder; - is standard input; repeatable."),
    ],
    keep: Annotated[
        bool, typer.Option("--keep", help="The objects stay in the data folder, for `nodewright up` to go on with.")
    ] = False,
    addons: Annotated[
        list[str] | None,
        typer.Option("--addons", metavar="FILE", help="Apply this in the new cluster, in the order given; repeatable."),
    ] = None,
    kubeconfig_out: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig-out",
            metavar="FILE",
            help="Where its kubeconfig goes (0600). [default: ./<cluster>.kubeconfig]",
        ),
    ] = None,
    data_dir: Annotated[
        Path, typer.Option("--data-dir", metavar="DIR", help="Where state is kept, as of `nodewright up`.")
    ] = DEFAULT_FOLDER,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0, help="Give up after so long; 0: never.")
    ] = TIMEOUT,
    log_level: LogLevel = Verbosity.ERROR,
) -> None:
    """Apply the files to a control plane in this process, and wait until all Machines are Nodes that are Ready.

    Add-ons are applied as soon as the new cluster's API answers, and waited for at the end. Stopped at any moment, even
    by kill -9, and run again it goes on.
    """
    from nodewright.cli.commands.validate import texts  # noqa: PLC0415
    from nodewright.cli.creation.addons import AddOn  # noqa: PLC0415
    from nodewright.cli.creation.creating import Order  # noqa: PLC0415
    from nodewright.cli.creation.declared import declared, objects_in  # noqa: PLC0415
    from nodewright.runtime.logs import configure  # noqa: PLC0415

    if not keep:
        text = "the objects can't be moved into the new cluster yet, so they have to stay in the data folder"
        raise CliError(text, "Say so with --keep; `nodewright up` goes on with them", USAGE)
    configure(level=log_level.value)
    found = declared(texts(files))
    read = [AddOn(name, tuple(objects_in(name, text))) for name, text in texts(addons)] if addons else []
    out = (kubeconfig_out or Path(f"{found.cluster.name}.kubeconfig")).absolute()
    order = Order(found, read, out, timeout)
    if not asyncio.run(_create(order, data_dir.absolute())):
        say("stopped before the end; the same command goes on", err=True)
        raise typer.Exit(INTERRUPTED)


async def _create(order: Order, folder: Path) -> bool:
    from nodewright.cli.creation.showing import display  # noqa: PLC0415
    from nodewright.cli.embedded.session import SessionOptions, session  # noqa: PLC0415
    from nodewright.cli.embedded.working import work_in  # noqa: PLC0415
    from nodewright.runtime.signals import stop_on_signals  # noqa: PLC0415

    stop = asyncio.Event()
    stop_on_signals(stop)
    async with session(SessionOptions(folder), stop) as running:
        if stop.is_set():
            return False
        shown = display()
        try:
            return await work_in(running, _work(running, order, shown, folder))
        finally:
            shown.close()


async def _work(running: Session, order: Order, shown: Display, folder: Path) -> None:
    from nodewright.cli.cluster.access import client_of  # noqa: PLC0415
    from nodewright.cli.creation.creating import Creation  # noqa: PLC0415

    started = time.monotonic()
    async with client_of(running.connection) as client:
        creation = Creation(client, running.connection, order, shown)
        await creation.run()
    shown.close()
    key = order.declared.cluster
    kubeconfig = order.kubeconfig if creation.own_api else running.kubeconfig
    say(f"Cluster {key} is ready after {time.monotonic() - started:.0f} s, kubeconfig {kubeconfig}")
    say(f"\nNext:\n  kubectl --kubeconfig {kubeconfig} get nodes")
    say(f"  nodewright up --data-dir {folder}    # goes on managing it: scale, upgrade, replace what fails")
    say(f"  nodewright delete cluster {key.name} --data-dir {folder}")
