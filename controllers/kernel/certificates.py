"""What is known of a cluster's certificates, read in the background: values that the Cluster's plan decides from.

No key is among them. Two kinds of certificates: those that lie in Secrets, and those that servers show to everybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from controllers.kernel.refs import Key, Ref


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
    """``holder``: where it is, for people: a Secret and its key, or a Machine and the address that was asked."""

    kind: CertificateKind
    holder: str
    ends: datetime


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
