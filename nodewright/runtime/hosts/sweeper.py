"""Look for hosts that no Machine knows, now and then, and tell of them or remove them; see ``controllers.orphans``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

import structlog

from controllers.kernel.refs import MACHINE, uid_of
from controllers.orphans.sweep import Memory, Observed, Orphan, Sweep, sweep
from nodewright.runtime import metrics
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.hosts.directory import HostDirectory

_log = structlog.get_logger("nodewright.orphans")

PAUSE = 60.0
"""Seconds between sweeps."""


class Sweeper:
    """``removes``: remove proven orphans; else they are only told. ``run`` until cancelled."""

    def __init__(self, cache: Cache, hosts: HostDirectory, now: Callable[[], datetime], removes: bool) -> None:
        self._cache = cache
        self._hosts = hosts
        self._now = now
        self._removes = removes
        self._memory: Memory = {}
        self._told: set[tuple[str, str]] = set()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(PAUSE)
            try:
                self.sweep()
            except Exception:
                _log.exception("sweep failed")

    def sweep(self) -> Sweep:
        """One look at what is known; lists nothing by itself."""
        view = self._cache.view(self._now())
        machines = frozenset(uid_of(machine) for machine in self._cache.stores[MACHINE])
        followed = view.current_since(MACHINE) if view.complete(MACHINE) else None
        found = sweep(Observed(view.now, self._hosts.lists(), machines, followed, self._memory))
        self._memory = found.memory
        for scope, why in found.frozen.items():
            _log.debug("not swept", scope=scope, why=why)
        for one in self._hosts.lists():
            count = sum(orphan.scope == one.scope for orphan in found.orphans)
            metrics.of(metrics.ORPHANS, one.scope).set(count)
        for orphan in found.orphans:
            self._tell(orphan)
        for orphan in found.due if self._removes else ():
            self._hosts.remove(orphan)
        self._told &= {(orphan.scope, orphan.host.id) for orphan in found.orphans}
        return found

    def _tell(self, orphan: Orphan) -> None:
        """Once for each host."""
        identity = (orphan.scope, orphan.host.id)
        if identity not in self._told:
            self._told.add(identity)
            _log.warning("orphan host", scope=orphan.scope, host=orphan.host.id, why=orphan.why, removes=self._removes)
