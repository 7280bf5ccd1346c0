"""Which requests a gateway that speaks HTTP takes at all, and where it may listen: one rule for all gateways.

A web page can make a browser send requests to loopback addresses: by forms and simple requests (CSRF), or under a name
of its own that then resolves to loopback (DNS rebinding). Neither can send ``Host: 127.0.0.1`` with a JSON body and no
``Origin``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_FOREIGN_SITES = frozenset({"cross-site", "same-site"})
_CONTENT_TYPES = frozenset({"", "application/json", "application/octet-stream"})
"""Browsers send none of the named ones to another origin without asking the server first."""


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    why: str


@dataclass(frozen=True, slots=True)
class Listening:
    """How a gateway listens. ``protected``: TLS, and callers prove who they are by a certificate or a password."""

    host: str
    protected: bool
    insecure: bool = False

    @property
    def refused(self) -> bool:
        """Unprotected beyond loopback, and nobody said that this is meant."""
        return not (self.protected or self.insecure or is_loopback(self.host))


@dataclass(frozen=True, slots=True)
class HostRule:
    """Names by which a gateway may be called. Addresses are always allowed: a rebound name is never one.

    ``any_name``: callers prove who they are, which a page under a foreign name can't make a browser do.
    """

    allowed: frozenset[str] = frozenset()
    any_name: bool = False

    def allows(self, header: str) -> bool:
        name = _host_of(header)
        if not name:
            return False
        return self.any_name or name == "localhost" or name in self.allowed or _is_address(name)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refusal(method: str, hosts: Sequence[str], headers: Mapping[str, str], rule: HostRule) -> Refusal | None:
    """``hosts``: all values of the header Host. ``headers``: the others, by a mapping that ignores case."""
    if len(hosts) != 1 or not rule.allows(hosts[0]):
        return Refusal(421, "the request is for another host: name it with --allow-host if it is this one")
    origin = headers.get("Origin")
    if origin is not None and _origin_host(origin) != hosts[0].strip().lower():
        return Refusal(403, "a web page of another origin may not ask here")
    if headers.get("Sec-Fetch-Site", "").lower() in _FOREIGN_SITES:
        return Refusal(403, "a web page of another site may not ask here")
    if method in READING_METHODS:
        return None
    content = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if content not in _CONTENT_TYPES:
        return Refusal(415, "the body has to be application/json")
    return None


def _host_of(header: str) -> str:
    """Without its port, in lower case; "" if it can't be read."""
    text = header.strip().lower()
    try:
        parts = urlsplit(f"//{text}")
        _ = parts.port
    except ValueError:
        return ""
    if parts.netloc != text or "@" in text or parts.path or parts.query or parts.fragment:
        return ""
    return (parts.hostname or "").rstrip(".")


def _origin_host(origin: str) -> str:
    """Host and port of an origin as they stand in a Host header; "" for ``null`` and what is none."""
    scheme, separator, host = origin.strip().lower().partition("://")
    return host if separator and scheme in {"http", "https"} else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
