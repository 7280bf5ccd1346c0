"""In which cluster a reconciler looks for the Nodes of each of its keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from api.conditions import Reason
from controllers.kernel.reconciler import Reconciler, ReportsUnreachable, SpansClusters, cluster_seen_by
from controllers.kernel.refs import WORKLOAD_KINDS, Key, key_of
from controllers.kernel.view import MANAGEMENT_CLUSTER, ManagementCluster, ShapeRead, Unreachable
from controllers.kernel.workload import cluster_key_of, kubeconfig_secret_of
from nodewright.runtime.cache.cache import Cache, CacheView
from nodewright.runtime.executor import APITarget
from nodewright.runtime.workloads.directory import MANAGEMENT_SITE, Site, Workloads
from nodewright.runtime.workloads.gate import Gate


class ClusterRouter:
    """Of one reconciler. Clusters are None in the management cluster."""

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
        self._nothing = Cache(kind for kind in {*cache.stores, *reconciler.reads} if kind in WORKLOAD_KINDS)
        self._heard_in: dict[Key, Key] = {}
        """Where a key was last heard of whose object is gone (a Node that was left behind)."""

    def site(self, key: Key) -> Site | None:
        """Where the Nodes of ``key`` live; None while that is being found out."""
        if not self.cares or self._spans or isinstance(self._sees, ManagementCluster):
            return MANAGEMENT_SITE
        if self._sees is not None:
            site = self.site_in(self._sees)
            return self._no_site(self._sees) if site is not None and site.place is None else site
        primary = self._cache.stores[self._reconciler.kind].get(key)
        return self.site_in(
            self._heard_in.get(key) if primary is None else cluster_key_of(self._reconciler.kind, primary)
        )

    def _no_site(self, cluster: Key) -> Site:
        """Of a Cluster without an API of its own, for a reconciler that sees that alone."""
        why = f"there is no Secret {kubeconfig_secret_of(cluster)}"
        unreachable = Unreachable("", str(Reason.KUBECONFIG_MISSING), why)
        return Site(unreachable, APITarget(Gate(f"Cluster {cluster}"), self._nothing))

    def site_in(self, cluster: Key | None) -> Site | None:
        return MANAGEMENT_SITE if cluster is None else self._workloads.look(cluster)

    def view(self, site: Site) -> CacheView:
        remote = site.place.cache if site.place is not None else None
        return CacheView(self._cache, self._now(), site.workload, remote, self._view_in, self._shapes)

    def _view_in(self, cluster: Key | None) -> CacheView:
        site = self.site_in(cluster)
        if site is not None:
            return self.view(site)
        why = "it is being found out where its Nodes live"
        unknown = Unreachable("", str(Reason.UNREACHABLE), why, finding_out=True)
        return CacheView(self._cache, self._now(), unknown, self._nothing, self._view_in)

    def may_look(self, view: CacheView) -> bool:
        """Whether everything is read that the reconciler needs. Of a cluster that can't be reached some reconcilers can
        speak.
        """
        frozen = self._speaks and isinstance(view.workload, Unreachable)
        return all(view.complete(kind) or (frozen and kind in WORKLOAD_KINDS) for kind in self._reconciler.reads)

    def concerns(self, key: Key, cluster: Key | None) -> bool:
        """Whether what happens to a Node in ``cluster`` concerns ``key``: many clusters may have one of its name."""
        if self._spans:
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
        for obj in self._cache.stores[self._reconciler.kind]:
            key = key_of(obj)
            may = (
                key.namespace == cluster.namespace
                if self._spans
                else cluster_key_of(self._reconciler.kind, obj) == cluster
            )
            if may or self._sees is not None:
                yield key
