"""CertificateSigningRequests as kubelets make them, and as others might."""

from __future__ import annotations

import base64
from functools import cache
from ipaddress import ip_address
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tests.builders.objects import Builder

CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"
CLIENT_USAGES = ["key encipherment", "digital signature", "client auth"]
SERVING_USAGES = ["key encipherment", "digital signature", "server auth"]


@cache
def key(number: int) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def pem(
    common_name: str = "system:node:a",
    organizations: tuple[str, ...] = ("system:nodes",),
    alternatives: tuple[x509.GeneralName, ...] = (),
    number: int = 0,
) -> str:
    """``spec.request``: base64 of the PEM text."""
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    subject.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    signed = builder.sign(key(number), hashes.SHA256())
    return base64.b64encode(signed.public_bytes(Encoding.PEM)).decode()


def dns(*names: str) -> tuple[x509.GeneralName, ...]:
    return tuple(x509.DNSName(name) for name in names)


def ips(*addresses: str) -> tuple[x509.GeneralName, ...]:
    return tuple(x509.IPAddress(ip_address(address)) for address in addresses)


class RequestBuilder(Builder):
    api_version = "certificates.k8s.io/v1"
    kind = "CertificateSigningRequest"
    namespaced = False

    def asking(self, **parts: Any) -> Self:
        self.spec["request"] = pem(**parts)
        return self

    def by(self, username: str, *groups: str) -> Self:
        self.spec.update(username=username, groups=[*groups, "system:authenticated"])
        return self

    def usages(self, *usages: str) -> Self:
        self.spec["usages"] = list(usages)
        return self

    def approved(self) -> Self:
        self.status["conditions"] = [{"type": "Approved", "status": "True", "reason": "X", "message": ""}]
        return self


def client(name: str = "csr") -> RequestBuilder:
    """Of a kubelet that joins as Node ``a`` by a bootstrap token."""
    found = RequestBuilder(name).asking().usages(*CLIENT_USAGES).created(5)
    found.spec["signerName"] = CLIENT
    return found.by("system:bootstrap:abcdef", "system:bootstrappers")


def serving(name: str = "csr", *alternatives: x509.GeneralName) -> RequestBuilder:
    """Of the kubelet of Node ``a``, as itself."""
    found = RequestBuilder(name).asking(alternatives=alternatives or (*dns("a"), *ips("10.0.0.7")))
    found.usages(*SERVING_USAGES).created(5).spec["signerName"] = SERVING
    return found.by("system:node:a", "system:nodes")
