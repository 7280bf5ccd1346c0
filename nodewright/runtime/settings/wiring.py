"""The one list of reconcilers. They are imported when they are asked for, so that other commands don't pay for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from api.selectors import EVERYTHING, Selector
from controllers.kernel.each_cluster import ClaimsView, EachCluster
from controllers.kernel.joining import NO_LIMITS, Limits
from controllers.kernel.reconciler import (
    ReadsPartly,
    Reconciler,
    cluster_seen_by,
    clusters_served_by,
    lives_in_clusters,
)
from controllers.kernel.refs import WORKLOAD_KINDS, Key, Kind
from controllers.kernel.sharding import can_be_sharded, shard
from nodewright.runtime.election.claims import Claim
from nodewright.runtime.settings.options import Reconcilers

if TYPE_CHECKING:
    from api.remediation import TemplateKind
    from controllers.autoscaler.options import AutoscalerOptions
    from controllers.kernel.certificates import CertificatesView
    from controllers.kernel.endpoints import EndpointsView
    from controllers.kernel.etcd import EtcdView
    from controllers.kernel.etcd_snapshots import SnapshotsView
    from controllers.kernel.node_policy import NodePolicy
    from controllers.provisioningrequest.options import ProvisioningOptions
    from controllers.scheduling.reading import Reader


def reconcilers(
    hosting_node: str = "", limits: Limits = NO_LIMITS, template_kinds: frozenset[TemplateKind] = frozenset()
) -> Reconcilers:
    """Every controller that runs unless others are named.

    ``hosting_node`` and ``limits``: see ``MachineReconciler``.
    ``template_kinds``: see ``MachineHealthCheckReconciler``.
    """
    from controllers.cluster.reconciler import RECONCILER as CLUSTER  # noqa: PLC0415
    from controllers.machine.reconciler import MachineReconciler  # noqa: PLC0415
    from controllers.machineclass.reconciler import RECONCILER as MACHINE_CLASS  # noqa: PLC0415
    from controllers.machinedeployment.reconciler import RECONCILER as MACHINE_DEPLOYMENT  # noqa: PLC0415
    from controllers.machinehealthcheck.reconciler import MachineHealthCheckReconciler  # noqa: PLC0415
    from controllers.machineset.reconciler import RECONCILER as MACHINE_SET  # noqa: PLC0415

    return (
        CLUSTER,
        MACHINE_DEPLOYMENT,
        MACHINE_SET,
        MachineReconciler(hosting_node, limits),
        MachineHealthCheckReconciler(template_kinds),
        MACHINE_CLASS,
    )


def on_request(
    autoscaler: Callable[[], AutoscalerOptions] | None = None,
    provisioning: Callable[[], ProvisioningOptions] | None = None,
) -> Mapping[str, Callable[[], Reconciler[Any]]]:
    """Controllers that only run when they are named, by name: they need rights that a cluster may not want to give, or
    would work against somebody else's. Each is imported when it is made.
    """

    @cache
    def reader() -> Reader:
        """One for the reconcilers that look at the whole cluster: what one has read the other knows."""
        from controllers.scheduling.reading import Reader  # noqa: PLC0415

        return Reader()

    def requests() -> Reconciler[Any]:
        from controllers.certificatesigningrequest.reconciler import RECONCILER  # noqa: PLC0415

        return RECONCILER

    def the_autoscaler() -> Reconciler[Any]:
        from controllers.autoscaler.reconciler import AutoscalerReconciler  # noqa: PLC0415

        return AutoscalerReconciler(autoscaler() if autoscaler is not None else None, reader())

    def provisioning_requests() -> Reconciler[Any]:
        from controllers.provisioningrequest.reconciler import ProvisioningRequestReconciler  # noqa: PLC0415
        from nodewright.runtime.settings.provisioning import installed_classes  # noqa: PLC0415

        groups = autoscaler() if autoscaler is not None else None
        return ProvisioningRequestReconciler(
            groups, provisioning() if provisioning is not None else None, installed_classes(), reader()
        )

    def control_planes() -> Reconciler[Any]:
        from controllers.controlplane.reconciler import ControlPlaneReconciler  # noqa: PLC0415

        return ControlPlaneReconciler()

    return {
        "controlplane": control_planes,
        "certificatesigningrequest": requests,
        "autoscaler": the_autoscaler,
        "provisioningrequest": provisioning_requests,
    }


def with_node_policy(wanted: Reconcilers, nodes: NodePolicy) -> Reconcilers:
    """``wanted``, with the policy for labels and taints of Machines that reach their Nodes."""
    from controllers.machine.reconciler import MachineReconciler  # noqa: PLC0415

    return tuple(
        replace(reconciler, nodes=nodes) if isinstance(reconciler, MachineReconciler) else reconciler
        for reconciler in wanted
    )


def with_etcd(wanted: Reconcilers, etcd: EtcdView, snapshots: SnapshotsView) -> Reconcilers:
    """``wanted``, with the reader of the clusters' etcd members and with what saves them in buckets."""
    from controllers.machine.reconciler import MachineReconciler  # noqa: PLC0415

    wanted = tuple(
        replace(reconciler, etcd=etcd) if isinstance(reconciler, MachineReconciler) else reconciler
        for reconciler in wanted
    )
    if all(reconciler.name != "controlplane" for reconciler in wanted):
        return wanted
    from controllers.controlplane.reconciler import ControlPlaneReconciler  # noqa: PLC0415

    return tuple(
        replace(reconciler, etcd=etcd, snapshots=snapshots)
        if isinstance(reconciler, ControlPlaneReconciler)
        else reconciler
        for reconciler in wanted
    )


def with_certificates(wanted: Reconcilers, certificates: CertificatesView) -> Reconcilers:
    """``wanted``, with the reader of the clusters' certificates."""
    from controllers.cluster.reconciler import ClusterReconciler  # noqa: PLC0415

    kinds: tuple[type[Any], ...] = (ClusterReconciler,)
    if any(reconciler.name == "controlplane" for reconciler in wanted):
        from controllers.controlplane.reconciler import ControlPlaneReconciler  # noqa: PLC0415

        kinds = (ClusterReconciler, ControlPlaneReconciler)
    return tuple(
        replace(reconciler, certificates=certificates) if isinstance(reconciler, kinds) else reconciler
        for reconciler in wanted
    )


def with_endpoints(wanted: Reconcilers, endpoints: EndpointsView) -> Reconcilers:
    """``wanted``, with what makes endpoints of Clusters."""
    from controllers.cluster.reconciler import ClusterReconciler  # noqa: PLC0415

    return tuple(
        replace(reconciler, endpoints=endpoints) if isinstance(reconciler, ClusterReconciler) else reconciler
        for reconciler in wanted
    )


def with_claims(wanted: Reconcilers, claims: ClaimsView) -> Reconcilers:
    """``wanted``, in a process that shares its Clusters with others."""
    return tuple(each.with_claims(claims) if isinstance(each, EachCluster) else each for each in wanted)


def reached_at(wanted: Reconcilers, server: str) -> Reconcilers:
    """``wanted``, with the URL of the API server: no kubelet gets a certificate that serves in its name."""
    if all(reconciler.name != "certificatesigningrequest" for reconciler in wanted):
        return wanted
    from controllers.certificatesigningrequest.foreign_names import plain  # noqa: PLC0415
    from controllers.certificatesigningrequest.reconciler import CertificateSigningRequestReconciler  # noqa: PLC0415

    hosts = frozenset({plain(host)} if (host := urlsplit(server).hostname) else ())
    return tuple(
        replace(reconciler, api_hosts=reconciler.api_hosts | hosts)
        if isinstance(reconciler, CertificateSigningRequestReconciler)
        else reconciler
        for reconciler in wanted
    )


def claims_of(wanted: Reconcilers, machines: Selector = EVERYTHING, namespace: str = "") -> tuple[Claim, ...]:
    """What a process with these controllers serves. ``machines``: its ``--machine-selector``; ``namespace`` "": all.

    Those that serve Clusters one by one claim each when they come to it (``runtime/election/cluster_claims.py``).
    """

    def claim(reconciler: Reconciler[Any]) -> Claim:
        cluster = cluster_seen_by(reconciler)
        only = str(shard(machines)) if can_be_sharded(reconciler) else ""
        return Claim(reconciler.name, str(cluster) if isinstance(cluster, Key) else "", namespace, only)

    return tuple(sorted(claim(reconciler) for reconciler in wanted if clusters_served_by(reconciler) is None))


def parts_of(wanted: Reconcilers, namespace: str = "") -> dict[Kind, tuple[Key, ...]]:
    """Kinds of which only some objects are watched: those of a namespace, or some by name.

    ``namespace``: the only one in which Machines and what belongs to them are served. Nodes and Pods are in all.
    """
    found: dict[Kind, tuple[Key, ...]] = {}
    if namespace:
        there = [kind for kind in kinds_of(wanted) if kind.namespaced and kind not in WORKLOAD_KINDS]
        found = {kind: (Key(namespace, ""),) for kind in there}
    named = {kind for reconciler in wanted if isinstance(reconciler, ReadsPartly) for kind in reconciler.parts}
    found = {kind: keys for kind, keys in found.items() if kind not in named}
    for reconciler in wanted:
        for kind, keys in reconciler.parts.items() if isinstance(reconciler, ReadsPartly) else ():
            found[kind] = tuple(dict.fromkeys((*found.get(kind, ()), *keys)))
    whole = {kind: {key.namespace for key in keys if not key.name} for kind, keys in found.items()}
    return {
        kind: tuple(key for key in keys if not key.name or key.namespace not in whole[kind])
        for kind, keys in found.items()
    }


def clusters_of(wanted: Reconcilers) -> frozenset[Key]:
    """Those Clusters that reconcilers see alone."""
    return frozenset(cluster for reconciler in wanted if isinstance(cluster := cluster_seen_by(reconciler), Key))


def kinds_of(wanted: Reconcilers) -> tuple[Kind, ...]:
    """What has to be watched for ``wanted`` reconcilers where our objects are, each kind once."""
    return _once(
        kind
        for reconciler in wanted
        for kind in _kinds(reconciler)
        if kind not in WORKLOAD_KINDS or sees_management_cluster(reconciler)
    )


def sees_management_cluster(reconciler: Reconciler[Any]) -> bool:
    """Whether WORKLOAD_KINDS of the management cluster concern it."""
    return not isinstance(cluster_seen_by(reconciler), Key) and clusters_served_by(reconciler) is None


def kinds_in(wanted: Reconcilers, cluster: Key) -> tuple[Kind, ...]:
    """The same in the workload cluster of ``cluster``."""
    there = [reconciler for reconciler in wanted if cluster_seen_by(reconciler) in (None, cluster)]
    return _once(kind for reconciler in there for kind in _kinds(reconciler) if kind in WORKLOAD_KINDS)


def apart_in(wanted: Reconcilers, cluster: Key) -> frozenset[Kind]:
    """Those of ``kinds_in`` that only reconcilers read whose objects live in each cluster: the others work without.

    So are those of reconcilers that serve Clusters one by one, beside others that look at the cluster: a right that
    the autoscaler lacks there stops no drain.
    """
    others = [reconciler for reconciler in wanted if not lives_in_clusters(reconciler)]
    needed = [reconciler for reconciler in others if clusters_served_by(reconciler) is None]
    others = needed if kinds_in(needed, cluster) else others
    return frozenset(kinds_in(wanted, cluster)) - frozenset(kinds_in(others, cluster))


def _kinds(reconciler: Reconciler[Any]) -> tuple[Kind, ...]:
    return (reconciler.kind, *reconciler.reads, *(wake.kind for wake in reconciler.wakes))


def _once(kinds: Iterable[Kind]) -> tuple[Kind, ...]:
    return tuple(dict.fromkeys(kinds))
