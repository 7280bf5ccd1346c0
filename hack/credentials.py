"""Certificates and kubeconfigs of a control plane on loopback, made on the spot and good for a week."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PEM = serialization.Encoding.PEM
COMPONENTS = ("system:kube-controller-manager", "system:kube-scheduler")
"""Users whom RBAC knows from the start; each of them has a kubeconfig of that name without the prefix."""


@dataclass(frozen=True, slots=True)
class Pair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def private(path: Path, data: bytes) -> Path:
    """Write a file that only its owner can read."""
    path.touch(mode=0o600)
    path.write_bytes(data)
    return path


LOOPBACK = "127.0.0.1"
SERVICE_NET = "10.250.0.0/24"
SERVICE = "10.250.0.1"
"""What pods call the API server: the first address of the Services."""


def issue(common_name: str, organization: str = "", issuer: Pair | None = None, *, address: str = LOOPBACK) -> Pair:
    """A CA if there is no issuer, else a certificate for client and server on loopback, ``SERVICE`` and ``address``."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization:
        names.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    subject = x509.Name(names)
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=7))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer:
        addresses = [x509.IPAddress(ipaddress.ip_address(each)) for each in sorted({LOOPBACK, SERVICE, address})]
        alternatives = [x509.DNSName("localhost"), *addresses]
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    return Pair(builder.sign((issuer.key if issuer else key), hashes.SHA256()), key)


def write_all(folder: Path, server: str, *, address: str = LOOPBACK) -> None:
    """The CA, the server's certificate, the key of service accounts, and a kubeconfig for each user.

    ``kubeconfig`` is the administrator's; ``kube-controller-manager.kubeconfig`` and the like are the components'.
    """
    authority = issue("nodewright-test-ca")
    _keep(folder, "ca", authority)
    _keep(folder, "server", issue("kube-apiserver", issuer=authority, address=address))
    _keep(folder, "service-account", issue("service-account", issuer=authority))
    _keep(folder, "admin", issue("admin", "system:masters", authority))
    _kubeconfig(folder, "kubeconfig", "admin", server)
    for user in COMPONENTS:
        name = user.removeprefix("system:")
        _keep(folder, name, issue(user, issuer=authority))
        _kubeconfig(folder, f"{name}.kubeconfig", name, server)


def _keep(folder: Path, name: str, pair: Pair) -> None:
    form, encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private(folder / f"{name}.crt", pair.certificate.public_bytes(PEM))
    private(folder / f"{name}.key", pair.key.private_bytes(PEM, form, encryption))


def _kubeconfig(folder: Path, file: str, user: str, server: str) -> None:
    cluster = {"server": server, "certificate-authority": str(folder / "ca.crt")}
    credentials = {"client-certificate": str(folder / f"{user}.crt"), "client-key": str(folder / f"{user}.key")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "real",
        "clusters": [{"name": "real", "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": user}}],
    }
    private(folder / file, yaml.safe_dump(config).encode())
