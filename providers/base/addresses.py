"""Which addresses this process may connect to where a Secret of a namespace names the server. Pure but for ``use``.

Link-local addresses are refused by default: clouds serve the credentials of the host there (169.254.169.254 and
fd00:ec2::254 on AWS, 168.63.129.16 on Azure, 100.100.100.200 on Alibaba Cloud, 192.0.0.192 on Oracle Cloud). So is
loopback inside a pod, where side-cars listen. An address is judged when it is connected to, not when its name is
resolved: a name may mean another address a moment later (DNS rebinding).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_METADATA = (
    "169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32",
)  # fmt: skip
_NO_HOST = ("0.0.0.0/8", "::/128", "224.0.0.0/4", "ff00::/8", "255.255.255.255/32")
_NAT64 = IPv6Network("64:ff9b::/96")


class AddressRefusedError(OSError):
    """The policy does not allow the address. An OSError: clients treat it as a connection that could not be made."""


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """CIDRs; a plain address is a network of one. Raises ValueError naming the one that is none."""
    return tuple(ip_network(text.strip(), strict=False) for text in texts if text.strip())


METADATA, NO_HOST = networks(_METADATA), networks(_NO_HOST)
LOOPBACK = networks(("127.0.0.0/8", "::1/128"))


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """``denied`` is refused whatever else is said. ``allowed``, if given, is all that is allowed, link-local and
    loopback too; without it all is allowed but metadata services and, unless ``loopback``, this machine itself."""

    allowed: tuple[Network, ...] = ()
    denied: tuple[Network, ...] = ()
    loopback: bool = True

    def why_not(self, text: str) -> str:
        """Why the numeric address ``text`` may not be connected to; "" if it may."""
        try:
            address = ip_address(text.partition("%")[0])
        except ValueError:
            return f"{text[:60]!r} is no IP address"
        return next((why for each in _meanings(address) if (why := self._why_not(each))), "")

    def check(self, text: str) -> None:
        """Raises AddressRefusedError."""
        why = self.why_not(text)
        if why:
            raise AddressRefusedError(errno.EACCES, why)

    def _why_not(self, address: Address) -> str:
        if _among(address, self.denied):
            return f"address {address} is refused by --server-deny-cidrs"
        if self.allowed:
            return "" if _among(address, self.allowed) else f"address {address} is not among --server-allow-cidrs"
        if _among(address, METADATA):
            return f"address {address} is link-local or of a metadata service; --server-allow-cidrs can allow it"
        if _among(address, NO_HOST):
            return f"address {address} is not that of a host"
        if not self.loopback and _among(address, LOOPBACK):
            return f"address {address} is loopback, refused inside a pod; --server-allow-cidrs can allow it"
        return ""


def default_policy(environment: Mapping[str, str] | None = None) -> AddressPolicy:
    """Loopback is allowed on a person's machine (``nodewright up``), not in a pod."""
    environment = os.environ if environment is None else environment
    return AddressPolicy(loopback=not environment.get("KUBERNETES_SERVICE_HOST"))


_chosen: list[AddressPolicy] = []


def use(policy: AddressPolicy) -> None:
    """Set the policy of this process: what the administrator chose, before anything connects."""
    _chosen[:] = [policy]


def current() -> AddressPolicy:
    return _chosen[0] if _chosen else default_policy()


def _among(address: Address, found: Iterable[Network]) -> bool:
    return any(address.version == each.version and address in each for each in found)


def _meanings(address: Address) -> list[Address]:
    """The address, and the IPv4 address that an IPv6 one leads to (mapped, compatible, 6to4, Teredo, NAT64)."""
    if isinstance(address, IPv4Address):
        return [address]
    inner = [address.ipv4_mapped, address.sixtofour, address.teredo[1] if address.teredo else None]
    if address in _NAT64 or (int(address) >> 32 == 0 and int(address) > 1):
        inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
    found: list[Address] = [each for each in inner if each is not None]
    # A mapped address is only the IPv4 one; by the others the IPv6 network is used as well.
    return found if address.ipv4_mapped is not None else [address, *found]
