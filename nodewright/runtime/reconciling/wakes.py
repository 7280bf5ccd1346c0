"""Changes wake keys: which ones, how urgently, and what does not."""

from __future__ import annotations

from functools import partial
from typing import Any

import structlog

from controllers.kernel.conditions import is_true
from controllers.kernel.reconciler import Reconciler, Wake
from controllers.kernel.refs import CLUSTER, NODE, POD, WORKLOAD_KINDS, Key, Kind, Obj, is_deleting, key_of
from nodewright.runtime.cache.cache import Cache, CacheView
from nodewright.runtime.cache.store import Change
from nodewright.runtime.queues.queue import Lane, WorkQueue
from nodewright.runtime.telemetry import metrics
from nodewright.runtime.workloads.cluster_router import ClusterRouter
from nodewright.runtime.workloads.directory import Workloads
from nodewright.runtime.writes.failing import is_own_note

_log = structlog.get_logger("nodewright.shell")


def _is_urgent(kind: Kind, primary: Kind, new: Obj | None) -> bool:
    """Deletions, pods of a drain, and Nodes that are not well. A Node that has joined and is Ready can wait: those that
    come to a thousand new Machines would keep the last of these from getting their hosts.
    """
    if new is None or kind == POD:
        return True
    if kind == NODE:
        return is_deleting(new) or not is_true((new.get("status") or {}).get("conditions"), "Ready")
    return kind == primary and is_deleting(new)


class Wakes:
    """Put the keys that a change concerns into the queue of one reconciler. It listens from the beginning."""

    def __init__(
        self,
        reconciler: Reconciler[Any],
        router: ClusterRouter,
        *,
        cache: Cache,
        workloads: Workloads,
        queue: WorkQueue[Key],
    ) -> None:
        self._reconciler = reconciler
        self._router = router
        self._workloads = workloads
        self._queue = queue
        for wake in reconciler.wakes:
            if wake.kind in cache.stores:
                cache.listen(wake.kind, partial(self._changed, wake, None))
            if wake.kind in WORKLOAD_KINDS:
                workloads.listen(wake.kind, partial(self._changed, wake))
        workloads.listen_contact(self._contact_changed)

    def _changed(self, wake: Wake, cluster: Key | None, change: Change, from_list: bool) -> None:
        """``cluster`` None: in the management cluster."""
        old, new = change.old, change.new
        lane = Lane.RESYNC if from_list else Lane.NORMAL
        if _is_urgent(wake.kind, self._reconciler.kind, new):
            lane = Lane.URGENT
        elif old is None and wake.kind == self._reconciler.kind and not from_list:
            lane = Lane.NEW
        try:
            if old is not None and new is not None:
                if wake.kind == self._reconciler.kind and is_own_note(old, new):
                    return  # it would undo the back-off
                if wake.ignores is not None and wake.ignores(old, new):
                    return
            self._wake(wake, cluster, change, lane)
        except Exception:
            metrics.of(metrics.RECONCILER_ERRORS, self._reconciler.name).inc()
            _log.exception(
                "wake failed",
                controller=self._reconciler.name,
                kind=wake.kind.name,
                namespace=change.key.namespace,
                name=change.key.name,
            )

    def _wake(self, wake: Wake, cluster: Key | None, change: Change, lane: Lane) -> None:
        """Both versions name keys: an object that moved from one owner to another concerns both."""
        keys: dict[Key, CacheView] = {}
        for version in (change.new, change.old):
            if version is None:
                continue
            site = self._router.site_in(self._router.concerned(wake.kind, version, cluster))
            if site is None:
                continue  # contact wakes all that live there
            view = self._router.view(site)
            keys |= {self._router.place(key, site): view for key in wake.keys(version, view)}
        for key, view in keys.items():
            if wake.kind in WORKLOAD_KINDS and not self._router.concerns(key, cluster):
                continue
            pause = wake.gathers(key, view) if wake.gathers is not None else 0.0
            self._queue.add_after(key, pause, lane)

    def _contact_changed(self, cluster: Key) -> None:
        """Contact was lost or found: all that live there are looked at, when there is time for it."""
        if not self._router.cares:
            return
        lane = Lane.NORMAL if self._reconciler.kind == CLUSTER else Lane.RESYNC
        for key in self._router.living_in(cluster):
            self._queue.add(key, lane)
        site = self._workloads.look(cluster)
        place = site.place if site is not None else None
        for wake in self._reconciler.wakes if place is not None else ():
            if wake.kind == NODE and place is not None:
                for node in place.cache.stores[NODE]:
                    self._wake(wake, cluster, Change(NODE, key_of(node), None, node), Lane.RESYNC)
