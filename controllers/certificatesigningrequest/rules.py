"""May this kubelet have this certificate? Rules one after the other; the first that does not hold decides.

Denied is only what is certainly wrong of a Node that certainly is a Machine's. Whatever else does not fit is left to
others: the request of a Node that nobody here knows is nobody's business here, and one that does not fit yet may soon.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from api.names import OWN_TOKEN_GROUP
from controllers.certificatesigningrequest.foreign_names import plain
from controllers.certificatesigningrequest.observe import CLIENT, TOKEN_PREFIX, Host, Observed, is_node
from controllers.certificatesigningrequest.request import NODE_PREFIX, Request

NODES_GROUP = "system:nodes"
BOOTSTRAP_GROUP = "system:bootstrappers"
ADDRESSES_ARE_KNOWN = timedelta(minutes=10)
"""An address that the provider has not reported by then is not the host's."""
PROOF_MAY_COME = timedelta(seconds=30)
"""Until the next look at a request whose host is not proven; a change of the Machine comes earlier."""
_AUTH = {True: "client auth", False: "server auth"}
_WITH_KEY_ENCIPHERMENT = frozenset({"digital signature", "key encipherment"})
_WITHOUT = frozenset({"digital signature"})
"""Kubelets since 1.27 leave key encipherment out for keys that can't do it."""


@dataclass(frozen=True, slots=True)
class Approved:
    why: str


@dataclass(frozen=True, slots=True)
class Denied:
    why: str


@dataclass(frozen=True, slots=True)
class Left:
    """Not decided here, or not yet; ``look_at``: when time alone may change that."""

    why: str
    look_at: datetime | None = None


Verdict = Approved | Denied | Left


def judge(observed: Observed, request: Request) -> Verdict:
    if not request.node_name:
        return Left(f"it is for {request.common_name or 'nobody'}, not for a Node")
    host = _only_host(observed, request)
    if isinstance(host, Left):
        return host
    if observed.foreign:
        return Left(observed.foreign)
    if fault := _fault(observed, request):
        return Denied(fault) if host.joined else Left(fault)
    if (asks := _requestor(observed, request, host)) is not None:
        return asks
    if host.proof.missing:
        return Left(host.proof.missing, observed.now + PROOF_MAY_COME)
    if newer := [other.ref.key.name for other in observed.newer if _is_a_kubelets(other, host)]:
        return Left(f"{newer[-1]} asks for the same and is newer")
    if observed.signer != CLIENT and (uncovered := _uncovered(observed, request, host)) is not None:
        return uncovered
    return Approved(f"Node {request.node_name} is that of Machine {host.key}")


def _only_host(observed: Observed, request: Request) -> Host | Left:
    """That of the one Machine whose Node it is, and which stays."""
    if not observed.hosts:
        return Left(f"Node {request.node_name} is no Machine's")
    if len(observed.hosts) > 1:
        hosts = ", ".join(sorted(str(host.key) for host in observed.hosts))
        return Left(f"Node {request.node_name} may be that of several Machines: {hosts}")
    (host,) = observed.hosts
    return Left(f"Machine {host.key} is being deleted") if host.going else host


def _is_a_kubelets(other: Observed, host: Host) -> bool:
    """Nothing is wrong with it, and who asks may: what nobody would approve holds up nobody."""
    request = other.request
    return isinstance(request, Request) and not _fault(other, request) and _requestor(other, request, host) is None


def _fault(observed: Observed, request: Request) -> str:
    """What is wrong whoever asks, "" if nothing is. It can't become right: a request does not change."""
    if request.organizations != (NODES_GROUP,):
        return f"its organizations are {', '.join(request.organizations) or 'none'}, not just {NODES_GROUP}"
    client = observed.signer == CLIENT
    listed = observed.spec.get("usages")
    usages = frozenset(str(usage) for usage in (listed if isinstance(listed, list) else ()))
    auth = _AUTH[client]
    if usages not in ({*_WITHOUT, auth}, {*_WITH_KEY_ENCIPHERMENT, auth}):
        return f"its usages are {', '.join(sorted(usages)) or 'none'}: not those of a kubelet's {auth} certificate"
    if request.others:
        return f"it has alternative names of kinds that no kubelet has: {', '.join(request.others)}"
    if client and (request.dns_names or request.ip_addresses):
        return "a client certificate has no alternative names"
    if not client and not (request.dns_names or request.ip_addresses):
        return "it names neither a host name nor an address"
    return ""


def _requestor(observed: Observed, request: Request, host: Host) -> Verdict | None:
    """None if the one who asks may ask for this."""
    username = str(observed.spec.get("username") or "")
    groups = _texts(observed.spec.get("groups"))
    itself = NODE_PREFIX + request.node_name
    if is_node(username) and username != itself:
        why = f"{username} asks for a certificate of {itself}"
        return Denied(why) if host.joined else Left(why)
    if username == itself and NODES_GROUP in groups:
        return None
    bootstraps = username.startswith(TOKEN_PREFIX) and BOOTSTRAP_GROUP in groups
    if observed.signer != CLIENT or not bootstraps:
        return Left(f"{username or 'nobody'} asks, who is neither the Node itself nor, for a client, a bootstrap token")
    token = username.removeprefix(TOKEN_PREFIX)
    if (OWN_TOKEN_GROUP in groups or host.by_token) and token not in host.tokens:
        return Left(f"bootstrap token {token} was not made for Machine {host.key}")
    return _came_before(observed, request)


def _came_before(observed: Observed, request: Request) -> Left | None:
    """A bootstrap token gives the first certificate of a Node alone. None if there is none before."""
    if observed.node_exists:
        return Left(f"Node {request.node_name} exists already: it asks for itself, not by a bootstrap token")
    if observed.earlier:
        return Left(f"{observed.earlier} was approved for the same Machine and another key, and no Node has joined")
    return None


def _uncovered(observed: Observed, request: Request, host: Host) -> Verdict | None:
    """None if all alternative names are the Machine's. Addresses may become known later; names hardly."""
    foreign = sorted(
        (_all_plain(request.dns_names) - host.proof.names) | (_all_plain(request.ip_addresses) - host.proof.addresses)
    )
    if not foreign:
        return None
    reported = f"the names and addresses that the provider reports of the host of Machine {host.key}"
    why = f"{', '.join(foreign)} is not among {reported}"
    if not host.joined or (request.ip_addresses and not host.proof.addresses):
        return Left(why)
    deadline = observed.created + ADDRESSES_ARE_KNOWN
    return Denied(why) if observed.now >= deadline else Left(why, deadline)


def _all_plain(names: Iterable[str]) -> frozenset[str]:
    return frozenset(plain(name) for name in names)


def _texts(value: object) -> Iterable[str]:
    return frozenset(text for text in value if isinstance(text, str)) if isinstance(value, list) else frozenset()
