"""The plane's own certificate authority and the two certificates it signs: the server's and the administrator's.

Keys are EC P-256: generating the three takes a few milliseconds, and every client in use reads them.
`cryptography` is imported only when something must be signed, since a restart with good files needs none of it.
"""

from __future__ import annotations

import ipaddress
import json
import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodewright.controlplane.app.private_files import write_private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate

ADMIN_USER = "nodewright-admin"
ADMIN_GROUP = "system:masters"

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_CA_LIFE = timedelta(days=3650)
_LEAF_LIFE = timedelta(days=365)
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
        """What the certificates are good for: `{"notAfter": RFC3339, "names": […]}`."""
        return self.folder / "certificates.json"


def ensure_credentials(folder: Path, host: str, now: datetime) -> Credentials:
    """Give the certificates in `folder`; sign what is missing, near its end, or not good for `host`.

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
    files = (
        credentials.ca,
        credentials.ca_key,
        credentials.server,
        credentials.client_certificate,
        credentials.client_key,
    )
    if not all(path.is_file() for path in files):
        return False
    try:
        manifest = json.loads(credentials.manifest.read_bytes())
        ends = datetime.fromisoformat(manifest["notAfter"])
        return set(names) <= set(manifest["names"]) and now < ends - _RENEW_BEFORE
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _sign_all(credentials: Credentials, names: list[str], now: datetime) -> None:
    authority = _Authority.load_or_create(credentials, now)
    server_key, server = authority.sign(_server_subject(names), now)
    admin_key, admin = authority.sign(_admin_subject(), now)
    write_private(credentials.server, _pem(server) + _key_pem(server_key))
    write_private(credentials.client_certificate, _pem(admin))
    write_private(credentials.client_key, _key_pem(admin_key))
    manifest = {"notAfter": (now + _LEAF_LIFE).isoformat(), "names": names}
    write_private(credentials.manifest, json.dumps(manifest).encode())


@dataclass(frozen=True, slots=True)
class _Subject:
    common_name: str
    organization: str
    names: tuple[str, ...]
    for_server: bool


def _server_subject(names: list[str]) -> _Subject:
    return _Subject("nodewright-apiserver", "", tuple(names), for_server=True)


def _admin_subject() -> _Subject:
    return _Subject(ADMIN_USER, ADMIN_GROUP, (), for_server=False)


@dataclass(frozen=True, slots=True)
class _Authority:
    key: EllipticCurvePrivateKey
    certificate: Certificate

    @classmethod
    def load_or_create(cls, credentials: Credentials, now: datetime) -> _Authority:
        from cryptography import x509  # noqa: PLC0415
        from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

        if credentials.ca.is_file() and credentials.ca_key.is_file():
            certificate = x509.load_pem_x509_certificate(credentials.ca.read_bytes())
            if now < certificate.not_valid_after_utc - _LEAF_LIFE:
                key: Any = load_pem_private_key(credentials.ca_key.read_bytes(), None)
                return cls(key, certificate)
        authority = cls._create(now)
        write_private(credentials.ca_key, _key_pem(authority.key))
        write_private(credentials.ca, _pem(authority.certificate))
        return authority

    @classmethod
    def _create(cls, now: datetime) -> _Authority:
        from cryptography import x509  # noqa: PLC0415
        from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("nodewright-ca", "")
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + _CA_LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(key, certificate)

    def sign(self, subject: _Subject, now: datetime) -> tuple[EllipticCurvePrivateKey, Certificate]:
        from cryptography import x509  # noqa: PLC0415
        from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.ExtendedKeyUsageOID
        purpose = usage.SERVER_AUTH if subject.for_server else usage.CLIENT_AUTH
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(subject.common_name, subject.organization))
            .issuer_name(self.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + _LEAF_LIFE)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(issuer_key, critical=False)
        )
        if subject.names:
            alternatives = x509.SubjectAlternativeName([_general_name(name) for name in subject.names])
            builder = builder.add_extension(alternatives, critical=False)
        return key, builder.sign(self.key, hashes.SHA256())


def _name(common_name: str, organization: str) -> Any:
    from cryptography import x509  # noqa: PLC0415

    parts = [x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)]
    if organization:
        parts.append(x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _general_name(name: str) -> Any:
    from cryptography import x509  # noqa: PLC0415

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, signs_certificates: bool) -> Any:
    from cryptography import x509  # noqa: PLC0415

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415

    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
