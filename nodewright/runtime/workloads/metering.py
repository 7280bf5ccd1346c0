"""What one workload cluster may cost in memory, counted over all kinds that are read there.

Counted is what was read, before slimming: an upper bound of what is kept. Objects that a watch brings are counted
beside those of the last list, until the next one.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from controllers.kernel.refs import Key, Kind, key_of
from nodewright.runtime.cache.reflector import Source
from nodewright.runtime.kube.client import Page
from nodewright.runtime.kube.errors import OverBudgetError


class Meter:
    """``budget`` in bytes."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._held: dict[Kind, int] = {}

    def hold(self, kind: Kind, held: int) -> None:
        """Raises OverBudgetError if all kinds together are too much; ``held`` counts all the same."""
        self._held[kind] = held
        if sum(self._held.values()) > self.budget:
            text = f"{kind.plural}: the cluster's objects take more than {self.budget >> 20} MiB of memory"
            raise OverBudgetError(f"{text}; see --workload-memory")


class Metered:
    """A reflector's source whose objects are counted."""

    def __init__(self, source: Source, meter: Meter) -> None:
        self._source = source
        self._meter = meter
        self._listed = 0
        self._changed: dict[Key, int] = {}
        """What a watch has brought since the list."""
        self._watched = 0

    async def list_page(self, kind: Kind, limit: int = 500, continue_: str = "") -> Page:
        """Raises OverBudgetError too."""
        page = await self._source.list_page(kind, limit, continue_)
        if not continue_:
            self._listed = self._watched = 0
            self._changed.clear()
        self._listed += page.weight
        self._meter.hold(kind, self._listed)
        return page

    async def watch(self, kind: Kind, resource_version: str, seconds: int = 300) -> AsyncIterator[list[dict[str, Any]]]:
        """Raises OverBudgetError too."""
        async with contextlib.aclosing(self._source.watch(kind, resource_version, seconds)) as batches:  # type: ignore[type-var]
            async for batch in batches:
                for event in batch:
                    self._count(event)
                if batch:
                    self._meter.hold(kind, self._listed + self._watched)
                yield batch

    def _count(self, event: Mapping[str, Any]) -> None:
        if event["type"] not in {"ADDED", "MODIFIED", "DELETED"}:
            return
        key = key_of(event["object"])
        self._watched -= self._changed.pop(key, 0)
        if event["type"] != "DELETED":
            self._changed[key] = event.get("weight", 0)
            self._watched += self._changed[key]
