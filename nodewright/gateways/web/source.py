"""What one viewer may see of a cluster, kept current by watches with that viewer's own credentials."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import structlog

from api.names import SYSTEM_NAMESPACE
from controllers.kernel.refs import (
    CLUSTER,
    CONTROL_PLANE,
    LEASE,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_DRAIN_RULE,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    NODE,
    Kind,
    Obj,
)
from nodewright.gateways.cloudpool.watching import Watching
from nodewright.reports.fleet.cells import Cells
from nodewright.reports.fleet.showing import as_value
from nodewright.reports.fleet.summary import summarize
from nodewright.reports.tree.serving import ended, live
from nodewright.runtime.cache.store import Change, Store
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import KubeError

_log = structlog.get_logger("nodewright.web")
KINDS = (
    CLUSTER, CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE, MACHINE_CLASS, MACHINE_HEALTH_CHECK,
    MACHINE_DRAIN_RULE,
)  # fmt: skip
SOON = 0.1
"""Seconds for which changes are gathered before viewers hear of them."""
REST = 10.0
"""Times as long as the problems took to find, nobody looks for them again: at most a tenth of a core is spent on it."""


def now() -> datetime:
    return datetime.now(UTC)


class Source:
    """An async context manager: reads from the moment it is entered. ``namespace``: "" is everywhere."""

    def __init__(self, client: KubeClient, namespace: str = "") -> None:
        self.client = client
        self.namespace = namespace
        self.cells = Cells()
        self.problems: dict[str, Any] = {}
        """What ``nodewright status -o json`` says; {} until it was worked out for the first time."""
        self.version = 0
        """Grows with each change."""
        self._changed_at: dict[str, int] = {}
        self._watching = Watching(client, KINDS, now, namespace=namespace)
        self._bell = asyncio.Event()
        self._listed = asyncio.Event()
        """The last change came with a whole list: there is nothing to gather."""
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Source:
        cache = self._watching.cache
        cache.listen(MACHINE, self._count)
        for kind in KINDS:
            cache.listen(kind, self._hear)
        await self._watching.__aenter__()
        cache.stores[NODE] = Store(NODE)  # none is read: trees only lack what Nodes would add
        self._tasks.append(asyncio.create_task(self._keep_problems(), name="problems of the fleet"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._watching.__aexit__(kind, error, trace)

    def objects(self, kind: Kind) -> list[Obj]:
        return list(self._watching.cache.stores[kind])

    def view(self) -> Any:
        return self._watching.view()

    @property
    def unread(self) -> dict[str, str]:
        """By plural, why a kind can't be seen or is not current."""
        return {plural: why for plural, why in self._watching.problems().items() if why}

    async def changes(self, since: int, within: float) -> tuple[int, list[str]]:
        """Once something has changed after version ``since``, or after ``within`` seconds: the version now, and the
        kinds that changed.
        """
        if self.version <= since:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self._rung()
            await self.gather(SOON)
        return self.version, sorted(kind for kind, at in self._changed_at.items() if at > since)

    async def gather(self, seconds: float) -> None:
        """Let changes come for so long, or until a list has brought all there is."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._listed.wait()

    async def leases(self) -> list[Obj] | None:
        """Of the controllers; None: this viewer may not see them."""
        try:
            return list((await self.client.list_page(LEASE, 0, namespace=SYSTEM_NAMESPACE)).items)
        except KubeError:
            return None

    def fleet(self) -> dict[str, Any]:
        """Small whatever the size of the fleet."""
        counts = {kind.plural: len(self._watching.cache.stores[kind]) for kind in KINDS}
        return {**self.cells.value(), "counts": counts, "unread": self.unread, "version": self.version}

    def _count(self, change: Change, _from_list: bool) -> None:
        if change.new is None:
            self.cells.drop(change.key)
        else:
            self.cells.put(change.new)

    def _hear(self, change: Change, from_list: bool) -> None:
        if from_list:
            self._listed.set()
        else:
            self._listed.clear()
        self._ring(change.kind.name)

    def _ring(self, what: str) -> None:
        self.version += 1
        self._changed_at[what] = self.version
        self._bell.set()

    async def _rung(self) -> None:
        """Until the next change. Who waits clears the bell: a list of 10,000 Machines rings it as often."""
        self._bell.clear()
        await self._bell.wait()

    async def _keep_problems(self) -> None:
        """Anew after each change, in a thread of its own: trees of 10,000 Machines take a second."""
        seen = -1
        while True:
            if self.version <= seen:
                await self._rung()
            await asyncio.sleep(SOON)
            seen, started = self.version, time.monotonic()
            try:
                leases = await self.leases()
                found = await asyncio.to_thread(self._find_problems, leases)
            except Exception:  # the page is worth having without them
                _log.exception("problems of the fleet can't be worked out")
                found = {"failed": "the problems of the fleet can't be worked out; see the log of this server"}
            if _but_time(found) != _but_time(self.problems):
                self._ring("Problems")
                seen = self.version if seen == self.version - 1 else seen
            self.problems = found
            await asyncio.sleep(max(0.5, REST * (time.monotonic() - started)))

    def _find_problems(self, leases: list[Obj] | None) -> dict[str, Any]:
        cache = self._watching.cache.copy()
        objects = {kind: list(cache.stores[kind]) for kind in KINDS}
        view = cache.view(now())
        if leases is None:
            return as_value(summarize(view, objects, None))
        return as_value(summarize(view, objects, live(leases, view.now), ended(leases, view.now)))


def _but_time(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in found.items() if name != "at"}
