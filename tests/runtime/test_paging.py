"""Lists in pages: the next page is under way while one is worked on."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from controllers.kernel.refs import MACHINE, Kind
from nodewright.runtime.cache.paging import pages
from nodewright.runtime.kube.client import Page
from nodewright.runtime.kube.errors import MalformedAnswerError, NoAnswer


class Book:
    """A server of numbered pages. ``asked``: which were asked for; a page from ``torn`` on is never answered."""

    def __init__(self, count: int, torn: int = 1000) -> None:
        self.asked: list[int] = []
        self.given_up = asyncio.Event()
        self._count = count
        self._torn = torn

    async def list_page(self, kind: Kind, limit: int = 500, continue_: str = "") -> Page:
        number = int(continue_ or 0)
        self.asked.append(number)
        if number >= self._torn:
            try:
                await asyncio.Event().wait()
            finally:
                self.given_up.set()
        return Page([{"metadata": {"name": str(number)}}], "7", str(number + 1) if number + 1 < self._count else "")


async def _read(book: Book, seen: list[Page]) -> None:
    async with aclosing(pages(book, MACHINE, 500)) as found:
        async for page in found:
            seen.append(page)


async def _fail_at_the_first(book: Book) -> None:
    async with aclosing(pages(book, MACHINE, 500)) as found:
        async for _ in found:
            await asyncio.sleep(0)
            raise KeyError("what the page holds can't be taken in")


async def test_the_next_page_is_asked_for_while_one_is_worked_on() -> None:
    book, seen = Book(3), []
    async with aclosing(pages(book, MACHINE, 500)) as found:
        async for page in found:
            await asyncio.sleep(0)
            seen.append((page.items[0]["metadata"]["name"], list(book.asked)))
    assert seen == [("0", [0, 1]), ("1", [0, 1, 2]), ("2", [0, 1, 2])]


async def test_a_page_that_nobody_will_look_at_is_given_up() -> None:
    book = Book(3, torn=1)
    with pytest.raises(KeyError, match="taken in"):
        await _fail_at_the_first(book)
    assert book.given_up.is_set()


async def test_a_failure_of_the_next_page_is_that_of_the_list() -> None:
    class Failing(Book):
        async def list_page(self, kind: Kind, limit: int = 500, continue_: str = "") -> Page:
            if continue_:
                raise NoAnswer("the connection broke", sent=True)
            return await super().list_page(kind, limit, continue_)

    seen: list[Page] = []
    with pytest.raises(NoAnswer, match="the connection broke"):
        await _read(Failing(2), seen)
    assert len(seen) == 1


async def test_a_list_without_items_comes_to_an_end() -> None:
    class Empty(Book):
        async def list_page(self, kind: Kind, limit: int = 500, continue_: str = "") -> Page:
            page = await super().list_page(kind, limit, continue_)
            return Page([], page.resource_version, page.continue_)

    with pytest.raises(MalformedAnswerError, match="goes on and on without items"):
        await _read(Empty(1000), [])
