"""Keys and certificates of a private Sigstore, and the ClientTrustConfig that says which services have them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

FROM = datetime(2026, 1, 1, tzinfo=UTC)
YEARS = 1000
"""Bundles in the tests' data are checked for as long as there are tests."""


@dataclass(frozen=True, slots=True)
class Authority:
    """``chain``: its own certificate first."""

    key: EllipticCurvePrivateKey
    chain: Sequence[x509.Certificate]

    def write(self, folder: Path, name: str) -> None:
        """``NAME.pem`` with the chain, and ``NAME.key``."""
        (folder / f"{name}.pem").write_bytes(b"".join(each.public_bytes(Encoding.PEM) for each in self.chain))
        _write_key(folder / f"{name}.key", self.key)

    def described(self, url: str) -> dict[str, Any]:
        chain = [{"rawBytes": _base64(each.public_bytes(Encoding.DER))} for each in self.chain]
        (name,) = self.chain[-1].subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return {
            "subject": {"organization": "Nodewright's tests", "commonName": str(name.value)},
            "uri": url,
            "certChain": {"certificates": chain},
            "validFor": {"start": _time(FROM)},
        }


@dataclass(frozen=True, slots=True)
class Log:
    key: EllipticCurvePrivateKey

    def write(self, folder: Path, name: str) -> None:
        """``NAME.key``."""
        _write_key(folder / f"{name}.key", self.key)

    def described(self, url: str) -> dict[str, Any]:
        public = self.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return {
            "baseUrl": url,
            "hashAlgorithm": "SHA2_256",
            "publicKey": {
                "rawBytes": _base64(public),
                "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                "validFor": {"start": _time(FROM)},
            },
            "logId": {"keyId": _base64(hashlib.sha256(public).digest())},
        }


def new_log() -> Log:
    return Log(generate_private_key(SECP256R1()))


def signing_authority() -> Authority:
    """A root that signs certificates for code by itself."""
    key = generate_private_key(SECP256R1())
    return Authority(key, [_certificate("code", key, "code", key, authority=True)])


def timestamp_authority() -> Authority:
    """A certificate for timestamps alone, by a root of its own (RFC 3161, 2.3)."""
    root, key = generate_private_key(SECP256R1()), generate_private_key(SECP256R1())
    chain = [
        _certificate("timestamps", key, "root of timestamps", root, authority=False),
        _certificate("root of timestamps", root, "root of timestamps", root, authority=True),
    ]
    return Authority(key, chain)


def trust_config(urls: Mapping[str, str], authorities: Mapping[str, Authority], logs: Mapping[str, Log]) -> str:
    """A ClientTrustConfig of these services. Keys: ``ca`` and ``tsa`` of authorities, ``ct`` and ``rekor`` of logs, all
    of URLs, and ``oidc``.
    """
    return json.dumps(
        {
            "mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json",
            "trustedRoot": {
                "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
                "tlogs": [logs["rekor"].described(urls["rekor"])],
                "certificateAuthorities": [authorities["ca"].described(urls["ca"])],
                "ctlogs": [logs["ct"].described(urls["ct"])],
                "timestampAuthorities": [authorities["tsa"].described(urls["tsa"])],
            },
            "signingConfig": {
                "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
                "caUrls": [_service(urls["ca"], 1)],
                "oidcUrls": [_service(urls["oidc"], 1)],
                "rekorTlogUrls": [_service(urls["rekor"], 2)],
                "rekorTlogConfig": {"selector": "ANY"},
                "tsaUrls": [_service(f"{urls['tsa']}/api/v1/timestamp", 1)],
                "tsaConfig": {"selector": "ANY"},
            },
        },
        indent=1,
    )


def _write_key(file: Path, key: EllipticCurvePrivateKey) -> None:
    """In the form that the CT log reads."""
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))


def _service(url: str, version: int) -> dict[str, Any]:
    return {"url": url, "majorApiVersion": version, "validFor": {"start": _time(FROM)}, "operator": "tests"}


def _certificate(
    name: str, key: EllipticCurvePrivateKey, by: str, signing: EllipticCurvePrivateKey, *, authority: bool
) -> x509.Certificate:
    """Of ``name`` by ``by``: an authority, or what may sign timestamps."""
    subject_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key())
    builder = (
        x509.CertificateBuilder(_named(by), _named(name), key.public_key(), x509.random_serial_number())
        .not_valid_before(FROM)
        .not_valid_after(FROM + timedelta(days=365 * YEARS))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(_usage(authority=authority), critical=True)
        .add_extension(subject_key, critical=False)
        .add_extension(issuer_key, critical=False)
    )
    if not authority:
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), critical=True)
    return builder.sign(signing, hashes.SHA256())


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Nodewright's tests: {name}")])


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _time(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
