"""A list in pages, the next of which is under way while one is worked on: server and client work at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Protocol

from controllers.kernel.refs import Kind
from nodewright.runtime.kube.client import Page
from nodewright.runtime.kube.errors import MalformedAnswerError

_MOST_EMPTY_PAGES = 100


class Lists(Protocol):
    """Lists a kind page by page, as ``KubeClient`` does."""

    async def list_page(self, kind: Kind, limit: int = 500, continue_: str = "") -> Page: ...


async def pages(source: Lists, kind: Kind, limit: int) -> AsyncGenerator[Page]:
    """To be closed (``contextlib.aclosing``): a page that nobody will look at is still on its way else.

    Raises KubeError; an ApiError that is ``expired`` says that the snapshot was compacted under a slow list.
    """
    page = await source.list_page(kind, limit)
    empty = 0
    while page.continue_:
        empty += not page.items
        if empty > _MOST_EMPTY_PAGES:
            raise MalformedAnswerError(f"list of {kind.plural}: it goes on and on without items")
        following = asyncio.create_task(source.list_page(kind, limit, page.continue_), name=f"list {kind.plural}")
        try:
            yield page
            page = await following
        finally:
            following.cancel()
            await asyncio.wait((following,))
            _ = following.cancelled() or following.exception()  # else asyncio logs one that nobody waited for
    yield page
