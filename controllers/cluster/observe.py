"""A Cluster and its Machines, read from the View."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controllers.kernel.certificates import (
    NOBODY_READS,
    CertificatesNeed,
    CertificatesRead,
    CertificatesUnread,
    CertificatesView,
)
from controllers.kernel.machine_facts import MachineFacts, read
from controllers.kernel.pausing import paused_by
from controllers.kernel.refs import (
    CLUSTER,
    MACHINE,
    MACHINE_SET,
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
from controllers.kernel.view import CLUSTER_NAME, MANAGEMENT_CLUSTER, ManagementCluster, View, Workload
from controllers.kernel.workload import endpoint_of


@dataclass(frozen=True, slots=True)
class Observed:
    """``sets`` counts the MachineSets that are still there; a deployment always has one."""

    now: datetime
    cluster: Obj
    paused: str
    machines: tuple[MachineFacts, ...]
    sets: int
    workload: Workload = MANAGEMENT_CLUSTER
    certificates: CertificatesRead | CertificatesUnread | None = None

    @property
    def ref(self) -> Ref:
        return ref_of(CLUSTER, self.cluster)

    @property
    def deleting(self) -> bool:
        return is_deleting(self.cluster)

    @property
    def status(self) -> Mapping[str, Any]:
        status = self.cluster.get("status")
        return status if isinstance(status, Mapping) else {}


def observe(key: Key, view: View, certificates: CertificatesView = NOBODY_READS) -> Observed | None:
    cluster = view.get(CLUSTER, key)
    if cluster is None:
        return None
    name = str(key)
    return Observed(
        now=view.now,
        cluster=cluster,
        paused=paused_by((cluster,)),
        machines=tuple(read(machine) for machine in view.indexed(MACHINE, CLUSTER_NAME, name)),
        sets=len(view.indexed(MACHINE_SET, CLUSTER_NAME, name)),
        workload=view.workload,
        certificates=_certificates(cluster, view, certificates),
    )


def _certificates(
    cluster: Obj, view: View, certificates: CertificatesView
) -> CertificatesRead | CertificatesUnread | None:
    """None for a Cluster without an API of its own: it has no certificates of ours or anybody's."""
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
