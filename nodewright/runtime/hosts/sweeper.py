"""Look for hosts that no Machine knows, now and then, and tell of them or remove them; see ``controllers.orphans``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime

import structlog

from controllers.kernel.provider_config import Resolved, resolve
from controllers.kernel.refs import MACHINE, MACHINE_CLASS, MACHINE_SET, key_of, uid_of
from controllers.kernel.view import View
from controllers.orphans.sweep import Memory, Observed, Orphan, Sweep, sweep
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.hosts.directory import HostDirectory
from nodewright.runtime.telemetry import metrics

_log = structlog.get_logger("nodewright.orphans")

PAUSE = 60.0
"""Seconds between sweeps."""


class Sweeper:
    """``removes``: remove proven orphans; else they are only reported. ``run`` until cancelled."""

    def __init__(self, cache: Cache, hosts: HostDirectory, now: Callable[[], datetime], removes: bool) -> None:
        self._cache = cache
        self._hosts = hosts
        self._now = now
        self._removes = removes
        self._memory: Memory = {}
        self._orphans: tuple[Orphan, ...] = ()
        self._reported: set[tuple[str, str]] = set()
        self._strange: set[str] = set()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(PAUSE)
            try:
                self.sweep()
            except Exception:
                _log.exception("sweep failed")

    def sweep(self) -> Sweep:
        """One look at what is known. Accounts that were not known are listed from now on."""
        view = self._cache.view(self._now())
        self._know_accounts_of_sets(view)
        machines = frozenset(uid_of(machine) for machine in self._cache.stores[MACHINE])
        followed = view.current_since(MACHINE) if view.complete(MACHINE) else None
        cluster = self._hosts.management_cluster
        found = sweep(Observed(view.now, self._hosts.lists(), machines, followed, self._memory, cluster))
        self._memory, self._orphans = found.memory, found.orphans
        for scope, why in found.frozen.items():
            _log.debug("not swept", scope=scope, why=why)
        for scope in found.strange.keys() - self._strange:
            _log.warning("too many unknown hosts", scope=scope, why=found.strange[scope], removes=False)
        self._strange = set(found.strange)
        for one in self._hosts.lists():
            count = sum(orphan.scope == one.scope for orphan in found.orphans)
            metrics.of(metrics.ORPHANS, one.scope).set(count)
        for orphan in found.orphans:
            self._tell(orphan)
        for orphan in found.due if self._removes else ():
            self._hosts.remove(orphan)
        self._reported &= {(orphan.scope, orphan.host.id) for orphan in found.orphans}
        return found

    def orphans(self) -> list[tuple[Orphan, datetime]]:
        """Those of the last sweep, and since when each has looked like one."""
        return [(orphan, self._memory[orphan.scope, orphan.host.id].first) for orphan in self._orphans]

    def _know_accounts_of_sets(self, view: View) -> None:
        """A MachineSet without Machines names the account in which its last one may have left a host behind."""
        if not {MACHINE_SET, MACHINE_CLASS} <= self._cache.stores.keys():
            return
        for machine_set in self._cache.stores[MACHINE_SET]:
            spec: object = machine_set
            for name in ("spec", "template", "spec"):
                spec = spec.get(name) if isinstance(spec, Mapping) else None
            found = resolve(spec, key_of(machine_set).namespace, view) if isinstance(spec, Mapping) else None
            if isinstance(found, Resolved):
                self._hosts.know(found.config, key_of(machine_set).namespace)

    def _tell(self, orphan: Orphan) -> None:
        """Once for each host."""
        identity = (orphan.scope, orphan.host.id)
        if identity not in self._reported:
            self._reported.add(identity)
            removes = self._removes and orphan.ours
            _log.warning("orphan host", scope=orphan.scope, host=orphan.host.id, why=orphan.why, removes=removes)
