"""``nodewright run``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli.cluster.access import Target, connect, plain_errors
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.options import Context, Kubeconfig, LogLevel, Verbosity

if TYPE_CHECKING:
    from nodewright.runtime.options import Rooms

HELP = """Run the controllers against a cluster, until SIGTERM or Ctrl-C.

The CRDs must be there (`nodewright install`). Inside a pod the service account is used. Exit code 0: stopped as asked;
1: failed; 2: wrong usage.
"""


class Orphans(StrEnum):
    """As ``nodewright.runtime.options.OrphanHosts``, which costs an import of the runtime."""

    OFF = "off"
    REPORT = "report"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class _How:
    rooms: Rooms
    kubelets: bool
    orphans: str
    host: str
    health: int | None
    metrics: int | None


def command(  # noqa: PLR0913, PLR0917  (one parameter per option)
    controllers: Annotated[
        str,
        typer.Option(
            "--controllers",
            metavar="NAMES",
            help="Which ones, comma separated; * is all but certificatesigningrequest.",
        ),
    ] = "*",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    simulated_kubelets: Annotated[
        bool,
        typer.Option("--simulated-kubelets/--no-simulated-kubelets", help="Register the Nodes of simulated hosts."),
    ] = True,
    simulated_cloud: Annotated[
        Path | None,
        typer.Option("--simulated-cloud", metavar="DIR", help="Keep simulated hosts there. [default: in memory only]"),
    ] = None,
    orphan_hosts: Annotated[
        Orphans, typer.Option("--orphan-hosts", help="What becomes of hosts that no Machine knows.")
    ] = Orphans.REPORT,
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST", help="Where health and metrics listen.")
    ] = "127.0.0.1",
    health_port: Annotated[
        int | None, typer.Option("--health-port", min=0, max=65535, help="Serve /healthz there. [default: not served]")
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option("--metrics-port", min=0, max=65535, help="Serve metrics and /readyz there. [default: not served]"),
    ] = None,
    log_level: LogLevel = Verbosity.INFO,
) -> None:
    from nodewright.runtime.logs import configure  # noqa: PLC0415

    how = _How(rooms_named(controllers), simulated_kubelets, orphan_hosts.value, listen, health_port, metrics_port)
    configure(level=log_level.value)
    if simulated_cloud is not None:
        _keep_hosts_in(simulated_cloud)
    asyncio.run(_run(Target(kubeconfig, context), how))


def _keep_hosts_in(folder: Path) -> None:
    from providers.simulated import WORLDS  # noqa: PLC0415

    try:
        WORLDS.keep_in(folder)
    except RuntimeError as error:
        raise CliError(str(error), "Stop the other one, or choose another --simulated-cloud") from error
    except ValueError as error:
        raise CliError(str(error), "Remove the damaged file, or choose another --simulated-cloud") from error


def rooms_named(names: str) -> Rooms:
    """The controllers that ``names`` lists. Raises CliError (usage) for one that does not exist."""
    from nodewright.runtime.wiring import on_request  # noqa: PLC0415
    from nodewright.runtime.wiring import rooms as usual_rooms  # noqa: PLC0415

    usual = {room.name: room for room in usual_rooms()}
    known = {**usual, **{room.name: room for room in on_request()}}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if "*" in wanted:
        wanted = [*usual, *(name for name in wanted if name != "*")]
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        what = f"no controller named {', '.join(unknown)}" if unknown else "--controllers names none"
        raise CliError(what, f"There are: {', '.join(known)}", USAGE)
    return tuple(room for name, room in known.items() if name in wanted)


async def _run(target: Target, how: _How) -> None:
    from nodewright.runtime.options import OrphanHosts, RunOptions  # noqa: PLC0415

    connection = await connect(target)
    options = RunOptions(
        rooms=how.rooms,
        simulated_kubelets=how.kubelets,
        orphan_hosts=OrphanHosts(how.orphans),
        listen_host=how.host,
        health_port=how.health,
        metrics_port=how.metrics,
    )
    names = ", ".join(room.name for room in how.rooms)
    typer.echo(f"starting {names} against {connection.server}")
    # kopf takes seconds to import on a slow machine: what can be said or refused before has been by now.
    from nodewright.runtime.operator import operate  # noqa: PLC0415

    with plain_errors():
        await operate(connection, options, stop=asyncio.Event(), ready=lambda: typer.echo(f"ready: {names} at work"))
    typer.echo("stopped")
