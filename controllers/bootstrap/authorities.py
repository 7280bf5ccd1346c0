"""Key pairs of a cluster: its certificate authorities, its key for service accounts, and its first kubeconfig.

Names of Secrets, their keys and what is in them are those of Cluster API (``util/secret/consts.go``), so its tools read
them too. Where kubeadm keeps them on a host: "Certificates and kubeconfig", kubernetes.io.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from controllers.bootstrap.steps import File

PKI_FOLDER: Final = "/etc/kubernetes/pki"
AUTHORITY_LIFE: Final = timedelta(days=3650)
ADMIN_LIFE: Final = timedelta(days=365)
_EARLIER: Final = timedelta(minutes=5)
"""So far in the past a certificate begins, for hosts whose clock is behind (kubeadm does the same)."""
_LARGEST: Final = 64 * 1024
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


@dataclass(frozen=True, slots=True)
class Authority:
    """One key pair. ``suffix``: of its Secret's name, behind the Cluster's; ``path``: on a host, below ``PKI_FOLDER``.

    ``common_name`` "": a pair of keys without a certificate.
    """

    suffix: str
    path: str
    common_name: str = ""

    @property
    def file_of_certificate(self) -> str:
        return f"{PKI_FOLDER}/{self.path}.{'crt' if self.common_name else 'pub'}"

    @property
    def file_of_key(self) -> str:
        return f"{PKI_FOLDER}/{self.path}.key"


CLUSTER_CA: Final = Authority("-ca", "ca", "kubernetes")
AUTHORITIES: Final = (
    CLUSTER_CA,
    Authority("-etcd", "etcd/ca", "etcd-ca"),
    Authority("-proxy", "front-proxy-ca", "front-proxy-ca"),
    Authority("-sa", "sa"),
)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """``certificate``: PEM, or that of the public key; ``key``: PEM of the private key, which nothing prints."""

    certificate: str
    key: str = field(repr=False)


Pki = Mapping[str, KeyPair]
"""All pairs of a cluster, by the suffix of their Secret."""


class Keys(Protocol):
    """Makes what must not be foreseen."""

    def authority(self, common_name: str, now: datetime) -> KeyPair: ...

    def signing(self) -> KeyPair: ...


class NewKeys:
    """ECDSA P-256, which a cluster of any size signs with in a fraction of the time that RSA takes."""

    def authority(self, common_name: str, now: datetime) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        usage = _usage(signs_certificates=True)
        certificate = (
            _begun(name, name, key.public_key(), now, AUTHORITY_LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM).decode(), _pem(key))

    def signing(self) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return KeyPair(public.decode(), _pem(key))


NEW_KEYS: Final = NewKeys()


def pki_files(pki: Pki) -> tuple[File, ...]:
    """The pairs as kubeadm finds them on a host that makes or joins a control plane."""
    found: list[File] = []
    for authority in AUTHORITIES:
        pair = pki[authority.suffix]
        found.append(File(authority.file_of_certificate, pair.certificate, 0o644))
        found.append(File(authority.file_of_key, pair.key, 0o600, secret=True))
    return tuple(found)


def data_of_pair(pair: KeyPair) -> dict[str, str]:
    """``data`` of a Secret."""
    return {
        name: base64.b64encode(text.encode()).decode()
        for name, text in (("tls.crt", pair.certificate), ("tls.key", pair.key))
    }


def pair_in(data: Mapping[str, str], authority: Authority, now: datetime) -> KeyPair | str:
    """The pair that a Secret's decoded ``data`` holds, or what is wrong with it."""
    certificate, key = data.get("tls.crt", ""), data.get("tls.key", "")
    for name, text in (("tls.crt", certificate), ("tls.key", key)):
        if not text:
            return f"{name} is missing"
        if len(text) > _LARGEST:
            return f"{name} has {len(text)} characters, at most {_LARGEST} are taken"
    try:
        private = serialization.load_pem_private_key(key.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "tls.key is no PEM of a private key without a password"
    if not isinstance(private, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        return "tls.key is neither an RSA nor an ECDSA key, and kubeadm takes no other"
    fault = (
        _certificate_fault(certificate, private, now) if authority.common_name else _public_fault(certificate, private)
    )
    return fault or KeyPair(certificate, key)


def admin_kubeconfig(cluster: str, server: str, ca: KeyPair, now: datetime) -> str:
    """A kubeconfig for the group ``system:masters``, good for a year, as JSON, which every reader of YAML takes.

    Raises ValueError if ``ca`` can't sign.
    """
    signer = serialization.load_pem_private_key(ca.key.encode(), None)
    issuer = x509.load_pem_x509_certificate(ca.certificate.encode())
    if not isinstance(signer, ec.EllipticCurvePrivateKey) and not hasattr(signer, "sign"):
        raise ValueError("the key of the CA signs nothing")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters"),
            x509.NameAttribute(NameOID.COMMON_NAME, f"{cluster}-admin"[:64]),
        ]
    )
    certificate = (
        _begun(subject, issuer.subject, key.public_key(), now, min(ADMIN_LIFE, issuer.not_valid_after_utc - now))
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(signer, hashes.SHA256())  # type: ignore[arg-type]
    )
    user, context = f"{cluster}-admin", f"{cluster}-admin@{cluster}"
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": cluster, "cluster": {"server": server, "certificate-authority-data": _b64(ca.certificate)}}
        ],
        "contexts": [{"name": context, "context": {"cluster": cluster, "user": user}}],
        "current-context": context,
        "users": [
            {
                "name": user,
                "user": {"client-certificate-data": _b64(pem.decode()), "client-key-data": _b64(_pem(key))},
            }
        ],
    }
    return json.dumps(document, indent=1)


def admin_ends(kubeconfig: str) -> datetime | None:
    """When the first client certificate of a kubeconfig as ``admin_kubeconfig`` writes it ends; None if it has none."""
    try:
        users = json.loads(kubeconfig).get("users") or ()
        data = next((each["user"]["client-certificate-data"] for each in users), "")
        return x509.load_pem_x509_certificate(base64.b64decode(data)).not_valid_after_utc
    except (ValueError, TypeError, KeyError, AttributeError, binascii.Error):
        return None


def readable(pem: str) -> x509.Certificate | None:
    """The first certificate of a PEM, which is the one that kubeadm takes; None if it can't be read."""
    found = _CERTIFICATE.search(pem) if len(pem) <= _LARGEST else None
    try:
        certificate = x509.load_pem_x509_certificate(found[0].encode()) if found else None
        if certificate is not None:
            _ = certificate.extensions, certificate.public_key()
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion, x509.DuplicateExtension,
            x509.UnsupportedGeneralNameType):  # fmt: skip
        return None
    return certificate


def _certificate_fault(pem: str, key: Any, now: datetime) -> str:
    certificate = readable(pem)
    if certificate is None:
        return "tls.crt is no PEM of a certificate"
    if certificate.public_key() != key.public_key():
        return "tls.key is not the key of the certificate in tls.crt"
    if not _signs_certificates(certificate):
        return "the certificate in tls.crt is none of a CA"
    if now < certificate.not_valid_before_utc:
        return f"the certificate in tls.crt is not valid now: it begins on {certificate.not_valid_before_utc:%Y-%m-%d}"
    if certificate.not_valid_after_utc <= now:
        return f"the certificate in tls.crt is not valid now: it ended on {certificate.not_valid_after_utc:%Y-%m-%d}"
    return ""


def _signs_certificates(certificate: x509.Certificate) -> bool:
    """Basic constraints say CA, and the key usage, where it is given, allows it to sign (RFC 5280, 4.2.1.3)."""
    extensions = [each.value for each in certificate.extensions]
    if not any(isinstance(each, x509.BasicConstraints) and each.ca for each in extensions):
        return False
    return all(each.key_cert_sign for each in extensions if isinstance(each, x509.KeyUsage))


def _public_fault(pem: str, key: Any) -> str:
    try:
        public = serialization.load_pem_public_key(pem.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "tls.crt is no PEM of a public key"
    return "" if public == key.public_key() else "tls.key is not the key of the public key in tls.crt"


def _begun(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    begin = now.astimezone(UTC) - _EARLIER
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(now.astimezone(UTC) + life)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=signs_certificates, crl_sign=signs_certificates, encipher_only=False,
        decipher_only=False,
    )  # fmt: skip


def _pem(key: ec.EllipticCurvePrivateKey) -> str:
    """SEC 1, as kubeadm writes keys of this kind itself."""
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(encoding, form, serialization.NoEncryption()).decode()


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
