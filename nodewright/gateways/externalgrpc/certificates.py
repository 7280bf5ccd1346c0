"""Make a CA, a certificate for the gateway and one for the Cluster Autoscaler: enough for mutual TLS, and no more.

The CA is for these two alone. Its key is kept, so that either can be renewed; whoever has it can scale every group.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SERVER_NAME, CLIENT_NAME = "nodewright-externalgrpc", "cluster-autoscaler"
_PEM = serialization.Encoding.PEM
_SKEW = timedelta(minutes=5)
"""Certificates begin a little earlier: clocks differ."""


class CertificateError(Exception):
    """Files that can't be used or must not be overwritten; the message names them."""


@dataclass(frozen=True, slots=True)
class Pair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True)
class CertificateOptions:
    """``hosts``: names and addresses under which the autoscaler will call; each must stand in the certificate."""

    hosts: tuple[str, ...]
    days: int = 365


def write_all(folder: Path, desired: CertificateOptions) -> tuple[Path, ...]:
    """The files, by name: ``ca``, ``server`` and ``client``, each with ``.crt`` and ``.key``.

    A CA that is there is used again, so that the others can be renewed with it. Raises CertificateError.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        ca = _existing(folder) or _keep(folder, "ca", _issue(SERVER_NAME + "-ca", desired.days * 10))
        server = _issue(SERVER_NAME, desired.days, ca, desired.hosts)
        client = _issue(CLIENT_NAME, desired.days, ca)
        _keep(folder, "server", server)
        _keep(folder, "client", client)
    except OSError as error:
        raise CertificateError(f"{error.filename}: {error.strerror}") from error
    return tuple(folder / f"{name}.{end}" for name in ("ca", "server", "client") for end in ("crt", "key"))


def cloud_config(address: str, folder: Path) -> str:
    """What the Cluster Autoscaler reads with ``--cloud-config``."""
    lines = (
        f'address: "{address}"',
        f'cert: "{folder / "client.crt"}"',
        f'key: "{folder / "client.key"}"',
        f'cacert: "{folder / "ca.crt"}"',
        "grpc_timeout: 10s",
    )
    return "\n".join(lines) + "\n"


def _existing(folder: Path) -> Pair | None:
    files = folder / "ca.crt", folder / "ca.key"
    if not any(path.exists() for path in files):
        return None
    try:
        certificate = x509.load_pem_x509_certificate(files[0].read_bytes())
        key = serialization.load_pem_private_key(files[1].read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError(f"{files[0]} and {files[1]} are no CA and its key: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise CertificateError(f"{files[1]} is not the key of {files[0]}")
    return Pair(certificate, key)


def _issue(name: str, days: int, issuer: Pair | None = None, hosts: Sequence[str] = ()) -> Pair:
    """A CA without an issuer; with hosts a server's certificate, else a client's."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if issuer is not None:
        usage = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        parent = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        builder = builder.add_extension(parent, critical=False)
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(_alternatives(hosts)), critical=False)
    return Pair(builder.sign((issuer.key if issuer else key), hashes.SHA256()), key)


def _alternatives(hosts: Iterable[str]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for host in hosts:
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            try:
                found.append(x509.DNSName(host))
            except ValueError as error:
                raise CertificateError(f"{host!r} is neither an address nor a host name") from error
    return found


def _keep(folder: Path, name: str, pair: Pair) -> Pair:
    """The key first, for its owner alone; each file whole or not at all."""
    form, encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    _write(folder / f"{name}.key", pair.key.private_bytes(_PEM, form, encryption), 0o600)
    _write(folder / f"{name}.crt", pair.certificate.public_bytes(_PEM), 0o644)
    return pair


def _write(path: Path, content: bytes, mode: int) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.unlink(missing_ok=True)
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    partial.replace(path)
