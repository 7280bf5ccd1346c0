"""What wakes the CertificateSigningRequest controller and what it must have read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controllers.certificatesigningrequest.observe import READS, Observed, observe
from controllers.certificatesigningrequest.plan import plan
from controllers.certificatesigningrequest.request import node_name_of
from controllers.kernel.plan import Plan
from controllers.kernel.refs import CERTIFICATE_SIGNING_REQUEST, MACHINE, Key, Kind, Obj, is_deleting, key_of, uid_of
from controllers.kernel.room import Wake
from controllers.kernel.view import NODE_NAME, HostNeed, HostReads, View, host_name_of


def requests_of_machine(machine: Obj, view: View) -> Iterable[Key]:
    """Those for its Node, or for the Node that its host will be."""
    linked = ((machine.get("status") or {}).get("nodeRef") or {}).get("name")
    names = {str(linked), host_name_of(machine)} if linked else {host_name_of(machine)}
    return tuple(key_of(csr) for name in sorted(names) for csr in _of_node(name, view))


def itself_or_alike(csr: Obj, view: View) -> Iterable[Key]:
    """Once it is gone, those for the same Node: one may have waited for what becomes of it."""
    own = key_of(csr)
    name = node_name_of(csr)
    if not name or view.get(CERTIFICATE_SIGNING_REQUEST, own) is not None:
        return (own,)
    return tuple(key_of(other) for other in _of_node(name, view))


def same_host(old: Obj, new: Obj) -> bool:
    """A Machine's change that says nothing new of its host's names and addresses."""
    return _host(old) == _host(new)


class CertificateSigningRequestRoom:
    """Room[Observed]; it needs no hosts."""

    name = "certificatesigningrequest"
    kind: Kind = CERTIFICATE_SIGNING_REQUEST
    reads: tuple[Kind, ...] = READS
    wakes: tuple[Wake, ...] = (
        Wake(CERTIFICATE_SIGNING_REQUEST, itself_or_alike),
        Wake(MACHINE, requests_of_machine, same_host),
    )

    def needs(self, key: Key, view: View) -> HostNeed | None:
        return None

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Observed | None:
        return observe(key, view)

    def plan(self, observed: Observed) -> Plan:
        return plan(observed)


def _of_node(name: str, view: View) -> Iterable[Obj]:
    return view.indexed(CERTIFICATE_SIGNING_REQUEST, NODE_NAME, name)


def _host(machine: Obj) -> tuple[object, ...]:
    status = machine.get("status")
    told = status if isinstance(status, Mapping) else {}
    provider_id = (machine.get("spec") or {}).get("providerID")
    return (uid_of(machine), is_deleting(machine), provider_id, told.get("nodeRef"), told.get("addresses"))


ROOM = CertificateSigningRequestRoom()
