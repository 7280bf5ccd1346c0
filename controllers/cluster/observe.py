"""A Cluster and its Machines, read from the View."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controllers.cluster import endpoint
from controllers.cluster.endpoint import Endpointing
from controllers.kernel.certificates import (
    NOBODY_READS,
    CertificatesRead,
    CertificatesUnread,
    CertificatesView,
    look_at,
)
from controllers.kernel.endpoints import NOBODY_MAKES, EndpointsView
from controllers.kernel.machine_facts import MachineFacts, read
from controllers.kernel.ownership import paused_by
from controllers.kernel.refs import (
    CLUSTER,
    MACHINE,
    MACHINE_SET,
    Key,
    Obj,
    Ref,
    is_deleting,
    ref_of,
)
from controllers.kernel.view import CLUSTER_NAME, MANAGEMENT_CLUSTER, View, Workload


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
    endpoint: Endpointing | None = None

    @property
    def ref(self) -> Ref:
        return ref_of(CLUSTER, self.cluster)

    @property
    def deleting(self) -> bool:
        return is_deleting(self.cluster)

    @property
    def empty(self) -> bool:
        """No Machine and no MachineSet of it is left."""
        return not self.machines and not self.sets

    @property
    def status(self) -> Mapping[str, Any]:
        status = self.cluster.get("status")
        return status if isinstance(status, Mapping) else {}


def observe(
    key: Key, view: View, certificates: CertificatesView = NOBODY_READS, endpoints: EndpointsView = NOBODY_MAKES
) -> Observed | None:
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
        certificates=look_at(cluster, view, certificates),
        endpoint=endpoint.look_at(cluster, view, endpoints),
    )
