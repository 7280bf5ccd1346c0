"""Which scopes nobody needs any more: whoever may make Machines makes as many of them as there are names of Secrets.

Each costs a list again and again, connections, memory and series of metrics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from nodewright.runtime.hosts.scope import Scope
from nodewright.runtime.telemetry import metrics
from providers.base.registry import ScopeKey

KEPT, KEPT_WITH_HOSTS = 600.0, 86_400.0
"""Seconds from the last question about a scope until it goes. Hosts that it shows may be orphans to be told of."""
_METRICS = (
    metrics.HOST_CALLS,
    metrics.HOST_SECONDS,
    metrics.HOSTS,
    metrics.ORPHANS,
    metrics.HOST_BREAKER,
    metrics.HOST_QUEUE,
)


class LastAsked:
    """When somebody asked about each scope last. One event loop."""

    def __init__(self) -> None:
        self._at: dict[ScopeKey, float] = {}

    def note(self, key: ScopeKey) -> None:
        self._at[key] = _time()

    def is_unused(self, key: ScopeKey, scope: Scope, homes: Collection[ScopeKey]) -> bool:
        """``homes``: the scopes of the hosts of Machines that exist; one of these is looked at again later."""
        shows_hosts = bool(scope.listing.hosts())
        if scope.calls or _time() - self._at.get(key, 0.0) < (KEPT_WITH_HOSTS if shows_hosts else KEPT):
            return False
        if key in homes:
            self.note(key)
            return False
        return True

    def forget(self, key: ScopeKey, scope: Scope) -> None:
        """The scope goes, and with it what the metrics say of it."""
        self._at.pop(key, None)
        for metric in _METRICS:
            metric.remove_by_labels({"scope": scope.name})
        metrics.of.cache_clear()


def _time() -> float:
    return asyncio.get_running_loop().time()
