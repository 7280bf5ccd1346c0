"""Names and addresses that mean somebody else than a kubelet: with a serving certificate for one of them a host could
stand in for a Service, for the API server or for another host. None is ever approved, whatever a provider reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from controllers.kernel.refs import ENDPOINTS, MACHINE, NODE, SERVICE, Key, Obj, is_deleting, uid_of
from controllers.kernel.view import HOST_NAME, View

KUBERNETES = Key("default", "kubernetes")
"""The Service and the Endpoints of the API server itself."""
_EXACT = frozenset({"kubernetes", "localhost", "svc", "cluster.local", "localhost.localdomain"})
_ENDS = (".localhost", ".svc", ".cluster.local")
_NAMES = frozenset({"Hostname", "InternalDNS", "ExternalDNS"})
_ADDRESSES = frozenset({"InternalIP", "ExternalIP"})


@dataclass(frozen=True, slots=True)
class Asker:
    """Which Node asks, and which Machine it is: their own names are not somebody else's.

    ``api_hosts``: host names and addresses under which the API server is reached.
    """

    node_name: str
    machine_uid: str
    api_hosts: frozenset[str] = frozenset()


def plain(address: str) -> str:
    """One spelling of each address; of IPv6 there are many. A name is in lower case, without the last dot."""
    try:
        found = ip_address(address)
    except ValueError:
        return address.lower().rstrip(".")
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)


def first_foreign(wanted: Iterable[str], asker: Asker, view: View) -> str:
    """Why the first of ``wanted`` that means somebody else is refused; "" if none does."""
    for name in sorted(wanted):
        why = _is_an_address(name, asker, view) if _is_ip(name) else _is_a_name(name, asker, view)
        if why:
            return f"{name} {why}"
    return ""


def reserved(name: str) -> bool:
    """Whether the name means something of the cluster or of each host, whoever has it."""
    low = plain(name)
    if low in _EXACT or low.endswith(_ENDS) or low.startswith("kubernetes.default"):
        return True
    return ".svc." in low or "*" in low


def _is_a_name(name: str, asker: Asker, view: View) -> str:
    low = plain(name)
    if reserved(low):
        return "is a name of a Service, of the API server or of every host"
    if low in asker.api_hosts:
        return "is the API server's"
    if low == plain(asker.node_name):
        return ""
    if view.get(NODE, Key("", low)) is not None:
        return "is the name of another Node"
    others = (m for m in view.indexed(MACHINE, HOST_NAME, low) if uid_of(m) != asker.machine_uid and not is_deleting(m))
    return "is the name of another Machine's host" if any(others) else _of_another_node(low, asker, view, _NAMES)


def _is_an_address(address: str, asker: Asker, view: View) -> str:
    found = ip_address(address)
    if found.is_loopback or found.is_unspecified or found.is_multicast:
        return "is an address that every host has"
    if plain(address) in asker.api_hosts:
        return "is the API server's"
    if any(plain(address) in _cluster_addresses(service) for service in view.all(SERVICE)):
        return "is the address of a Service"
    endpoints = view.get(ENDPOINTS, KUBERNETES)
    if endpoints is not None and plain(address) in _endpoint_addresses(endpoints):
        return "is an endpoint of the API server"
    return _of_another_node(plain(address), asker, view, _ADDRESSES)


def _of_another_node(value: str, asker: Asker, view: View, types: frozenset[str]) -> str:
    for node in view.all(NODE):
        name = str(node["metadata"]["name"])
        if name != asker.node_name and value in reported(node, types):
            return f"is reported by Node {name}"
    return ""


def reported(obj: Obj, types: frozenset[str]) -> frozenset[str]:
    """What ``status.addresses`` lists of ``types``, each in its one spelling."""
    status = obj.get("status")
    listed = status.get("addresses") if isinstance(status, Mapping) else None
    each = (a for a in (listed if isinstance(listed, list) else ()) if isinstance(a, Mapping))
    return frozenset(plain(str(a.get("address") or "")) for a in each if a.get("type") in types)


def _cluster_addresses(service: Obj) -> frozenset[str]:
    spec = service.get("spec")
    if not isinstance(spec, Mapping):
        return frozenset()
    listed = spec.get("clusterIPs")
    found = [spec.get("clusterIP"), *(listed if isinstance(listed, list) else ())]
    return frozenset(plain(ip) for ip in found if isinstance(ip, str) and ip not in {"", "None"})


def _endpoint_addresses(endpoints: Obj) -> frozenset[str]:
    subsets = endpoints.get("subsets")
    parts = [s for s in (subsets if isinstance(subsets, list) else ()) if isinstance(s, Mapping)]
    listed = [a for part in parts for a in (*(part.get("addresses") or ()), *(part.get("notReadyAddresses") or ()))]
    return frozenset(plain(str(a.get("ip") or "")) for a in listed if isinstance(a, Mapping))


def _is_ip(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
