"""Self-signed certificates for servers on loopback."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PEM = serialization.Encoding.PEM


@dataclass(frozen=True, slots=True)
class Pems:
    """A certificate and its key as PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path) -> tuple[Path, Path]:
        files = folder / "tls.crt", folder / "tls.key"
        files[0].write_bytes(self.certificate)
        files[1].write_bytes(self.key)
        return files


def issue(name: str, expires: datetime | None = None) -> Pems:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    alternatives = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(expires or now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .sign(key, hashes.SHA256())
    )
    form, encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return Pems(certificate.public_bytes(PEM), key.private_bytes(PEM, form, encryption))
