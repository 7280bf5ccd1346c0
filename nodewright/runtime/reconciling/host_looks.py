"""What a reconciler's keys know of their hosts: the looks that they share, and a deletion that is no longer decided on.

Several keys may look at one host (a Machine's and its certificate's, say). The reconciler that owns hosts says when
nobody looks at one any more, and takes back what waits for its turn at the provider.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from controllers.kernel.actions import DeleteHost
from controllers.kernel.hooks import keeps_its_host
from controllers.kernel.plan import Plan
from controllers.kernel.reconciler import Reconciler, SharesHosts
from controllers.kernel.refs import Key, is_deleting
from controllers.kernel.view import HostReads, HostUnknown
from nodewright.runtime.bootstrap.directory import Bootstraps
from nodewright.runtime.cache.cache import CacheView
from nodewright.runtime.hosts.directory import HostDirectory
from nodewright.runtime.queues.queue import Lane, WorkQueue
from nodewright.runtime.workloads.cluster_router import ClusterRouter


class Parked:
    """A reconcile that goes on when a list of hosts has come."""


PARKED = Parked()


class HostLooks:
    """The hosts that the keys of one reconciler look at. What is heard of a host puts its keys into ``queue``."""

    def __init__(
        self,
        reconciler: Reconciler[Any],
        router: ClusterRouter,
        *,
        hosts: HostDirectory,
        bootstraps: Bootstraps,
        queue: WorkQueue[Key],
    ) -> None:
        self._reconciler = reconciler
        self._router = router
        self._hosts = hosts
        self._bootstraps = bootstraps
        self._queue = queue
        self._uid_of: dict[Key, str] = {}
        self._keys_for: dict[str, set[Key]] = {}
        self._new: set[Key] = set()
        """Keys that were looked at as new, and wait for the list of hosts that this takes."""
        self._owns_hosts = not (isinstance(reconciler, SharesHosts) and reconciler.shares_hosts)
        hosts.listen(self._host_changed)
        bootstraps.listen(self._host_changed)

    def __len__(self) -> int:
        """How many keys look at a host."""
        return len(self._uid_of)

    def look(self, key: Key, view: CacheView) -> HostReads | Parked | None:
        """What is known of the key's host; None if its reconciler needs none, ``Parked`` while no list has come."""
        local = self._router.local(key)
        need = self._reconciler.needs(local, view)
        if need is None:
            return None
        uid = need.machine_uid
        self._remember(key, uid)
        primary = view.get(self._reconciler.kind, local)
        going = self._owns_hosts and (primary is None or is_deleting(primary))
        if going:  # no host may be made or changed for it any more; a deletion keeps its place in the queue
            self._hosts.withdraw(uid, but_deletion=True)
        reads = self._hosts.look(need)
        if reads is None:
            if self._queue.lane_of(key) is Lane.NEW:
                self._new.add(key)
            return PARKED
        self._new.discard(key)
        if going and self._hosts.waits_to_delete(uid):
            reads = replace(reads, in_flight="")  # the plan decides again whether the host goes
        return replace(reads, bootstrap=self._bootstraps.look(need.bootstrap)) if need.bootstrap is not None else reads

    def decided(self, key: Key, plan: Plan, hosts: HostReads, view: CacheView) -> None:
        """A deletion that waits for its turn is not made if the plan has none any more (a hook was added since).

        While a provider's list fails no plan has a deletion: then it counts whether the Machine itself says that its
        host stays.
        """
        uid = self._uid_of.get(key, "")
        primary = self._router.primary(key)
        if not uid or not self._owns_hosts or (primary is not None and not is_deleting(primary)):
            return
        decided = any(isinstance(action, DeleteHost) for action in plan.actions())
        known = not isinstance(hosts.host, HostUnknown)
        stays = primary is not None and keeps_its_host(primary, view)
        if (known or stays) and not decided and self._hosts.waits_to_delete(uid):
            self._hosts.withdraw(uid)

    def forget(self, key: Key) -> None:
        """``key`` is gone."""
        self._new.discard(key)
        uid = self._uid_of.pop(key, None)
        if uid is not None:
            self._let_go(key, uid)

    def _remember(self, key: Key, uid: str) -> None:
        before = self._uid_of.get(key)
        if before != uid:
            if before is not None:
                self._let_go(key, before)
            self._uid_of[key] = uid
            self._keys_for.setdefault(uid, set()).add(key)

    def _let_go(self, key: Key, uid: str) -> None:
        """``key`` looks at the host of ``uid`` no more. Only the reconciler of the hosts says that nobody does."""
        keys = self._keys_for.get(uid, set())
        keys.discard(key)
        if keys:
            return
        self._keys_for.pop(uid, None)
        if self._owns_hosts:
            self._hosts.forget(uid)
            self._bootstraps.forget(uid)

    def _host_changed(self, uid: str) -> None:
        for key in self._keys_for.get(uid, ()):
            primary = self._router.primary(key)
            if primary is not None and is_deleting(primary):
                self._queue.add(key, Lane.URGENT)
            else:
                self._queue.add(key, Lane.NEW if key in self._new else Lane.NORMAL)
