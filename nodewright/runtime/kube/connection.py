"""Where an API server is and how we prove who we are. Holds secrets: its ``repr`` shows none of them."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from nodewright.runtime.kube.errors import ConfigurationError

SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_FILE_MAX_AGE = 60.0
"""Seconds after which a token file is read again; kubelets rotate projected tokens long before they expire."""


SocketFactory = Callable[[Any], socket.socket]
"""From what ``getaddrinfo`` says of one address."""


class TokenSource(Protocol):
    """Gives the bearer token of the moment."""

    async def token(self) -> str:
        """Raises ConfigurationError if there is none to be had."""

    def reject(self) -> None:
        """The server refused the last token (401): get another one."""


@dataclass(frozen=True, slots=True)
class StaticToken:
    value: str = field(repr=False)

    async def token(self) -> str:
        return self.value

    def reject(self) -> None:
        """Nothing newer to be had."""


class FileToken:
    """A token in a file that somebody else keeps fresh (a projected service account token)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._value = ""
        self._read_at = float("-inf")

    async def token(self) -> str:
        now = asyncio.get_running_loop().time()
        if now - self._read_at > TOKEN_FILE_MAX_AGE:
            try:
                self._value = (await asyncio.to_thread(self._path.read_text)).strip()
            except OSError as error:
                raise ConfigurationError(f"token file {self._path}: {error.strerror}") from error
            self._read_at = now
        return self._value

    def reject(self) -> None:
        self._read_at = float("-inf")


@dataclass(frozen=True, slots=True)
class Connection:
    """An API server. ``server`` is its URL without a trailing slash; the PEM fields hold the data itself.

    ``namespace`` is the one of the kubeconfig's context, or the pod's (``in_cluster``). ``insecure`` skips the check
    of the server's certificate. ``sockets`` None: any address may be connected to; else it makes the socket for each
    address, or raises OSError.
    """

    server: str
    ca: bytes = b""
    client_certificate: bytes = field(default=b"", repr=False)
    client_key: bytes = field(default=b"", repr=False)
    tokens: TokenSource | None = field(default=None, repr=False)
    server_name: str = ""
    proxy: str = ""
    insecure: bool = False
    namespace: str = "default"
    in_cluster: bool = False
    sockets: SocketFactory | None = field(default=None, repr=False, compare=False)

    def ssl_context(self) -> ssl.SSLContext | None:
        """None for plain HTTP. Costs some 75 ms of CPU: make one per connection and share it.

        Raises ConfigurationError if certificate or key can't be used.
        """
        if not self.server.startswith("https:"):
            return None
        try:
            context = ssl.create_default_context(cadata=self.ca.decode() if self.ca else None)
            if self.insecure:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if self.client_certificate:
                _load_client_certificate(context, self.client_certificate, self.client_key)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigurationError(f"{self.server}: certificate or key can't be used: {error}") from error
        return context


def _load_client_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """``ssl`` reads key pairs from files only: one is written, readable for us alone, and removed at once."""
    descriptor, path = tempfile.mkstemp(prefix="nodewright-", suffix=".pem")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(certificate.rstrip() + b"\n" + key)
        context.load_cert_chain(path, password="")  # without one OpenSSL would ask the terminal for it
    finally:
        Path(path).unlink(missing_ok=True)


def in_cluster(directory: Path = SERVICE_ACCOUNT_DIR, environment: Mapping[str, str] | None = None) -> Connection:
    """The connection of a pod with a service account.

    Raises ConfigurationError outside of a cluster.
    """
    environment = os.environ if environment is None else environment
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConfigurationError(
            "there is no kubeconfig ($KUBECONFIG, ~/.kube/config), and this is not in a cluster "
            "(KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set)"
        )
    try:
        ca = (directory / "ca.crt").read_bytes()
        namespace = (directory / "namespace").read_text().strip()
    except OSError as error:
        raise ConfigurationError(f"service account {error.filename}: {error.strerror}") from error
    host = f"[{host}]" if ":" in host else host
    tokens = FileToken(directory / "token")
    return Connection(f"https://{host}:{port}", ca=ca, tokens=tokens, namespace=namespace or "default", in_cluster=True)
