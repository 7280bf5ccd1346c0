"""The Cluster reconciler."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from controllers.cluster.observe import Observed, observe
from controllers.cluster.plan import plan
from controllers.kernel.budgets import gathering
from controllers.kernel.certificates import NOBODY_READS, CertificatesView
from controllers.kernel.endpoints import NOBODY_MAKES, EndpointsView
from controllers.kernel.machine_facts import read
from controllers.kernel.ownership import cluster_name_of
from controllers.kernel.plan import Plan
from controllers.kernel.reconciler import Wake
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_SET, Key, Kind, Obj, key_of
from controllers.kernel.view import HostNeed, HostReads, View
from controllers.kernel.waking import itself


def of_member(obj: Obj, _view: View) -> Iterable[Key]:
    """The Cluster that a Machine or MachineSet is a member of, by label or by ``clusterName``."""
    name = cluster_name_of(obj)
    return (Key(key_of(obj).namespace, name),) if name else ()


def counts_the_same(old: Obj, new: Obj) -> bool:
    """A change of a Machine that no count and no reason of its Cluster shows."""
    return read(old) == read(new) and cluster_name_of(old) == cluster_name_of(new)


def while_machines_move(key: Key, view: View) -> float:
    return gathering(view.get(CLUSTER, key), "machines")


def same_cluster(old: Obj, new: Obj) -> bool:
    """A Cluster cares for a MachineSet's coming and going only."""
    return cluster_name_of(old) == cluster_name_of(new)


@dataclass(frozen=True, slots=True)
class ClusterReconciler:
    """See ``controllers.kernel.reconciler.Reconciler``. ``certificates``: what reads the clusters' certificates;
    ``endpoints``: what makes their endpoints."""

    certificates: CertificatesView = NOBODY_READS
    endpoints: EndpointsView = NOBODY_MAKES
    name: str = "cluster"
    kind: Kind = CLUSTER
    reports_unreachable: bool = True
    reads: tuple[Kind, ...] = (CLUSTER, MACHINE, MACHINE_SET)
    wakes: tuple[Wake, ...] = field(
        default=(
            Wake(CLUSTER, itself),
            Wake(MACHINE, of_member, counts_the_same, while_machines_move),
            Wake(MACHINE_SET, of_member, same_cluster),
        )
    )

    def needs(self, key: Key, view: View) -> HostNeed | None:
        return None

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Observed | None:
        return observe(key, view, self.certificates, self.endpoints)

    def plan(self, observed: Observed) -> Plan:
        return plan(observed)


RECONCILER = ClusterReconciler()
