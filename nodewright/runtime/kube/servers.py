"""What an API server may be that a Secret names: how far it is trusted, and what it may cost."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.errors import ConfigurationError
from providers.base.addresses import AddressPolicy, current


class Tls(StrEnum):
    """What is demanded of a workload cluster's connection."""

    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    """``insecure-skip-tls-verify`` is taken too."""
    PLAIN = "plain"
    """``http://`` is taken too."""


@dataclass(frozen=True, slots=True)
class ServerPolicy:
    """``addresses`` None: that of the process (``providers.base.addresses``)."""

    tls: Tls = Tls.VERIFIED
    addresses: AddressPolicy | None = None

    def check(self, connection: Connection, title: str) -> None:
        """Raises ConfigurationError beginning with ``title``. Addresses are judged when they are connected to."""
        if connection.proxy:
            raise ConfigurationError(f"{title}: proxy-url is refused: a proxy would reach what this process may not")
        if connection.insecure and self.tls is Tls.VERIFIED:
            text = "insecure-skip-tls-verify is refused; put the CA into certificate-authority-data"
            raise ConfigurationError(f"{title}: {text} (the administrator can allow it: --workload-tls=unverified)")
        if not connection.server.startswith("https:") and self.tls is not Tls.PLAIN:
            text = "server is not an https URL"
            raise ConfigurationError(f"{title}: {text} (the administrator can allow http: --workload-tls=plain)")

    def sockets(self) -> Callable[[Any], socket.socket]:
        return checked_sockets(self.addresses or current())


def checked_sockets(policy: AddressPolicy) -> Callable[[Any], socket.socket]:
    """A socket factory for aiohttp's connector, asked for each address that it is about to connect to."""

    def make(info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, address = info
        policy.check(str(address[0]))
        return socket.socket(family, kind, protocol)

    return make
