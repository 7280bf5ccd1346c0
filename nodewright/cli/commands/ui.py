"""``nodewright ui``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.options import Context, Format, Kubeconfig, LogFormat, LogLevel, Namespace, Verbosity
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from nodewright.cli.web.listening import Asked
    from nodewright.runtime.kube.connection import Connection

HELP = """Show the fleet in a browser, live and read-only: Machines, rollouts, deletions, plans and reasons.

Prints an address with a token that is good once. Exit code 0: stopped as asked; 1: failed; 2: wrong usage.
"""


def command(  # noqa: PLR0913, PLR0917  (one parameter per option)
    namespace: Namespace = None,
    listen: Annotated[str, typer.Option("--listen", metavar="HOST", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0 takes any free one.")] = 0,
    own_tokens: Annotated[
        bool,
        typer.Option("--viewer-tokens", help="Viewers log in with tokens of the cluster, and see what these may see."),
    ] = False,
    cert_file: Annotated[
        Path | None, typer.Option("--tls-cert-file", metavar="FILE", help="Certificate (PEM). [default: plain HTTP]")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option("--tls-private-key-file", metavar="FILE", help="Its key (PEM).")
    ] = None,
    allow_hosts: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A name, besides localhost, of this view. May be repeated."),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    log_level: LogLevel = Verbosity.WARNING,
    log_format: LogFormat = Format.AUTO,
) -> None:
    from nodewright.cli.web.listening import Asked  # noqa: PLC0415
    from nodewright.runtime.telemetry.logs import configure  # noqa: PLC0415

    configure(json=log_format.json, level=log_level.value)
    asked = Asked(listen, port, cert_file, key_file, frozenset(allow_hosts or ()))
    if not asked.protected and not asked.loopback:
        hint = "Give --tls-cert-file and --tls-private-key-file, or reach it by `ssh -L` or `kubectl port-forward`"
        raise CliError(f"TLS is needed to listen on {listen}, which is not loopback", hint, USAGE)
    asyncio.run(_serve(Target(kubeconfig, context), asked, (namespace or "", own_tokens)))


async def _serve(target: Target, asked: Asked, wanted: tuple[str, bool]) -> None:
    from nodewright.cli.longevity import settle_in  # noqa: PLC0415
    from nodewright.cli.web.listening import listener_of  # noqa: PLC0415
    from nodewright.cli.web.serving import lines, web_server  # noqa: PLC0415
    from nodewright.runtime.signals import stop_on_signals  # noqa: PLC0415

    namespace, own_tokens = wanted
    connection = await connect(target)
    if not own_tokens:
        await _must_answer(connection)
    stop = asyncio.Event()
    stop_on_signals(stop)
    try:
        async with web_server(connection, listener_of(asked), namespace=namespace, own_tokens=own_tokens) as server:
            settle_in()
            await server.read_ahead()  # whoever starts this opens the page next
            say("\n".join(lines(server)))
            await stop.wait()
    except OSError as error:
        raise CliError(f"can't listen: {error.strerror or error}", "Choose another --port or --listen") from error
    say("stopped")


async def _must_answer(connection: Connection) -> None:
    """A cluster that is not there is named here, not in the browser."""
    async with client_of(connection) as client:
        await client.version()
