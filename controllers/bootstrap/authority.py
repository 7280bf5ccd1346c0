"""Is this PEM a CA that hosts can trust now? Pure; a bundle of several is the normal case while a CA is replaced."""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import Final

from cryptography import x509

LARGEST: Final = 64 * 1024
"""Characters of a bundle."""
_TAKE_IT: Final = "take it from the ConfigMap kube-root-ca.crt of the cluster"
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----[^-]*-----END \1-----")


def problem(pem: str, now: datetime | None) -> str:
    """Why ``pem`` does not do as the CA of an API server, and what to do; "" if it does.

    One CA that is valid now is enough. ``now`` has a time zone; None looks at no dates.
    """
    if len(pem) > LARGEST:
        return f"has {len(pem)} characters, at most {LARGEST} are taken: leave out CAs of other clusters"
    blocks = list(_BLOCK.finditer(pem))
    if secret := next((block[1] for block in blocks if "PRIVATE KEY" in block[1]), ""):
        return f"holds a {secret}, which must never reach a host: give certificates only"
    certificates = [_certificate(block[0]) for block in blocks if block[1] == "CERTIFICATE"]
    if not certificates:
        return f"must be the PEM of a certificate: {_TAKE_IT}"
    for number, certificate in enumerate(certificates, 1):
        if certificate is None:
            return f"certificate {number} of {len(certificates)} can't be read: {_TAKE_IT}"
    authorities = [each for each in certificates if each is not None and _signs(each)]
    if not authorities:
        return f"is no CA but the certificate of a server or a client: {_TAKE_IT}"
    if now is None or any(_is_valid(each, now) for each in authorities):
        return ""
    return f"{_dates(authorities, now)}: give the CA that signs now, and see that the clock is right"


def dates_problem(pem: str, now: datetime) -> str:
    """``problem`` of a bundle that has none but for its dates. Reads a bundle once."""
    if any(begin <= now <= end for begin, end in _validity(pem)):
        return ""
    return problem(pem, now)


@lru_cache(maxsize=64)
def _validity(pem: str) -> tuple[tuple[datetime, datetime], ...]:
    """From when to when each CA of a bundle is good."""
    found = (_certificate(block[0]) for block in _BLOCK.finditer(pem[:LARGEST]) if block[1] == "CERTIFICATE")
    return tuple((each.not_valid_before_utc, each.not_valid_after_utc) for each in found if each and _signs(each))


def _certificate(pem: str) -> x509.Certificate | None:
    try:
        found = x509.load_pem_x509_certificate(pem.encode())
        _ = found.extensions
    except (ValueError, x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        return None
    return found


def _signs(certificate: x509.Certificate) -> bool:
    """Certificates of X.509 version 1 say nothing of it, and count as CAs (as crypto/x509 of Go has it)."""
    if certificate.version is x509.Version.v1:
        return True
    try:
        basic = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        return False
    try:
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        return bool(basic.ca)
    return bool(basic.ca and usage.key_cert_sign)


def _is_valid(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def _dates(authorities: list[x509.Certificate], now: datetime) -> str:
    """Message for the nearest certificate: the one that expired last, else the one that becomes valid first."""
    ended = [each.not_valid_after_utc for each in authorities if each.not_valid_after_utc < now]
    if ended:
        return f"expired at {max(ended):%Y-%m-%dT%H:%M:%SZ}, it is {now:%Y-%m-%dT%H:%M:%SZ}"
    begins = min(each.not_valid_before_utc for each in authorities)
    return f"is not valid before {begins:%Y-%m-%dT%H:%M:%SZ}, it is {now:%Y-%m-%dT%H:%M:%SZ}"
