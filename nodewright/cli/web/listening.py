"""Where the web view listens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nodewright.cli.exits import USAGE, CliError

if TYPE_CHECKING:
    from nodewright.gateways.cloudpool.listener import ListenerOptions


@dataclass(frozen=True, slots=True)
class Asked:
    """As it was typed."""

    host: str = "127.0.0.1"
    port: int = 0
    cert_file: Path | None = None
    key_file: Path | None = None
    names: frozenset[str] = frozenset()

    @property
    def protected(self) -> bool:
        return self.cert_file is not None

    @property
    def loopback(self) -> bool:
        from nodewright.gateways.callers import is_loopback  # noqa: PLC0415

        return is_loopback(self.host)


def listener_of(asked: Asked) -> ListenerOptions:
    """Raises CliError."""
    from prometheus_client import Gauge  # noqa: PLC0415

    from nodewright.gateways.admission.certificate import CertificateError, ServedCertificate  # noqa: PLC0415
    from nodewright.gateways.cloudpool.listener import ListenerOptions  # noqa: PLC0415

    if (asked.cert_file is None) != (asked.key_file is None):
        raise CliError("--tls-cert-file and --tls-private-key-file belong together", code=USAGE)
    certificate = None
    if asked.cert_file is not None and asked.key_file is not None:
        try:
            expiry = Gauge("web_certificate_expiry", "Served by nobody: the view has no metrics.", registry=None)
            certificate = ServedCertificate(asked.cert_file, asked.key_file, expiry)
        except CertificateError as error:
            raise CliError(str(error)) from error
    return ListenerOptions(asked.host, asked.port, certificate, allowed_hosts=asked.names)
