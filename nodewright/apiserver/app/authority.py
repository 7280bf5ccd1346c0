"""Signing: the plane's certificate authority. Only this file imports `cryptography`."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from nodewright.apiserver.app.private_files import write_private

CA_LIFE = timedelta(days=3650)
LEAF_LIFE = timedelta(days=365)
CLOCK_SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a certificate speaks of. With `names` (DNS names or addresses) it is a server's, else a client's."""

    common_name: str
    organization: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Signed:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Authority:
    """A key that signs, and the certificate that clients trust."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def sign(self, subject: Subject, now: datetime) -> Signed:
        """Generate a key and sign a certificate for it that is good for `LEAF_LIFE`."""
        key = ec.generate_private_key(ec.SECP256R1())
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if subject.names else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            _builder(_name(subject), self.certificate.subject, key, (now, now + LEAF_LIFE))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        if subject.names:
            alternatives = x509.SubjectAlternativeName([_general_name(name) for name in subject.names])
            builder = builder.add_extension(alternatives, critical=False)
        return Signed(_pem(builder.sign(self.key, hashes.SHA256())), _key_pem(key))


def load_or_create(certificate_file: Path, key_file: Path, now: datetime) -> Authority:
    """Give the authority in these files, or make a new one there if none can be used.

    That is: one is missing, holds something else, does not fit the other, is not valid yet (it was made when the clock
    was ahead) or is outlived by a leaf. Raises OSError.
    """
    found = _load(certificate_file, key_file)
    if found is not None:
        begins, ends = found.certificate.not_valid_before_utc, found.certificate.not_valid_after_utc
        if begins <= now and now + LEAF_LIFE < ends:
            return found
    authority = _create(now)
    write_private(key_file, _key_pem(authority.key))
    write_private(certificate_file, _pem(authority.certificate))
    return authority


def _load(certificate_file: Path, key_file: Path) -> Authority | None:
    try:
        certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
        key = serialization.load_pem_private_key(key_file.read_bytes(), None)
        if isinstance(key, ec.EllipticCurvePrivateKey) and key.public_key() == certificate.public_key():
            return Authority(key, certificate)
    except (FileNotFoundError, ValueError, TypeError, UnsupportedAlgorithm):
        pass
    return None


def _create(now: datetime) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(Subject("nodewright-ca"))
    certificate = (
        _builder(name, name, key, (now, now + CA_LIFE))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(key, certificate)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    life: tuple[datetime, datetime],
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(life[0] - CLOCK_SKEW)
        .not_valid_after(life[1])
    )


def _name(subject: Subject) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, subject.common_name)]
    if subject.organization:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, subject.organization))
    return x509.Name(parts)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
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


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
