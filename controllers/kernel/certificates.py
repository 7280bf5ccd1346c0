"""What is known of a cluster's certificates, read in the background: values that the Cluster's plan decides from.

No key is among them. Two kinds of certificates: those that lie in Secrets, and those that servers show to everybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from controllers.kernel.node_policy import endpoint_of
from controllers.kernel.refs import (
    CLUSTER,
    MACHINE,
    Key,
    Obj,
    Ref,
    is_deleting,
    key_of,
    mapping,
    objects,
    ref_of,
    spec_of,
    status_of,
)
from controllers.kernel.view import CLUSTER_NAME, ManagementCluster, View


class CertificateKind(StrEnum):
    """What a certificate is for; also the label of the metric."""

    KUBECONFIG = "kubeconfig"
    CLUSTER_CA = "cluster-ca"
    ETCD_CA = "etcd-ca"
    FRONT_PROXY_CA = "front-proxy-ca"
    API_SERVER = "apiserver"
    ETCD = "etcd"


EXPIRING: Mapping[CertificateKind, timedelta] = {
    CertificateKind.KUBECONFIG: timedelta(days=30),
    CertificateKind.CLUSTER_CA: timedelta(days=180),
    CertificateKind.ETCD_CA: timedelta(days=180),
    CertificateKind.FRONT_PROXY_CA: timedelta(days=180),
    CertificateKind.API_SERVER: timedelta(days=30),
    CertificateKind.ETCD: timedelta(days=30),
}
"""How long before its end a certificate is reported. A CA needs planning: everything that it signed ends with it."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """``holder``: where it is, for people: a Secret and its key, or a Machine and the address that was asked.

    ``machine``: name of the Machine whose host shows it, "" for one in a Secret; ``begins``: None if nobody asked.
    """

    kind: CertificateKind
    holder: str
    ends: datetime
    machine: str = ""
    begins: datetime | None = None


@dataclass(frozen=True, slots=True)
class CertificatesRead:
    """``faults``: Secrets that can't be used, one sentence each. ``renewal``: why the kubeconfig has to be made anew,
    "" if it need not. ``unread``: what could not be looked at, and why. ``held_up``: why a renewal that is due was not
    made; it is tried again later.
    """

    certificates: tuple[Certificate, ...] = ()
    faults: tuple[str, ...] = ()
    renewal: str = ""
    unread: tuple[str, ...] = ()
    held_up: str = ""


@dataclass(frozen=True, slots=True)
class CertificatesUnread:
    """``finding_out``: nobody has looked since the start or the last change, and soon it is known."""

    why: str
    finding_out: bool = False


@dataclass(frozen=True, slots=True)
class CertificatesNeed:
    """``endpoint``: ``host:port`` of a cluster that Machines make, "" for one that was made elsewhere: then only its
    kubeconfig is looked at. ``hosts``: Machine and IP address of each host of the control plane.
    """

    cluster: Ref
    endpoint: str = ""
    hosts: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> Key:
        return self.cluster.key


class CertificatesView(Protocol):
    """Answers at once, with what was read last; None: this process reads none. A call requests a new read."""

    def look(self, need: CertificatesNeed) -> CertificatesRead | CertificatesUnread | None: ...


class NobodyReads:
    """``CertificatesView`` of a dry run or a simulation."""

    def look(self, need: CertificatesNeed) -> None:
        return None


NOBODY_READS = NobodyReads()


def look_at(cluster: Obj, view: View, certificates: CertificatesView) -> CertificatesRead | CertificatesUnread | None:
    """What is known of the certificates of a Cluster. None if the Cluster has no API of its own.

    All callers request the same read; different ones would each cause a read of their own.
    """
    endpoint = endpoint_of(cluster)
    if isinstance(view.workload, ManagementCluster) and not endpoint:
        return None
    hosts = _hosts(view, str(key_of(cluster))) if endpoint else ()
    return certificates.look(CertificatesNeed(ref_of(CLUSTER, cluster), endpoint, hosts))


def _hosts(view: View, cluster: str) -> tuple[tuple[str, str], ...]:
    """Machine and address of each host that serves the control plane; the internal address first."""
    found = []
    for machine in view.indexed(MACHINE, CLUSTER_NAME, cluster):
        status = status_of(machine)
        if not mapping(spec_of(machine).get("versions")).get("controlPlane") or not status.get("nodeRef"):
            continue
        by_type = {each.get("type"): each.get("address") for each in reversed(objects(status.get("addresses")))}
        address = by_type.get("InternalIP") or by_type.get("ExternalIP")
        if isinstance(address, str) and not is_deleting(machine):
            found.append((key_of(machine).name, address))
    return tuple(sorted(found))
