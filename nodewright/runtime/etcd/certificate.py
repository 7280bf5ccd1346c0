"""A client certificate of etcd's own CA, for us alone: made in memory, and again before it ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

COMMON_NAME = "nodewright"
LIFE = timedelta(hours=24)
SKEW = timedelta(minutes=5)
"""Clocks of hosts may be so far behind."""


class AuthorityError(Exception):
    """The Secret with etcd's CA can't be used; the message says which key of it, and never what it holds."""


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """PEM. ``renew_at``: when half of its life is over."""

    ca: bytes
    certificate: bytes
    key: bytes = field(repr=False)
    renew_at: datetime


def issue(ca: bytes, ca_key: bytes, now: datetime) -> ClientCertificate:
    """Raises AuthorityError if ``tls.crt`` or ``tls.key`` of the CA can't be used."""
    from cryptography import x509  # noqa: PLC0415  (slow to import)
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: PLC0415
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID  # noqa: PLC0415

    try:
        authority = x509.load_pem_x509_certificate(ca)
    except ValueError:
        raise AuthorityError("tls.crt: no certificate in PEM") from None
    try:
        signer = serialization.load_pem_private_key(ca_key, password=None)
    except (ValueError, TypeError):
        raise AuthorityError("tls.key: no private key in PEM without a password") from None
    if not isinstance(signer, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise AuthorityError("tls.key: neither an EC nor an RSA key")
    if signer.public_key() != authority.public_key():
        raise AuthorityError("tls.key: not the key of tls.crt")
    if authority.not_valid_after_utc <= now:
        raise AuthorityError("tls.crt: the certificate has expired")
    own = ec.generate_private_key(ec.SECP256R1())
    ends = min(now + LIFE, authority.not_valid_after_utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, COMMON_NAME)]))
        .issuer_name(authority.subject)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    key = own.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return ClientCertificate(ca, made.public_bytes(serialization.Encoding.PEM), key, now + (ends - now) / 2)
