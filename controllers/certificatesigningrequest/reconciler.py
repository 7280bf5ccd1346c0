"""What wakes the CertificateSigningRequest controller and what it must have read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controllers.certificatesigningrequest.foreign_names import KUBERNETES
from controllers.certificatesigningrequest.observe import READS, Observed, needs, observe
from controllers.certificatesigningrequest.plan import plan
from controllers.certificatesigningrequest.request import node_name_of
from controllers.kernel.node_policy import owner_title, owner_uid, provider_id_of_node
from controllers.kernel.plan import Plan
from controllers.kernel.reconciler import Wake
from controllers.kernel.refs import (
    CERTIFICATE_SIGNING_REQUEST,
    ENDPOINTS,
    MACHINE,
    NODE,
    Key,
    Kind,
    Obj,
    is_deleting,
    key_of,
    uid_of,
)
from controllers.kernel.view import NODE_NAME, HostNeed, HostReads, View, host_name_of


def requests_of_machine(machine: Obj, view: View) -> Iterable[Key]:
    """Those for its Node, or for the Node that its host will be."""
    linked = ((machine.get("status") or {}).get("nodeRef") or {}).get("name")
    names = {str(linked), host_name_of(machine)} if linked else {host_name_of(machine)}
    return tuple(key_of(csr) for name in sorted(names) for csr in _of_node(name, view))


def itself_or_alike(csr: Obj, view: View) -> Iterable[Key]:
    """Once it is gone, also those for the same Node: one may have waited for what becomes of it."""
    own = key_of(csr)
    name = node_name_of(csr)
    if not name or view.get(CERTIFICATE_SIGNING_REQUEST, own) is not None:
        return (own,)
    return (own, *(key_of(other) for other in _of_node(name, view)))


def requests_of_node(node: Obj, view: View) -> Iterable[Key]:
    return tuple(key_of(csr) for csr in _of_node(str(node["metadata"]["name"]), view))


def same_owner(old: Obj, new: Obj) -> bool:
    """A Node's change that says nothing new of whose it is."""
    return _owner(old) == _owner(new)


def same_host(old: Obj, new: Obj) -> bool:
    """A Machine's change that says nothing new of its host's names and addresses."""
    return _host(old) == _host(new)


@dataclass(frozen=True, slots=True)
class CertificateSigningRequestReconciler:
    """Reconciler[Observed]. ``api_hosts``: names and addresses under which the management cluster's API is reached."""

    api_hosts: frozenset[str] = frozenset()
    name: str = "certificatesigningrequest"
    kind: Kind = CERTIFICATE_SIGNING_REQUEST
    shares_hosts: bool = True
    lives_in_clusters: bool = True
    reads: tuple[Kind, ...] = READS
    parts: Mapping[Kind, tuple[Key, ...]] = field(default_factory=lambda: {ENDPOINTS: (KUBERNETES,)})
    wakes: tuple[Wake, ...] = field(
        default=(
            Wake(CERTIFICATE_SIGNING_REQUEST, itself_or_alike),
            Wake(MACHINE, requests_of_machine, same_host),
            Wake(NODE, requests_of_node, same_owner),
        )
    )

    def needs(self, key: Key, view: View) -> HostNeed | None:
        return needs(key, view)

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Observed | None:
        return observe(key, view, hosts, self.api_hosts)

    def plan(self, observed: Observed) -> Plan:
        return plan(observed)


def _of_node(name: str, view: View) -> Iterable[Obj]:
    return view.indexed(CERTIFICATE_SIGNING_REQUEST, NODE_NAME, name)


def _owner(node: Obj) -> tuple[object, ...]:
    return (uid_of(node), owner_uid(node), owner_title(node), provider_id_of_node(node))


def _host(machine: Obj) -> tuple[object, ...]:
    status = machine.get("status")
    reported = status if isinstance(status, Mapping) else {}
    provider_id = (machine.get("spec") or {}).get("providerID")
    host = (reported.get("hostScope"), reported.get("addresses"))
    return (uid_of(machine), is_deleting(machine), provider_id, reported.get("nodeRef"), *host)


RECONCILER = CertificateSigningRequestReconciler()
