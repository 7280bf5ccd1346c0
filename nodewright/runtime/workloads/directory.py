"""Where the Nodes of each Cluster live: found out when somebody asks, kept as long as somebody names the Cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import structlog

from controllers.kernel.endpoints import has_own_api
from controllers.kernel.node_policy import cluster_key_of
from controllers.kernel.refs import CLUSTER, MACHINE, Key, Kind, key_of
from controllers.kernel.view import MANAGEMENT_CLUSTER, ManagementCluster, Reached, Unreachable, Workload
from nodewright.runtime.cache.store import Change
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.telemetry import metrics
from nodewright.runtime.workloads.access import ClusterAccess, Dependencies
from nodewright.runtime.writes.executor import APITarget

_log = structlog.get_logger("nodewright.workloads")

WorkloadListener = Callable[[Key, Change, bool], None]
"""Called for each change in a workload cluster: the Cluster, the change, and whether a list brought it."""
_PAUSE_AFTER_BUG = 5.0


@dataclass(frozen=True, slots=True)
class Site:
    """One Cluster's Nodes: what is known of them, and where actions on them go. ``place`` None: in the management
    cluster. ``cluster``: whose they are, if it has an API of its own.
    """

    workload: Workload
    place: APITarget | None = None
    cluster: Key | None = None


MANAGEMENT_SITE = Site(MANAGEMENT_CLUSTER)


class Workloads(Protocol):
    """What the shell needs of the directory."""

    def look(self, cluster: Key) -> Site | None: ...

    def listen(self, kind: Kind, listener: WorkloadListener) -> None: ...

    def listen_contact(self, listener: Callable[[Key], None]) -> None: ...


class AllInManagementCluster:
    """Nobody has a cluster of its own: for programs that look at one API server only."""

    def look(self, cluster: Key) -> Site | None:
        return MANAGEMENT_SITE

    def listen(self, kind: Kind, listener: WorkloadListener) -> None:
        """There is nothing to hear."""

    def listen_contact(self, listener: Callable[[Key], None]) -> None:
        """There is nobody to lose contact with."""


class WorkloadDirectory:
    """``Workloads`` over one connection per Cluster. One event loop; ``close`` at the end."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._accesses: dict[Key, ClusterAccess] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._listeners: list[tuple[Kind, WorkloadListener]] = []
        self._contact: list[Callable[[Key], None]] = []
        self._sweeper: asyncio.Task[None] | None = None
        self._closed = False
        if CLUSTER in deps.home.stores:
            deps.home.listen(CLUSTER, self._cluster_changed)

    def look(self, cluster: Key) -> Site | None:
        """None: it is being found out, and listeners of contact will hear of it."""
        access = self._accesses.get(cluster)
        if access is None:
            self._open(cluster)
            return None
        match access.workload:
            case None:
                return None
            case ManagementCluster():
                return MANAGEMENT_SITE
            case workload:
                return Site(workload, access.place, cluster)

    def client_of(self, cluster: Key) -> KubeClient | None:
        """The connection to a workload cluster; None while there is no contact."""
        access = self._accesses.get(cluster)
        return access.gate.client if access is not None else None

    def is_management_cluster(self, cluster: Key) -> bool:
        site = self.look(cluster)
        return site is not None and site.place is None

    def listen(self, kind: Kind, listener: WorkloadListener) -> None:
        """Before the first ``look``."""
        self._listeners.append((kind, listener))

    def listen_contact(self, listener: Callable[[Key], None]) -> None:
        self._contact.append(listener)

    async def close(self, flush: float = 0.0) -> None:
        """Once all Events are written there, or after ``flush`` seconds."""
        self._closed = True
        await asyncio.gather(*(access.flush(flush) for access in self._accesses.values()))
        tasks = [*self._tasks.values(), *([self._sweeper] if self._sweeper is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for cluster in list(self._accesses):
            self._forget(cluster)

    def _open(self, cluster: Key) -> None:
        clusters = self._deps.home
        if self._closed or (CLUSTER in clusters.stores and not clusters.complete(CLUSTER)):
            return
        access = ClusterAccess(cluster, self._deps, self._changed)
        for kind, listener in self._listeners:
            if kind in access.cache.stores:
                access.cache.listen(kind, partial(listener, cluster))
        self._accesses[cluster] = access
        # In contexts of their own: nothing of the reconcile that happened to be the first may stick to their log lines.
        self._tasks[cluster] = asyncio.create_task(self._run(access), name=f"cluster {cluster}", context=Context())
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep_now_and_then(), name="clusters", context=Context())

    async def _run(self, access: ClusterAccess) -> None:
        """A bug in one access must not touch the others."""
        while True:
            try:
                await access.run()
            except Exception as error:
                _log.exception("cluster access failed", cluster=str(access.cluster))
                access.failed(error)
            await asyncio.sleep(_PAUSE_AFTER_BUG)

    def _changed(self, cluster: Key) -> None:
        access = self._accesses.get(cluster)
        if access is None:
            return
        self._count()
        for listener in self._contact:
            listener(cluster)

    async def _sweep_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._deps.options.sweep)
            await self.sweep()

    async def sweep(self) -> None:
        """Let go of clusters that no Cluster object and no Machine names any more."""
        unnamed = self._unnamed()
        for cluster, access in list(self._accesses.items()):
            if cluster not in unnamed:
                access.reconsider()
                continue
            task = self._tasks.pop(cluster)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self._forget(cluster)

    def _cluster_changed(self, change: Change, _from_list: bool) -> None:
        """Its endpoint says that it has an API of its own: it is looked at again at once."""
        if change.new is not None and has_own_api(change.new) != has_own_api(change.old):
            access = self._accesses.get(key_of(change.new))
            if access is not None:
                access.reconsider()

    def _unnamed(self) -> set[Key]:
        home = self._deps.home.stores
        clusters = home.get(CLUSTER)
        unnamed = {key for key in self._accesses if clusters is None or clusters.get(key) is None}
        unnamed -= self._deps.wanted
        if unnamed and MACHINE in home:
            unnamed -= {key for machine in home[MACHINE] if (key := cluster_key_of(MACHINE, machine)) is not None}
        return unnamed

    def _forget(self, cluster: Key) -> None:
        access = self._accesses.pop(cluster, None)
        if access is not None:
            access.cache.close()
            self._count()

    def _count(self) -> None:
        workloads = [access.workload for access in self._accesses.values()]
        for state, kind in (("Reachable", Reached), ("Unreachable", Unreachable)):
            metrics.of(metrics.WORKLOAD_CLUSTERS, state).set(sum(isinstance(one, kind) for one in workloads))
