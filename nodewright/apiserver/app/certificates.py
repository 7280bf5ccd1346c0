"""The plane's own certificate authority and the two certificates it signs: the server's and the administrator's.

Keys are EC P-256: generating the three takes a few milliseconds, and every client in use reads them.
Signing (`authority.py`, which needs `cryptography`) is imported only when something must be signed: a restart with
good files starts without it.
"""

from __future__ import annotations

import hashlib
import json
import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from nodewright.apiserver.app.private_files import write_private

ADMIN_USER = "nodewright-admin"
ADMIN_GROUP = "system:masters"

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_RENEW_BEFORE = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where the PEM files lie, all of mode 0600 in one private folder."""

    folder: Path

    @property
    def ca(self) -> Path:
        """The authority's certificate: what clients trust."""
        return self.folder / "ca.crt"

    @property
    def ca_key(self) -> Path:
        """The authority's key."""
        return self.folder / "ca.key"

    @property
    def server(self) -> Path:
        """The server's certificate and key in one file."""
        return self.folder / "server.pem"

    @property
    def client_certificate(self) -> Path:
        """The administrator's certificate."""
        return self.folder / "admin.crt"

    @property
    def client_key(self) -> Path:
        """The administrator's key."""
        return self.folder / "admin.key"

    @property
    def manifest(self) -> Path:
        """What the certificates are good for: `notBefore` and `notAfter` (RFC 3339), `names`, and `files`.

        `files` has the SHA-256 of each file by its name, so that a file that is damaged or exchanged is noticed.
        """
        return self.folder / "certificates.json"


def ensure_credentials(folder: Path, host: str, now: datetime) -> Credentials:
    """Give the certificates in `folder`; sign what is missing, damaged, not valid (yet, or soon) or not for `host`.

    The authority stays for ten years, so kubeconfigs go on to trust a plane whose server certificate was
    renewed. Raises OSError if the folder can't be written.
    """
    credentials = Credentials(folder)
    names = [*_LOOPBACK_NAMES, *([host] if host not in {*_LOOPBACK_NAMES, "0.0.0.0", "::"} else [])]  # noqa: S104
    if not _still_good(credentials, names, now):
        _sign_all(credentials, names, now)
    return credentials


def server_context(credentials: Credentials) -> ssl.SSLContext:
    """Give the server's TLS settings: TLS 1.2 or newer, a client certificate is welcome but not required."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(credentials.server)
    context.load_verify_locations(credentials.ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


def _still_good(credentials: Credentials, names: list[str], now: datetime) -> bool:
    try:
        manifest = json.loads(credentials.manifest.read_bytes())
        begins, ends = (datetime.fromisoformat(manifest[name]) for name in ("notBefore", "notAfter"))
        known = set(names) <= set(manifest["names"]) and manifest["files"] == _digests(credentials)
        return known and begins <= now < ends - _RENEW_BEFORE
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def _digests(credentials: Credentials) -> dict[str, str]:
    """Give the SHA-256 of each file. Raises OSError."""
    files = (
        credentials.ca,
        credentials.ca_key,
        credentials.server,
        credentials.client_certificate,
        credentials.client_key,
    )
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _sign_all(credentials: Credentials, names: list[str], now: datetime) -> None:
    from nodewright.apiserver.app import authority  # noqa: PLC0415 - 0.2 s of import, seldom needed

    signer = authority.load_or_create(credentials.ca, credentials.ca_key, now)
    server = signer.sign(authority.Subject("nodewright-apiserver", names=tuple(names)), now)
    admin = signer.sign(authority.Subject(ADMIN_USER, ADMIN_GROUP), now)
    write_private(credentials.server, server.certificate + server.key)
    write_private(credentials.client_certificate, admin.certificate)
    write_private(credentials.client_key, admin.key)
    manifest = {
        "notBefore": (now - authority.CLOCK_SKEW).isoformat(),
        "notAfter": (now + authority.LEAF_LIFE).isoformat(),
        "names": names,
        "files": _digests(credentials),
    }
    write_private(credentials.manifest, json.dumps(manifest).encode())
