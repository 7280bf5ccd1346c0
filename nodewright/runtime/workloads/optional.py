"""A kind that a workload cluster need not serve: as long as it does not, there are no objects of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from controllers.kernel.refs import Kind
from nodewright.runtime.cache.reflector import Source
from nodewright.runtime.kube.client import Page
from nodewright.runtime.kube.errors import ApiError


class Optional:
    """A reflector's source. ``changed`` is called with ``missing`` when it changes; ``look_again``: seconds after which
    it is asked again whether the kind is served by now.
    """

    def __init__(self, source: Source, changed: Callable[[bool], None], look_again: float) -> None:
        self.missing = False
        """Whether the last list was answered that there is no such kind."""
        self._source = source
        self._changed = changed
        self._look_again = look_again

    async def list_page(self, kind: Kind, limit: int = 500, continue_: str = "") -> Page:
        """Nothing where the server says 404, and it says nothing else of a kind that it does not serve. What it
        refuses (403) or can't tell (503) is raised: there may be objects.
        """
        try:
            page = await self._source.list_page(kind, limit, continue_)
        except ApiError as error:
            if not error.not_found or continue_:
                raise
            self._is_missing(True)
            return Page([], "0", "")
        self._is_missing(False)
        return page

    async def watch(self, kind: Kind, resource_version: str, seconds: int = 300) -> AsyncIterator[list[dict[str, Any]]]:
        """As the client's; of a missing kind it ends by 410 after a while, so that it is listed again."""
        if self.missing:
            await asyncio.sleep(self._look_again)
            raise ApiError(410, "Expired", f"{kind.plural} were not served; it is looked again")
        async with aclosing(self._source.watch(kind, resource_version, seconds)) as batches:  # type: ignore[type-var]
            async for batch in batches:
                yield batch

    def _is_missing(self, missing: bool) -> None:
        if missing != self.missing:
            self.missing = missing
            self._changed(missing)
