"""What wakes a ControlPlane, and what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controllers.controlplane.addons import CORE_DNS
from controllers.controlplane.holds import STATIC_NAMESPACE
from controllers.controlplane.observe import READS, STATIC_PODS, Observed, observe
from controllers.controlplane.plan import plan
from controllers.kernel import certificates
from controllers.kernel.certificates import CertificatesView
from controllers.kernel.etcd import NOBODY_READS, EtcdView
from controllers.kernel.etcd_snapshots import NOBODY_SAVES, SnapshotsView
from controllers.kernel.ownership import cluster_name_of, controller_of
from controllers.kernel.plan import Plan
from controllers.kernel.reconciler import Wake
from controllers.kernel.refs import CLUSTER, CONTROL_PLANE, DEPLOYMENT, MACHINE, MACHINE_CLASS, Key, Kind, Obj, key_of
from controllers.kernel.view import CLUSTER_NAME, HostNeed, HostReads, View
from controllers.kernel.waking import itself, members_of_cluster, named_by_template, same_config, same_to_sets

__all__ = ["STATIC_NAMESPACE", "STATIC_PODS", "ControlPlaneReconciler"]


def owner_of_machine(machine: Obj, view: View) -> Iterable[Key]:
    """The ControlPlane that controls it; those of its Cluster for one that a person declared."""
    owner = controller_of(machine)
    if owner is not None and owner.get("kind") == CONTROL_PLANE.name:
        return (Key(key_of(machine).namespace, str(owner.get("name") or "")),)
    return _of_cluster(key_of(machine).namespace, cluster_name_of(machine), view) if owner is None else ()


def _of_cluster(namespace: str, name: str, view: View) -> Iterable[Key]:
    found = view.indexed(CONTROL_PLANE, CLUSTER_NAME, f"{namespace}/{name}") if name else ()
    return tuple(key_of(body) for body in found)


def same_to_control_planes(old: Obj, new: Obj) -> bool:
    """A ControlPlane reads pauses, failure domains and its own marks from its Cluster."""
    return same_to_sets(old, new) and old["metadata"].get("annotations") == new["metadata"].get("annotations")


@dataclass(frozen=True, slots=True)
class ControlPlaneReconciler:
    """See ``controllers.kernel.reconciler.Reconciler``. ``etcd``: what reads etcd's members; ``certificates``: what
    reads the certificates that hosts show; ``snapshots``: what saves etcd in a bucket."""

    etcd: EtcdView = NOBODY_READS
    certificates: CertificatesView = certificates.NOBODY_READS
    snapshots: SnapshotsView = NOBODY_SAVES
    name: str = "controlplane"
    kind: Kind = CONTROL_PLANE
    reports_unreachable: bool = True
    reads: tuple[Kind, ...] = READS
    wakes: tuple[Wake, ...] = field(
        default=(
            Wake(CONTROL_PLANE, itself),
            Wake(MACHINE, owner_of_machine),
            Wake(MACHINE_CLASS, named_by_template(CONTROL_PLANE), same_config),
            Wake(CLUSTER, members_of_cluster(CONTROL_PLANE), same_to_control_planes),
        )
    )

    @property
    def parts(self) -> Mapping[Kind, tuple[Key, ...]]:
        return {DEPLOYMENT: (CORE_DNS,)}

    def needs(self, key: Key, view: View) -> HostNeed | None:
        return None

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Observed | None:
        return observe(key, view, self.etcd, self.certificates, self.snapshots)

    def plan(self, observed: Observed) -> Plan:
        return plan(observed)
