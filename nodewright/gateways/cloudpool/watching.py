"""The part of a cluster that a gateway decides on, kept current by watches: a decision costs no list."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from types import TracebackType

from controllers.kernel.refs import Key, Kind, Obj
from nodewright.runtime.cache.cache import Cache, CacheView
from nodewright.runtime.cache.part import Part
from nodewright.runtime.cache.reflector import Reflector, ReflectorOptions
from nodewright.runtime.cache.store import Change
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import NoAnswer
from nodewright.runtime.telemetry.observability import Checks


class Watching:
    """An async context manager; it begins to read at once. ``now`` is the wall clock of the decisions.

    ``namespace``: only what is in it; "": everywhere.
    """

    def __init__(
        self,
        client: KubeClient,
        kinds: Iterable[Kind],
        now: Callable[[], datetime],
        options: ReflectorOptions | None = None,
        *,
        namespace: str = "",
    ) -> None:
        self.cache = Cache(kinds)
        self.namespace = namespace
        self.client = client
        self.now = now
        self._options = options
        self._reflectors: tuple[Reflector, ...] = ()
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Watching:
        client = self.client.named("cache")
        source = Part(client, (Key(self.namespace, ""),)) if self.namespace else client
        self._reflectors = tuple(Reflector(source, self.cache, kind, self._options) for kind in self.cache.stores)
        for reflector in self._reflectors:
            self.cache.listen(reflector.kind, self._hear)
            self._tasks.append(asyncio.create_task(reflector.run(), name=f"reflect {reflector.kind.plural}"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.cache.close()

    async def current(self, within: float) -> None:
        """Return once all is read and the server answers. Raises KubeError if that takes longer than ``within`` s."""
        try:
            async with asyncio.timeout(within):
                await self._answering()
                for reflector in self._reflectors:
                    await reflector.synced.wait()
        except TimeoutError:
            raise NoAnswer(f"no answer within {within:g} s", sent=False) from None
        problem = next((why for why in self.problems().values() if why), "")
        if problem:
            raise NoAnswer(problem, sent=False)

    async def _answering(self) -> None:
        """One small read: the caches alone would not tell that the server is gone."""
        while True:
            try:
                await self.client.list_page(next(iter(self.cache.stores)), limit=1)
            except NoAnswer:
                await asyncio.sleep(0.2)
                continue
            return

    def as_of(self) -> datetime:
        """The moment of the data: when the API server was last heard of by the watch that has been silent longest.

        Raises ValueError before everything has been read once.
        """
        silent = max(reflector.staleness for reflector in self._reflectors)
        if math.isinf(silent):
            raise ValueError("not everything has been read yet")
        return self.now() - timedelta(seconds=silent)

    def problems(self) -> Checks:
        """Per plural why it is not current, "" if it is."""
        return {r.kind.plural: "" if r.complete else r.problem or "not read yet" for r in self._reflectors}

    def objects(self, kind: Kind) -> Sequence[Obj]:
        return list(self.cache.stores[kind])

    def view(self) -> CacheView:
        return self.cache.view(self.now())

    async def change(self, within: float) -> None:
        """Until something changes, at most ``within`` seconds."""
        self._changed.clear()  # by who waits: a list of thousands sets it as often
        try:
            async with asyncio.timeout(within):
                await self._changed.wait()
        except TimeoutError:
            return

    def _hear(self, _change: Change, _from_list: bool) -> None:
        self._changed.set()
