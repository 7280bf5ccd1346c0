"""A certificate request read: what its X.509 part asks for. Pure: the same text always reads the same."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from hashlib import sha256

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

from api.remembered import remembered
from controllers.kernel.refs import Obj, spec_of

NODE_PREFIX = "system:node:"
_MOST_TEXT = 65_536
"""Characters of a request that is read at all; kubelets' have about a thousand."""


class UnreadableError(ValueError):
    """The request can't be read; nothing is concluded from that."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for. ``others``: alternative names of kinds that no kubelet has (URIs, addresses of mail, …).

    ``key`` is a digest of the public key: who asks again with the same key is the same.
    """

    common_name: str
    organizations: tuple[str, ...] = ()
    dns_names: frozenset[str] = frozenset()
    ip_addresses: frozenset[str] = frozenset()
    others: tuple[str, ...] = ()
    key: str = ""

    @property
    def node_name(self) -> str:
        """The Node it is for, "" if it is for none."""
        return self.common_name.removeprefix(NODE_PREFIX) if self.common_name.startswith(NODE_PREFIX) else ""


def read(csr: Obj) -> Request:
    """The X.509 request in ``spec.request``. Raises UnreadableError."""
    text = spec_of(csr).get("request")
    if not isinstance(text, str) or len(text) > _MOST_TEXT:
        raise UnreadableError("spec.request is no text of a usual length")
    found = _parse(text)
    if isinstance(found, str):
        raise UnreadableError(found)
    return found


def node_name_of(csr: Obj) -> str:
    """The Node that the request is for, "" if it is for none or can't be read."""
    try:
        return read(csr).node_name
    except UnreadableError:
        return ""


@remembered(2048, longest=8192)
def _parse(text: str) -> Request | str:
    """The request, or why it can't be read."""
    try:
        pem = base64.b64decode(text, validate=True)
        request = x509.load_pem_x509_csr(pem)
        if not request.is_signature_valid:
            return "its signature does not fit its key"
        return _request(request)
    except (
        ValueError,
        binascii.Error,
        UnsupportedAlgorithm,
        TypeError,
        OverflowError,
        x509.InvalidVersion,
        x509.DuplicateExtension,
        x509.UnsupportedGeneralNameType,
    ) as error:
        return f"it is no X.509 request: {error}"


def _request(request: x509.CertificateSigningRequest) -> Request:
    names = [str(part.value) for part in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if len(names) != 1:
        raise ValueError(f"it has {len(names)} common names")
    spki = request.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    alternatives = _alternatives(request)
    dns = frozenset(str(name.value) for name in alternatives if isinstance(name, x509.DNSName))
    addresses = frozenset(str(name.value) for name in alternatives if isinstance(name, x509.IPAddress))
    rest = (name for name in alternatives if not isinstance(name, x509.DNSName | x509.IPAddress))
    return Request(
        common_name=names[0],
        organizations=tuple(
            str(part.value) for part in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        ),
        dns_names=dns,
        ip_addresses=addresses,
        others=tuple(sorted(type(name).__name__ for name in rest)),
        key=sha256(spki).hexdigest(),
    )


def _alternatives(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    try:
        return list(request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []
