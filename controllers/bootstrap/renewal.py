"""The kubeconfig of a cluster that Machines make is kept current: when it is due, and the conversation that renews it.

    <cluster>-ca, -etcd, -proxy, -sa, -kubeconfig -> assess -> what is wrong, what ends when, whether it is due
                                                     renew  -> a new client certificate, under the resourceVersion

Certificate authorities are never written here: those that a person brought are judged as those that were made.
"""

from __future__ import annotations

import base64
import binascii
import ssl
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from api import names, yamltext
from controllers.bootstrap.authorities import (
    ADMIN_LIFE,
    AUTHORITIES,
    CLUSTER_CA,
    KeyPair,
    admin_kubeconfig,
    pair_in,
    readable,
)
from controllers.bootstrap.calls import Call, Change, Get, data_of
from controllers.bootstrap.founding import authority_key, is_of_another, is_ours
from controllers.kernel.certificates import Certificate, CertificateKind, CertificatesRead
from controllers.kernel.node_policy import kubeconfig_secret_of
from controllers.kernel.refs import SECRET, Key, Obj, Ref, key_of, mapping, objects, resource_version_of, uid_of

LEAST_LEFT: Final = timedelta(days=90)
_GAIN: Final = timedelta(minutes=1)
"""A new certificate has to end later than the present one by more than this: a CA that ends soon allows no more."""
_KINDS: Final = {
    "-ca": CertificateKind.CLUSTER_CA,
    "-etcd": CertificateKind.ETCD_CA,
    "-proxy": CertificateKind.FRONT_PROXY_CA,
}
_LARGEST: Final = 128 << 10


@dataclass(frozen=True, slots=True)
class Access:
    """What a kubeconfig says in its current context; ``client`` None: it has no certificate that can be read."""

    server: str = ""
    ca: str = ""
    client: x509.Certificate | None = None


def secrets_of(cluster: Key, endpoint: str) -> tuple[Key, ...]:
    """The Secrets that ``assess`` judges."""
    authorities = AUTHORITIES if endpoint else ()
    return (*(authority_key(cluster, authority) for authority in authorities), kubeconfig_secret_of(cluster))


def readable_der(der: bytes) -> x509.Certificate | None:
    """What a server has shown."""
    return readable(ssl.DER_cert_to_PEM_cert(der)) if der else None


def assess(cluster: Ref, endpoint: str, secrets: Mapping[Key, Obj | None], now: datetime) -> CertificatesRead:
    """``secrets``: as they were read, None for one that is not there. ``endpoint`` "": only the kubeconfig counts."""
    certificates: list[Certificate] = []
    faults: list[str] = []
    kubeconfig = secrets.get(kubeconfig_secret_of(cluster.key))
    ours = kubeconfig is not None and is_ours(kubeconfig) and not is_of_another(kubeconfig, cluster)
    ca: KeyPair | None = None
    for authority in AUTHORITIES if endpoint else ():
        key = authority_key(cluster.key, authority)
        secret = secrets.get(key)
        if secret is None:
            if ours:
                faults.append(f"Secret {key} is missing: put it back from a backup, or from a control-plane host")
            continue
        data = data_of(secret)
        pair = pair_in(data, authority, now)
        if isinstance(pair, str):
            faults.append(f"Secret {key}: {pair}")
        elif authority == CLUSTER_CA:
            ca = pair
        held = readable(data.get("tls.crt", "")) if authority.common_name else None
        if held is not None:
            certificates.append(Certificate(_KINDS[authority.suffix], f"Secret {key}", held.not_valid_after_utc))
    access = access_in(kubeconfig) if kubeconfig is not None else Access()
    if access.client is not None:
        holder = f"the client certificate in Secret {kubeconfig_secret_of(cluster.key)}"
        certificates.append(Certificate(CertificateKind.KUBECONFIG, holder, access.client.not_valid_after_utc))
    renewal = why_due(access, ca, endpoint, now) if ours and ca is not None and endpoint else ""
    return CertificatesRead(tuple(certificates), tuple(faults), renewal)


def why_due(access: Access, ca: KeyPair, endpoint: str, now: datetime) -> str:
    """Why the kubeconfig is to be made anew, "" if it need not be.

    A third of a year is 121 days: it is renewed when 121 days are left. A third of 200 days is 67: at 90 days.
    """
    if access.client is None:
        return "it holds no client certificate that can be read"
    if access.server != f"https://{endpoint}":
        return f"the cluster's endpoint is {endpoint}"
    authority = readable(ca.certificate)
    if authority is None:
        return ""
    if access.ca.strip() != ca.certificate.strip() or not _signed(access.client, authority):
        return "the cluster's CA is another one"
    begins, ends = access.client.not_valid_before_utc, access.client.not_valid_after_utc
    left = ends - now
    if left >= (ends - begins) / 3 and left >= LEAST_LEFT:
        return ""
    if min(now + ADMIN_LIFE, authority.not_valid_after_utc) - ends <= _GAIN:
        return ""
    return f"its client certificate ends on {ends:%Y-%m-%d}"


def renew(cluster: Ref, endpoint: str, now: datetime) -> Generator[Call, Obj | None, str]:
    """Decide anew on what is there now, and write under its resourceVersion. The result: why it was renewed, "" if it
    was not: it is current, it is not ours to write, or somebody was faster.
    """
    secret = yield Get("machines", kubeconfig_secret_of(cluster.key))
    if secret is None or not is_ours(secret) or is_of_another(secret, cluster):
        return ""
    authority = yield Get("machines", authority_key(cluster.key, CLUSTER_CA))
    if authority is None or is_of_another(authority, cluster):
        return ""
    ca = pair_in(data_of(authority), CLUSTER_CA, now)
    if isinstance(ca, str):
        return ""
    why = why_due(access_in(secret), ca, endpoint, now)
    if not why:
        return ""
    text = admin_kubeconfig(cluster.key.name, f"https://{endpoint}", ca, now)
    patch = {"data": {names.KUBECONFIG_KEY: base64.b64encode(text.encode()).decode()}}
    target = Ref(SECRET, key_of(secret), uid_of(secret))
    changed = yield Change("machines", target, patch, resource_version_of(secret))
    return why if changed is not None else ""


def access_in(secret: Obj) -> Access:
    """Total: what can't be read is left out. Any kubeconfig: a person may have brought it."""
    data = data_of(secret)
    text = next((data[name] for name in names.KUBECONFIG_KEYS if data.get(name)), "")
    try:
        document = mapping(yamltext.load(text, yamltext.Bounds(size=_LARGEST)))
    except (yamltext.TextError, ValueError):
        return Access()
    context = _named(document, "contexts", str(document.get("current-context") or ""), "context")
    cluster = _named(document, "clusters", str(context.get("cluster") or ""), "cluster")
    user = _named(document, "users", str(context.get("user") or ""), "user")
    server = cluster.get("server")
    return Access(
        server=server if isinstance(server, str) else "",
        ca=_decoded(cluster.get("certificate-authority-data")),
        client=readable(_decoded(user.get("client-certificate-data"))),
    )


def _named(document: Mapping[str, Any], part: str, name: str, inner: str) -> Mapping[str, Any]:
    found = next((each for each in objects(document.get(part)) if each.get("name") == name), {})
    return mapping(found.get(inner))


def _decoded(value: object) -> str:
    try:
        return base64.b64decode(value, validate=True).decode() if isinstance(value, str) else ""
    except (binascii.Error, ValueError):
        return ""


def _signed(client: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        client.verify_directly_issued_by(ca)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, TypeError):
        return False
    return True
