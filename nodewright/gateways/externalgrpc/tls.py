"""Certificates of the gRPC server: who we are, and whose certificates callers must have.

Files are read anew at each connection, so whoever renews them need not restart us. TLS 1.3 only: see the package.
"""

from __future__ import annotations

import ssl
import threading
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import grpc
import structlog

from nodewright.gateways.externalgrpc import TLS_1_3_ONLY
from nodewright.runtime.telemetry import metrics

_log = structlog.get_logger("nodewright.externalgrpc")


class TlsError(Exception):
    """Files that can't be read, or that don't belong together; the message names them."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files. ``client_ca``: one or more CAs; callers need a certificate of one of them."""

    certificate: Path
    key: Path
    client_ca: Path


class ServerTls:
    """``credentials`` are for a server that requires client certificates. Raises TlsError if the files are no good."""

    def __init__(self, files: TlsFiles) -> None:
        if not TLS_1_3_ONLY:
            _log.warning("TLS 1.2 is spoken as well: something else loaded gRPC first")
        self._files = files
        self._lock = threading.Lock()
        self._refused: tuple[bytes, ...] = ()
        self._content = self._read()
        self.expires = self._checked(self._content)
        first = _configuration(self._content)
        self.credentials = grpc.dynamic_ssl_server_credentials(first, self._newest, True)  # type: ignore[arg-type]

    def _newest(self) -> grpc.ServerCertificateConfiguration | None:
        """What a new connection is shown; None: the same as the last one. Called in gRPC's own threads."""
        with self._lock:
            try:
                content = self._read()
                if content in (self._content, self._refused):
                    return None
                self._refused = content
                self.expires = self._checked(content)
            except TlsError as error:
                _log.warning("the new certificate is not taken, the last one stays", error=str(error))
                return None
            self._content, self._refused = content, ()
        _log.info("a new certificate is shown", expires=str(self.expires))
        return _configuration(content)

    def _read(self) -> tuple[bytes, ...]:
        files = self._files
        try:
            return tuple(path.read_bytes() for path in (files.certificate, files.key, files.client_ca))
        except OSError as error:
            raise TlsError(f"{error.filename}: {error.strerror}") from error

    def _checked(self, content: tuple[bytes, ...]) -> datetime:
        """When the certificate ends. Tried out first: a half-written pair must not reach the server."""
        from cryptography import x509  # noqa: PLC0415  (slow to import)

        files = self._files
        try:
            scratch = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            scratch.load_cert_chain(files.certificate, files.key)
            expires = x509.load_pem_x509_certificate(content[0]).not_valid_after_utc
        except (ssl.SSLError, ValueError, OSError) as error:
            raise TlsError(f"{files.certificate} and {files.key} are no certificate and its key: {error}") from error
        try:
            x509.load_pem_x509_certificates(content[2])
        except ValueError as error:
            raise TlsError(f"{files.client_ca} has no certificate: {error}") from error
        metrics.GRPC_CERTIFICATE_EXPIRY.set(expires.timestamp())
        return expires


def _configuration(content: tuple[bytes, ...]) -> grpc.ServerCertificateConfiguration:
    certificate, key, client_ca = content
    return grpc.ssl_server_certificate_configuration([(key, certificate)], client_ca)
