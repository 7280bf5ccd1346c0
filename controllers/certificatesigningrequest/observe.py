"""View → Observed: one CertificateSigningRequest, the Machine that it may be for, and others for the same Node.

All of one cluster: the Machines are those whose Nodes live where the request is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from api import names
from controllers.bootstrap.credentials import token_ids
from controllers.certificatesigningrequest.foreign_names import Asker, first_foreign, plain
from controllers.certificatesigningrequest.request import NODE_PREFIX, Request, UnreadableError, read
from controllers.kernel.bound_hosts import likeliest
from controllers.kernel.conditions import parse_time
from controllers.kernel.node_policy import cluster_key_of, is_recorded_for, owner_uid, provider_id_of_node
from controllers.kernel.refs import (
    CERTIFICATE_SIGNING_REQUEST,
    CLUSTER,
    ENDPOINTS,
    MACHINE,
    NODE,
    SERVICE,
    Key,
    Obj,
    Ref,
    annotations_of,
    is_deleting,
    key_of,
    objects,
    ref_of,
    spec_of,
    status_of,
    uid_of,
)
from controllers.kernel.view import (
    HOST_NAME,
    MANAGEMENT_CLUSTER,
    NODE_NAME,
    HostNeed,
    HostPresent,
    HostRead,
    HostReads,
    HostUnknown,
    ManagementCluster,
    Reached,
    Unreachable,
    View,
    Workload,
)
from providers.base.contract import HostState

READS = (CERTIFICATE_SIGNING_REQUEST, CLUSTER, MACHINE, NODE, SERVICE, ENDPOINTS)
FRESH = 30.0
"""Seconds that the provider's list may be old."""
CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"
SIGNERS = frozenset({CLIENT, SERVING})
APPROVED_REASON, DENIED_REASON = "MachineApproved", "MachineDenied"
TOKEN_PREFIX = "system:bootstrap:"  # noqa: S105  (no password)
"""Of the user name of who logs in with a bootstrap token, before the token's id."""
UID_MARK = ", UID "
"""In the message of our conditions, before the UID of the Machine at its end: nothing else tells whose it was."""
NOT_ASKED = HostUnknown("the provider was not asked yet")
_NAMES = frozenset({"Hostname", "InternalDNS", "ExternalDNS"})
_ADDRESSES = frozenset({"InternalIP", "ExternalIP"})


@dataclass(frozen=True, slots=True)
class Proof:
    """What the provider says of the host with the Machine's UID; ``missing``: why it proves nothing, "" if it does.

    ``names`` and ``addresses``: those that the provider reports, and nobody else.
    """

    missing: str = ""
    names: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Host:
    """The Machine that a Node of this name is, or is to be. ``uid`` is the Machine's.

    ``joined``: the Node is recorded for it, so it certainly is.
    ``tokens``: ids of bootstrap tokens that were made for it, or may have been. ``by_token``: it joins by one of those
    and by nothing else.
    """

    key: Key
    uid: str
    joined: bool
    going: bool
    proof: Proof
    tokens: tuple[str, ...] = ()
    by_token: bool = False


@dataclass(frozen=True, slots=True)
class Observed:
    """``request`` is text if it can't be read: why. ``hosts``: more than one if the name is not unique.

    ``earlier``: another request for the same was approved, with another key, and may not have been used yet.
    ``foreign``: which name of a serving certificate means somebody else, and whom; "" if none does.
    ``newer``: later ones that wait too; whoever made this one waits for the last of them, if it is a kubelet's.
    ``orphaned_since``: when it was decided, if it was by us and its Machine is gone.
    """

    csr: Obj
    now: datetime
    complete: bool = True
    request: Request | str = ""
    hosts: tuple[Host, ...] = ()
    earlier: str = ""
    newer: tuple[Observed, ...] = ()
    node_exists: bool = False
    foreign: str = ""
    orphaned_since: datetime | None = None

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


def needs(key: Key, view: View) -> HostNeed | None:
    """The host of the one Machine that the request may be for: by its UID, wherever it is."""
    csr = view.get(CERTIFICATE_SIGNING_REQUEST, key)
    if csr is None or is_deleting(csr) or not all(view.complete(kind) for kind in READS):
        return None
    bare = Observed(csr, view.now)
    if bare.signer not in SIGNERS or bare.decided:
        return None
    try:
        found = asked_for(csr, read(csr).node_name, view)
    except UnreadableError:
        return None
    if len(found) != 1:
        return None
    return HostNeed(uid_of(found[0]), None, FRESH, namespace=key_of(found[0]).namespace)


def observe(
    key: Key, view: View, reads: HostReads | None = None, api_hosts: frozenset[str] = frozenset()
) -> Observed | None:
    """None if the request is gone. ``api_hosts``: of the management cluster, see ``foreign_names.Asker``."""
    csr = view.get(CERTIFICATE_SIGNING_REQUEST, key)
    if csr is None:
        return None
    if not all(view.complete(kind) for kind in READS):
        return Observed(csr, view.now, complete=False)
    bare = Observed(csr, view.now)
    if bare.signer not in SIGNERS:
        return bare
    if bare.decided:
        return replace(bare, orphaned_since=_orphaned_since(csr, view))
    try:
        request = read(csr)
    except UnreadableError as error:
        return Observed(csr, view.now, request=str(error))
    name = request.node_name
    if any(_is_being_found_out(machine, view) for machine in _named(name, view)):
        return Observed(csr, view.now, complete=False)
    machines = asked_for(csr, name, view)
    node = view.get(NODE, Key("", name)) if name else None
    hosts = tuple(_host(machine, node, reads.host if reads else NOT_ASKED, name) for machine in machines)
    asker = Asker(name, uid_of(machines[0]) if len(machines) == 1 else "", _api_hosts(machines, view, api_hosts))
    wanted = {name, *request.dns_names, *request.ip_addresses} if bare.signer == SERVING else {name}
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
        earlier=_earlier(bare, request, alike, asker.machine_uid),
        newer=_newer(bare, alike),
        node_exists=node is not None,
        foreign=first_foreign(wanted - {""}, asker, view) if machines else "",
    )


def asked_for(csr: Obj, name: str, view: View) -> list[Obj]:
    """Machines that the request may be for. Of several of that name its token tells, if it was made for one of them."""
    found = machines_named(name, view)
    if len(found) < 2:
        return found
    token = str(spec_of(csr).get("username") or "").removeprefix(TOKEN_PREFIX)
    return [machine for machine in found if token in token_ids(uid_of(machine))] or found


def machines_named(name: str, view: View) -> list[Obj]:
    """Machines that the Node ``name`` is or may become: the one that it is recorded for; else those of that name.

    Not those whose Nodes live in another cluster: who asks here for such a name is somebody else. A Machine without a
    host of its own holds up nobody: the name alone costs nothing, nor does a providerID that somebody wrote into a
    Machine whose host the Machine controller has never seen.
    """
    node = view.get(NODE, Key("", name)) if name else None
    if node is not None and owner_uid(node):
        owner = view.by_uid(MACHINE, owner_uid(node))
        lives_here = owner is not None and _lives_here(owner, view)
        return [owner] if owner is not None and lives_here and is_recorded_for(node, owner) else []
    local = [machine for machine in _named(name, view) if _lives_here(machine, view)]
    free = [machine for machine in local if _node_of(machine) in {"", name}]
    return likeliest(machine for machine in free if provider_id_of_node(machine)) or free


def conditions(csr: Obj) -> list[Mapping[str, Any]]:
    listed = (csr.get("status") or {}).get("conditions")
    return [c for c in listed if isinstance(c, Mapping)] if isinstance(listed, list) else []


def is_approved(csr: Obj) -> bool:
    return any(c.get("type") == "Approved" for c in conditions(csr))


def decided_for(csr: Obj) -> tuple[str, datetime | None]:
    """UID of the Machine for which we approved or denied it, and when; "" if that was somebody else."""
    for reported in conditions(csr):
        uid = str(reported.get("message") or "").rpartition(UID_MARK)[2]
        if reported.get("reason") in {APPROVED_REASON, DENIED_REASON} and UID_MARK in str(
            reported.get("message") or ""
        ):
            return uid, parse_time(reported.get("lastUpdateTime"))
    return "", None


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


def _api_hosts(machines: Iterable[Obj], view: View, of_management_cluster: frozenset[str]) -> frozenset[str]:
    """Under which the API server is reached where the request is: by us, and by those whom its Cluster tells."""
    found = set(view.workload.servers if isinstance(view.workload, Reached) else of_management_cluster)
    for machine in machines:
        key = cluster_key_of(MACHINE, machine)
        cluster = view.get(CLUSTER, key) if key is not None else None
        listed = objects(status_of(cluster).get("apiEndpoints")) if cluster is not None else ()
        found |= {str(endpoint.get("host") or "") for endpoint in listed}
    return frozenset(plain(name) for name in found if name)


def _lives_here(machine: Obj, view: View) -> bool:
    """Whether its Node is, or is to be, in the cluster that ``view`` shows."""
    if view.cluster is not None:
        return cluster_key_of(MACHINE, machine) == view.cluster
    return isinstance(_workload(machine, view), ManagementCluster)


def _is_being_found_out(machine: Obj, view: View) -> bool:
    """Whether nobody knows yet if it lives in the management cluster, for a request there."""
    workload = MANAGEMENT_CLUSTER if view.cluster is not None else _workload(machine, view)
    return isinstance(workload, Unreachable) and workload.finding_out


def _host(machine: Obj, node: Obj | None, read: HostRead, name: str) -> Host:
    joined = node is not None and is_recorded_for(node, machine)
    marked = names.BOOTSTRAP_TOKEN_ANNOTATION in annotations_of(machine)
    proof = _proof(machine, node, read, name)
    return Host(
        key_of(machine), uid_of(machine), joined, is_deleting(machine), proof, token_ids(uid_of(machine)), marked
    )


def _proof(machine: Obj, node: Obj | None, read: HostRead, name: str) -> Proof:
    """Whether the provider's host of this Machine's UID is, or is to be, the Node ``name``."""
    title = f"Machine {key_of(machine)}"
    if isinstance(read, HostUnknown):
        return Proof(f"its host is not known: {read.why}")
    if not isinstance(read, HostPresent) or read.host.machine_uid != uid_of(machine):
        return Proof(f"the provider shows no host of {title}")
    host = read.host
    if not host.provider_id or host.state in {HostState.DELETING, HostState.FAILED, HostState.UNFINISHED}:
        return Proof(f"the host of {title} does not run (state {host.state})")
    bound = provider_id_of_node(machine)
    if bound and bound != host.provider_id:
        return Proof(f"spec.providerID of {title} is not that of its host")
    if node is not None and provider_id_of_node(node) not in {"", host.provider_id}:
        return Proof(f"Node {name} is another host: its providerID differs from that of the host of {title}")
    host_names = frozenset({plain(host.name), *(plain(a.address) for a in host.addresses if a.type in _NAMES)} - {""})
    if plain(name) not in host_names:
        return Proof(f"the provider's host of {title} is not called {name}")
    return Proof("", host_names, frozenset(plain(a.address) for a in host.addresses if a.type in _ADDRESSES))


def _orphaned_since(csr: Obj, view: View) -> datetime | None:
    uid, at = decided_for(csr)
    return at if uid and view.by_uid(MACHINE, uid) is None else None


def _earlier(csr: Observed, request: Request, alike: Iterable[tuple[Obj, Request]], machine_uid: str) -> str:
    """One that was approved for a Machine that had the name before is none of this one's."""
    found = (
        str(other["metadata"]["name"])
        for other, asked in alike
        if is_approved(other)
        and asked.key != request.key
        and (created(other) or csr.created) <= csr.created
        and decided_for(other)[0] in {"", machine_uid}
    )
    return min(found, default="")


def _newer(csr: Observed, alike: Iterable[tuple[Obj, Request]]) -> tuple[Observed, ...]:
    """By age."""
    mine = (csr.created, csr.ref.key.name)
    waiting = (Observed(other, csr.now, request=asked) for other, asked in alike if not conditions(other))
    by_age = sorted((other.created, other.ref.key.name, other) for other in waiting)
    return tuple(other for *age, other in by_age if tuple(age) > mine)
