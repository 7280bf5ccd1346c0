"""In which cluster a reconciler looks for the Nodes of each of its keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from api.conditions import Reason
from controllers.kernel.node_policy import cluster_key_of, kubeconfig_secret_of
from controllers.kernel.reconciler import (
    Reconciler,
    ReportsUnreachable,
    SpansClusters,
    cluster_seen_by,
    clusters_served_by,
    lives_in_clusters,
)
from controllers.kernel.refs import CLUSTER, MACHINE, WORKLOAD_KINDS, Key, Kind, Obj, key_of
from controllers.kernel.view import MANAGEMENT_CLUSTER, ManagementCluster, Reached, ShapeRead, Unreachable
from nodewright.runtime.cache.cache import Cache, CacheView
from nodewright.runtime.cache.store import Store
from nodewright.runtime.workloads.directory import MANAGEMENT_SITE, Site, Workloads
from nodewright.runtime.workloads.gate import Gate
from nodewright.runtime.workloads.placement import cluster_of, local, placed
from nodewright.runtime.writes.executor import APITarget


class ClusterRouter:
    """Routes of one reconciler. Clusters are None in the management cluster."""

    def __init__(
        self,
        reconciler: Reconciler[Any],
        cache: Cache,
        workloads: Workloads,
        now: Callable[[], datetime],
        shapes: Callable[[Mapping[str, Any], str], ShapeRead] | None = None,
    ) -> None:
        self._reconciler = reconciler
        self._cache = cache
        self._workloads = workloads
        self._now = now
        self._shapes = shapes
        self._speaks = isinstance(reconciler, ReportsUnreachable) and reconciler.reports_unreachable
        self._spans = isinstance(reconciler, SpansClusters) and reconciler.spans_clusters
        self.cares = self._speaks or not WORKLOAD_KINDS.isdisjoint(reconciler.reads)
        """Whether it makes a difference to the reconciler where Nodes live."""
        self._sees = cluster_seen_by(reconciler)
        self._lives = lives_in_clusters(reconciler)
        self._serves = clusters_served_by(reconciler)
        self._nothing = Cache(kind for kind in {*cache.stores, *reconciler.reads} if kind in WORKLOAD_KINDS)
        self._heard_in: dict[Key, Key] = {}
        """Where a key was last heard of whose object is gone (a Node that was left behind)."""

    def site(self, key: Key) -> Site | None:
        """Where the Nodes of ``key`` live; None while that is being found out."""
        if not self.cares or self._spans or isinstance(self._sees, ManagementCluster):
            return MANAGEMENT_SITE
        if self._lives:
            return self.site_in(cluster_of(key))
        if self._sees is not None:
            site = self.site_in(self._sees)
            return self._no_site(self._sees) if site is not None and site.place is None else site
        primary = self._cache.stores[self._reconciler.kind].get(key)
        if self._serves is not None and (primary is None or not self._serves(primary)):
            return MANAGEMENT_SITE
        return self.site_in(
            self._heard_in.get(key) if primary is None else cluster_key_of(self._reconciler.kind, primary)
        )

    def _no_site(self, cluster: Key) -> Site:
        """Site of a Cluster whose kubeconfig Secret is missing, for a reconciler that sees workload clusters alone."""
        why = f"there is no Secret {kubeconfig_secret_of(cluster)}"
        unreachable = Unreachable("", str(Reason.KUBECONFIG_MISSING), why)
        return Site(unreachable, APITarget(Gate(f"Cluster {cluster}"), self._nothing))

    def site_in(self, cluster: Key | None) -> Site | None:
        return MANAGEMENT_SITE if cluster is None else self._workloads.look(cluster)

    def view(self, site: Site) -> CacheView:
        remote = site.place.cache if site.place is not None else None
        return CacheView(self._cache, self._now(), site.workload, remote, self._view_in, self._shapes, site.cluster)

    def _view_in(self, cluster: Key | None) -> CacheView:
        site = self.site_in(cluster)
        if site is not None:
            return self.view(site)
        why = "it is being found out where its Nodes live"
        unknown = Unreachable("", str(Reason.UNREACHABLE), why, finding_out=True)
        return CacheView(self._cache, self._now(), unknown, self._nothing, self._view_in)

    def may_look(self, view: CacheView) -> bool:
        """Whether everything is read that the reconciler needs. For a cluster that can't be reached some reconcilers
        can speak.
        """
        frozen = self._speaks and isinstance(view.workload, Unreachable)
        if self._serves is not None:
            lacks = isinstance(view.workload, Reached) and bool(view.workload.lacking)
            frozen = frozen or lacks or isinstance(view.workload, ManagementCluster)
        return all(view.complete(kind) or (frozen and kind in WORKLOAD_KINDS) for kind in self._reconciler.reads)

    def concerns(self, key: Key, cluster: Key | None) -> bool:
        """Whether what happens to a Node in ``cluster`` concerns ``key``: many clusters may have one of its name."""
        if self._spans or self._lives:
            return True
        if self._sees is not None:
            return self._sees == (MANAGEMENT_CLUSTER if cluster is None else cluster)
        primary = self._cache.stores[self._reconciler.kind].get(key)
        if primary is None:
            if cluster is not None:
                self._heard_in[key] = cluster
            return True
        lives_in = cluster_key_of(self._reconciler.kind, primary)
        if cluster is None and lives_in is not None:
            site = self._workloads.look(lives_in)
            return site is None or site.place is None
        return lives_in == cluster

    def forget(self, key: Key) -> None:
        self._heard_in.pop(key, None)

    def living_in(self, cluster: Key) -> Iterator[Key]:
        """Keys whose Nodes live in ``cluster``, or may."""
        if self._sees is not None and self._sees != cluster:
            return
        if self._lives:
            yield from self._placed_in(cluster)
            return
        for obj in self._cache.stores[self._reconciler.kind]:
            key = key_of(obj)
            may = (
                key.namespace == cluster.namespace
                if self._spans
                else cluster_key_of(self._reconciler.kind, obj) == cluster
            )
            if may or self._sees is not None:
                yield key

    def local(self, key: Key) -> Key:
        """The key by which the reconciler knows the object of ``key``."""
        return local(key) if self._lives else key

    def primary(self, key: Key) -> Obj | None:
        """The object of ``key``, wherever it is."""
        store = self._store(key)
        return store.get(self.local(key)) if store is not None else None

    def faults(self, key: Key) -> tuple[str, ...]:
        """What is malformed in its spec."""
        store = self._store(key)
        return tuple(store.faults(self.local(key))) if store is not None else ()

    def keys(self) -> Iterator[Key]:
        """Keys of all objects of the reconciler that are known."""
        yield from self._cache.stores[self._reconciler.kind].keys()
        for cluster in self._clusters() if self._lives else ():
            yield from self._placed_in(cluster)

    def concerned(self, kind: Kind, obj: Obj, cluster: Key | None) -> Key | None:
        """In which cluster a change of ``obj``, which is in ``cluster``, may wake somebody."""
        return cluster_key_of(kind, obj) if self._lives and kind not in WORKLOAD_KINDS else cluster

    def place(self, key: Key, site: Site) -> Key:
        """The key of the queue for an object that the reconciler calls ``key`` and that is in ``site``."""
        return placed(key, site.cluster) if self._lives else key

    def waits_for_contact(self, key: Key) -> bool:
        """Whether contact with its cluster wakes ``key``, and nothing else need.

        So nobody asks again and again for a Cluster that is named no more.
        """
        cluster = cluster_of(key) if self._lives else None
        site = self.site_in(cluster)
        return cluster is not None and (site is None or isinstance(site.workload, Unreachable))

    def open(self) -> None:
        """Have the clusters found that objects of the reconciler may be in: nothing there could wake it before."""
        for cluster in self._clusters() if self._lives else ():
            self.site_in(cluster)

    def _clusters(self) -> set[Key]:
        kinds = [kind for kind in (CLUSTER, MACHINE) if kind in self._cache.stores]
        found = {cluster_key_of(kind, obj) for kind in kinds for obj in self._cache.stores[kind]}
        return {cluster for cluster in found if cluster is not None}

    def _placed_in(self, cluster: Key) -> Iterator[Key]:
        site = self.site_in(cluster)
        if site is not None and site.place is not None:
            for key in list(site.place.cache.stores[self._reconciler.kind].keys()):
                yield placed(key, cluster)

    def _store(self, key: Key) -> Store | None:
        """Where the object of ``key`` is kept."""
        cluster = cluster_of(key) if self._lives else None
        if cluster is None:
            return self._cache.stores[self._reconciler.kind]
        site = self._workloads.look(cluster)
        return site.place.cache.stores[self._reconciler.kind] if site is not None and site.place is not None else None
