"""View → Observed: one CertificateSigningRequest, the Machine that it may be for, and others for the same Node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from typing import Any

from controllers.certificatesigningrequest.request import NODE_PREFIX, Request, UnreadableError, read
from controllers.kernel.conditions import parse_time
from controllers.kernel.refs import (
    CERTIFICATE_SIGNING_REQUEST,
    MACHINE,
    Key,
    Obj,
    Ref,
    is_deleting,
    key_of,
    ref_of,
    uid_of,
)
from controllers.kernel.view import HOST_NAME, NODE_NAME, Home, Unreached, View, Workload
from controllers.kernel.workload import cluster_key_of

READS = (CERTIFICATE_SIGNING_REQUEST, MACHINE)
CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"
SIGNERS = frozenset({CLIENT, SERVING})
_NAMES = frozenset({"Hostname", "InternalDNS", "ExternalDNS"})
_ADDRESSES = frozenset({"InternalIP", "ExternalIP"})


@dataclass(frozen=True, slots=True)
class Host:
    """The Machine that a Node of this name is, or is to be.

    ``joined``: it is linked to the Node, so it certainly is. ``exists``: its provider has made a host for it.
    """

    key: Key
    joined: bool
    exists: bool
    going: bool
    names: frozenset[str]
    addresses: frozenset[str]


@dataclass(frozen=True, slots=True)
class Observed:
    """``request`` is text if it can't be read: why. ``hosts``: more than one if the name is not unique.

    ``earlier``: another request for the same was approved, with another key, and may not have been used yet.
    ``newer``: later ones that wait too; whoever made this one waits for the last of them, if it is a kubelet's.
    """

    csr: Obj
    now: datetime
    complete: bool = True
    request: Request | str = ""
    hosts: tuple[Host, ...] = ()
    earlier: str = ""
    newer: tuple[Observed, ...] = ()

    @property
    def ref(self) -> Ref:
        return ref_of(CERTIFICATE_SIGNING_REQUEST, self.csr)

    @property
    def spec(self) -> Mapping[str, Any]:
        spec = self.csr.get("spec")
        return spec if isinstance(spec, Mapping) else {}

    @property
    def signer(self) -> str:
        return str(self.spec.get("signerName") or "")

    @property
    def created(self) -> datetime:
        return created(self.csr) or self.now

    @property
    def decided(self) -> bool:
        """Somebody has decided about it, be it us."""
        return bool(conditions(self.csr)) or bool((self.csr.get("status") or {}).get("certificate"))


def observe(key: Key, view: View) -> Observed | None:
    """None if the request is gone."""
    csr = view.get(CERTIFICATE_SIGNING_REQUEST, key)
    if csr is None:
        return None
    if not all(view.complete(kind) for kind in READS):
        return Observed(csr, view.now, complete=False)
    bare = Observed(csr, view.now)
    if bare.signer not in SIGNERS or bare.decided:
        return bare
    try:
        request = read(csr)
    except UnreadableError as error:
        return Observed(csr, view.now, request=str(error))
    name = request.node_name
    if any(_is_being_found_out(machine, view) for machine in _named(name, view)):
        return Observed(csr, view.now, complete=False)
    hosts = tuple(_host(machine, name) for machine in machines_named(name, view))
    alike = [
        (other, read(other))
        for other in (view.indexed(CERTIFICATE_SIGNING_REQUEST, NODE_NAME, name) if name else ())
        if uid_of(other) != uid_of(csr) and (other.get("spec") or {}).get("signerName") == bare.signer
    ]
    return Observed(
        csr,
        view.now,
        request=request,
        hosts=hosts,
        earlier=_earlier(bare, request, alike),
        newer=_newer(bare, alike),
    )


def machines_named(name: str, view: View) -> list[Obj]:
    """Machines that the Node ``name`` is or may become: linked to it, or named or addressed like it without a Node.

    Not those whose Nodes live in a cluster of their own: who asks here for such a name is somebody else.
    """
    at_home = [machine for machine in _named(name, view) if isinstance(_workload(machine, view), Home)]
    linked = [machine for machine in at_home if _node_of(machine) == name]
    return linked or [machine for machine in at_home if not _node_of(machine)]


def conditions(csr: Obj) -> list[Mapping[str, Any]]:
    listed = (csr.get("status") or {}).get("conditions")
    return [c for c in listed if isinstance(c, Mapping)] if isinstance(listed, list) else []


def is_approved(csr: Obj) -> bool:
    return any(c.get("type") == "Approved" for c in conditions(csr))


def created(csr: Obj) -> datetime | None:
    return parse_time(csr["metadata"].get("creationTimestamp"))


def is_node(username: str) -> bool:
    return username.startswith(NODE_PREFIX)


def _named(name: str, view: View) -> list[Obj]:
    if not name:
        return []
    found = (*view.indexed(MACHINE, NODE_NAME, name), *view.indexed(MACHINE, HOST_NAME, name))
    return list({uid_of(machine): machine for machine in found}.values())


def _node_of(machine: Obj) -> str:
    return str(((machine.get("status") or {}).get("nodeRef") or {}).get("name") or "")


def _workload(machine: Obj, view: View) -> Workload:
    return view.of_cluster(cluster_key_of(MACHINE, machine)).workload


def _is_being_found_out(machine: Obj, view: View) -> bool:
    workload = _workload(machine, view)
    return isinstance(workload, Unreached) and workload.finding_out


def _host(machine: Obj, name: str) -> Host:
    status = machine.get("status") or {}
    listed = [a for a in status.get("addresses") or () if isinstance(a, Mapping)]
    return Host(
        key=key_of(machine),
        joined=_node_of(machine) == name,
        exists=bool((machine.get("spec") or {}).get("providerID")),
        going=is_deleting(machine),
        names=frozenset({name, *(str(a.get("address")) for a in listed if a.get("type") in _NAMES)}),
        addresses=frozenset(_plain(str(a.get("address"))) for a in listed if a.get("type") in _ADDRESSES),
    )


def _plain(address: str) -> str:
    """One spelling of each address; of IPv6 there are many."""
    try:
        return str(ip_address(address))
    except ValueError:
        return address


def _earlier(csr: Observed, request: Request, alike: Iterable[tuple[Obj, Request]]) -> str:
    found = (
        str(other["metadata"]["name"])
        for other, asked in alike
        if is_approved(other) and asked.key != request.key and (created(other) or csr.created) <= csr.created
    )
    return min(found, default="")


def _newer(csr: Observed, alike: Iterable[tuple[Obj, Request]]) -> tuple[Observed, ...]:
    """By age."""
    mine = (csr.created, csr.ref.key.name)
    waiting = (Observed(other, csr.now, request=asked) for other, asked in alike if not conditions(other))
    by_age = sorted((other.created, other.ref.key.name, other) for other in waiting)
    return tuple(other for *age, other in by_age if tuple(age) > mine)
