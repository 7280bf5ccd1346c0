"""Options of all gateways that speak HTTP: where they listen, who may ask, and how they are watched."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from nodewright.gateways.cloudpool.listener import ListenerOptions

Listen = Annotated[str, typer.Option("--listen", metavar="HOST", help="Where to listen.")]
Port = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0 takes any free one.")]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port", metavar="N", min=0, max=65535, help="Serve health and metrics there. [default: not served]"
    ),
]
CertFile = Annotated[
    Path | None, typer.Option("--tls-cert-file", metavar="FILE", help="Certificate (PEM). [default: plain HTTP]")
]
KeyFile = Annotated[Path | None, typer.Option("--tls-private-key-file", metavar="FILE", help="Its key (PEM).")]
ClientCa = Annotated[
    Path | None,
    typer.Option("--client-ca-file", metavar="FILE", help="Ask for client certificates that these have signed (PEM)."),
]
UsersFile = Annotated[
    Path | None,
    typer.Option("--basic-auth-file", metavar="FILE", help="Ask for a name and password: lines user:password."),
]
AllowHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="NAME",
        help="A name, besides localhost, by which clients without a login may call it. May be repeated.",
    ),
]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Serve without TLS and login to anybody who can reach it, beyond loopback.")
]
InFlight = Annotated[
    int, typer.Option("--max-requests-in-flight", min=1, metavar="N", help="Requests at a time; more get a 503.")
]


@dataclass(frozen=True, slots=True)
class ListenerFlags:
    """As they are typed. Each gateway has a port of its own."""

    listen: Listen = "127.0.0.1"
    port: Port = 0
    metrics_port: MetricsPort = None
    cert_file: CertFile = None
    key_file: KeyFile = None
    client_ca: ClientCa = None
    users_file: UsersFile = None
    in_flight: InFlight = 400
    allow_hosts: AllowHosts = None
    insecure: Insecure = False

    def listener(self, read_timeout: float = 60.0) -> ListenerOptions:
        """Raises CliError."""
        self._check_listening()
        from nodewright.gateways.admission.certificate import CertificateError, ServedCertificate  # noqa: PLC0415
        from nodewright.gateways.cloudpool.listener import ListenerError, ListenerOptions, read_users  # noqa: PLC0415
        from nodewright.runtime.telemetry.metrics import CLOUDPOOL_CERTIFICATE_EXPIRY  # noqa: PLC0415

        if (self.cert_file is None) != (self.key_file is None):
            raise CliError("--tls-cert-file and --tls-private-key-file belong together", code=USAGE)
        if self.client_ca is not None and self.cert_file is None:
            raise CliError("--client-ca-file needs --tls-cert-file", code=USAGE)
        try:
            certificate = None
            if self.cert_file is not None and self.key_file is not None:
                certificate = ServedCertificate(self.cert_file, self.key_file, CLOUDPOOL_CERTIFICATE_EXPIRY)
            users = read_users(self.users_file) if self.users_file is not None else None
        except (CertificateError, ListenerError) as error:
            raise CliError(str(error)) from error
        return ListenerOptions(
            self.listen,
            self.port,
            certificate,
            self.client_ca,
            users,
            read_timeout,
            self.in_flight,
            frozenset(self.allow_hosts or ()),
        )

    def _check_listening(self) -> None:
        from nodewright.gateways.callers import Listening  # noqa: PLC0415

        login = self.users_file is not None or self.client_ca is not None
        protected = self.cert_file is not None and login
        if Listening(self.listen, protected, self.insecure).refused:
            hint = (
                "Give --tls-cert-file and --tls-private-key-file with --client-ca-file or --basic-auth-file; "
                "--insecure serves anybody all the same"
            )
            raise CliError(
                f"TLS and a login are needed to listen on {self.listen}, which is not loopback", hint, code=USAGE
            )


async def serve(
    asked: ListenerFlags, start: Callable[[AsyncExitStack], Awaitable[Any]], lost: Callable[[], asyncio.Event]
) -> None:
    """Start a gateway (it has ``url``, ``readiness`` and ``families``), and keep it until SIGTERM or ``lost``."""
    from nodewright.gateways.cloudpool.listener import ListenerError  # noqa: PLC0415
    from nodewright.runtime.signals import stop_on_signals  # noqa: PLC0415
    from nodewright.runtime.telemetry.observability import ObservabilityServer  # noqa: PLC0415

    stop = asyncio.Event()
    stop_on_signals(stop)
    async with AsyncExitStack() as stack:
        try:
            server = await start(stack)
            if asked.metrics_port is not None:
                await stack.enter_async_context(ObservabilityServer(asked.listen, asked.metrics_port, server))
        except ListenerError as error:
            raise CliError(str(error)) from error
        except OSError as error:
            raise CliError(f"can't listen: {error.strerror or error}", "Choose another --port or --listen") from error
        say(f"ready: serving at {server.url}")
        waiting = {asyncio.create_task(stop.wait()), asyncio.create_task(lost().wait())}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
    say("stopped")
