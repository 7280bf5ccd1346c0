"""``nodewright webhook``."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli.exits import CliError
from nodewright.cli.options import Format, LogFormat, LogLevel, Verbosity
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from nodewright.gateways.admission.certificate import ServedCertificate

HELP = """Serve the validating admission webhook over TLS, until SIGTERM or Ctrl-C.

It refuses what the CRDs can't see to be wrong, with the field named, and asks no cluster and no cloud. Renewed
certificate files are taken without a restart. Exit code 0: stopped as asked; 1: failed; 2: wrong usage.
"""


@dataclass(frozen=True, slots=True)
class _How:
    host: str
    port: int
    metrics_port: int | None


def command(  # noqa: PLR0913, PLR0917  (one parameter per option)
    cert_file: Annotated[
        Path, typer.Option("--tls-cert-file", metavar="FILE", help="Certificate, with its chain behind it (PEM).")
    ],
    key_file: Annotated[Path, typer.Option("--tls-private-key-file", metavar="FILE", help="Its key (PEM).")],
    listen: Annotated[str, typer.Option("--listen", metavar="HOST", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0 takes any free one.")
    ] = 9443,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port", metavar="N", min=0, max=65535, help="Serve metrics there. [default: not served]"
        ),
    ] = None,
    log_level: LogLevel = Verbosity.INFO,
    log_format: LogFormat = Format.AUTO,
) -> None:
    from nodewright.runtime.telemetry.logs import configure  # noqa: PLC0415

    certificate = _certificate(cert_file, key_file)
    configure(json=log_format.json, level=log_level.value)
    asyncio.run(_serve(certificate, _How(listen, port, metrics_port)))


def _certificate(cert_file: Path, key_file: Path) -> ServedCertificate:
    from nodewright.gateways.admission.certificate import CertificateError, ServedCertificate  # noqa: PLC0415
    from nodewright.runtime.telemetry.metrics import WEBHOOK_CERTIFICATE_EXPIRY  # noqa: PLC0415

    try:
        return ServedCertificate(cert_file, key_file, WEBHOOK_CERTIFICATE_EXPIRY)
    except CertificateError as error:
        raise CliError(str(error), "Name PEM files of a certificate and of its key") from error


async def _serve(certificate: ServedCertificate, how: _How) -> None:
    from nodewright.gateways.admission.server import AdmissionServer, Where  # noqa: PLC0415
    from nodewright.runtime.signals import stop_on_signals  # noqa: PLC0415
    from nodewright.runtime.telemetry.observability import ObservabilityServer  # noqa: PLC0415

    stop = asyncio.Event()
    stop_on_signals(stop)
    async with AsyncExitStack() as stack:
        try:
            server = await stack.enter_async_context(AdmissionServer(Where(how.host, how.port), certificate))
            if how.metrics_port is not None:
                watching = ObservabilityServer(how.host, how.metrics_port, server)
                await stack.enter_async_context(watching)
        except OSError as error:
            raise CliError(f"can't listen: {error.strerror or error}", "Choose another --port or --listen") from error
        say(f"ready: serving reviews at {server.url}/validate")
        await stop.wait()
    say("stopped")
