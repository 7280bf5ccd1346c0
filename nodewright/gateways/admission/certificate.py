"""The certificate that a server shows, read anew when its files change: whoever renews it need not restart us."""

from __future__ import annotations

import asyncio
import ssl
from datetime import datetime
from pathlib import Path

import structlog
from prometheus_client import Gauge

_log = structlog.get_logger("nodewright.certificate")

POLL_EVERY = 10.0
"""Seconds; a kubelet brings a renewed Secret into a pod within about a minute."""


class CertificateError(Exception):
    """Files that can't be read, or that don't belong together."""


class ServedCertificate:
    """``context`` is the one object that listeners use; a reload changes what it shows from then on.

    ``expiry`` is called with its end. Raises CertificateError if the files are no good at the start.
    """

    def __init__(self, cert_file: Path, key_file: Path, expiry: Gauge) -> None:
        self._files = (cert_file, key_file)
        self._expiry = expiry
        self._content: tuple[bytes, bytes] | None = None
        self._refused: tuple[bytes, bytes] | None = None
        self.context = _server_context()
        self.expires: datetime | None = None
        self._take(self._read())

    def reload(self) -> bool:
        """Take the files if they have changed; True if so. Files that can't be used are reported and skipped."""
        try:
            content = self._read()
            if content in (self._content, self._refused):
                return False
            self._refused = content
            self._take(content)
        except CertificateError as error:
            _log.warning("the new certificate is not taken, the last one stays", error=str(error))
            return False
        self._refused = None
        _log.info("a new certificate is shown", expires=str(self.expires))
        return True

    async def follow(self) -> None:
        """Reload when the files change, until cancelled."""
        while True:
            await asyncio.sleep(POLL_EVERY)
            self.reload()

    def _read(self) -> tuple[bytes, bytes]:
        try:
            return self._files[0].read_bytes(), self._files[1].read_bytes()
        except OSError as error:
            raise CertificateError(f"{error.filename}: {error.strerror}") from error

    def _take(self, content: tuple[bytes, bytes]) -> None:
        """Tried out on a context of its own first: a half-written pair must not reach the one that serves."""
        from cryptography import x509  # noqa: PLC0415  (slow to import)

        cert_file, key_file = self._files
        try:
            _server_context().load_cert_chain(cert_file, key_file)
            expires = x509.load_pem_x509_certificate(content[0]).not_valid_after_utc
            self.context.load_cert_chain(cert_file, key_file)
        except (ssl.SSLError, ValueError, OSError) as error:
            raise CertificateError(f"{cert_file} and {key_file} are no certificate and its key: {error}") from error
        self._content, self.expires = content, expires
        self._expiry.set(expires.timestamp())


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
