"""Who may look: a one-time token of this process, or the viewer's own token for the cluster.

On loopback the program prints an address with a token behind ``#``, which browsers send to no server. The page trades
it, once, for a cookie that scripts can't read. In a cluster a viewer gives a bearer token of Kubernetes: everything is
read with that token, so the API server decides what is seen.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from nodewright.gateways.web.source import Source

IDLE_SECONDS = 1800.0
"""After so long without a request, a viewer has to log in again."""
LONGEST_TOKEN = 16_384
Opener = Callable[[AsyncExitStack, str, str], Awaitable[Source]]
"""Reads a cluster with a bearer token ("": the program's own credentials) in a namespace ("": all).

Raises KubeError.
"""


class LoginError(Exception):
    """Not let in; the message says why, and is meant for who asked."""


@dataclass(slots=True)
class Viewer:
    """One login. ``seen``: of ``time.monotonic``. ``looking``: requests and streams that are open."""

    source: Source
    stack: AsyncExitStack = field(repr=False)
    seen: float
    looking: int = 0


class Access:
    """All viewers of a server. ``one_time`` None: viewers bring tokens of their own."""

    def __init__(self, opener: Opener, one_time: str | None, most_viewers: int) -> None:
        self._opener = opener
        self._one_time = one_time
        self._most = most_viewers
        self._viewers: dict[str, Viewer] = {}
        self._shared: tuple[Source, AsyncExitStack] | None = None
        self._opening = asyncio.Lock()
        self.own_tokens = one_time is None

    async def login(self, token: str, namespace: str = "") -> str:
        """The value of the cookie. Raises LoginError, and KubeError if the cluster does not answer."""
        if not token or len(token) > LONGEST_TOKEN or not token.isascii() or not token.isprintable():
            raise LoginError("no token was given, or it is none")
        await self.forget_idle()
        if len(self._viewers) >= self._most:
            raise LoginError(f"{self._most} viewers are here already; try again later")
        stack = AsyncExitStack()
        if self._one_time is not None:
            self._take(token)
        source = await (self._own(stack, token, namespace) if self.own_tokens else self._same())
        name = secrets.token_urlsafe(32)
        self._viewers[name] = Viewer(source, stack, time.monotonic())
        return name

    async def read_ahead(self) -> None:
        """Begin to read before the first login, where all see the same. Raises KubeError."""
        if not self.own_tokens:
            await self._same()

    def viewer(self, cookie: str) -> Viewer | None:
        found = self._viewers.get(cookie)
        if found is not None:
            found.seen = time.monotonic()
        return found

    async def logout(self, cookie: str) -> None:
        found = self._viewers.pop(cookie, None)
        if found is not None:
            await found.stack.aclose()
        if not self._viewers:
            await self._stop_reading()

    async def forget_idle(self) -> None:
        since = time.monotonic() - IDLE_SECONDS
        for name, viewer in list(self._viewers.items()):
            if viewer.seen < since and not viewer.looking:
                await self.logout(name)

    async def close(self) -> None:
        for name in list(self._viewers):
            await self.logout(name)
        await self._stop_reading()

    def _take(self, token: str) -> None:
        """The one-time token: good once, and a wrong one does not use it up."""
        if not hmac.compare_digest(self._one_time or "", token) or not self._one_time:
            raise LoginError("this link was used already or is of an earlier start; `nodewright ui` prints a new one")
        self._one_time = ""

    async def _own(self, stack: AsyncExitStack, token: str, namespace: str) -> Source:
        try:
            return await self._opener(stack, token, namespace)
        except BaseException:
            await stack.aclose()
            raise

    async def _same(self) -> Source:
        """With the program's own credentials all viewers see the same, so it is read once, from the moment that it is
        first asked for.
        """
        async with self._opening:
            if self._shared is None:
                stack = AsyncExitStack()
                self._shared = await self._own(stack, "", ""), stack
            return self._shared[0]

    async def _stop_reading(self) -> None:
        shared, self._shared = self._shared, None
        if shared is not None:
            await shared[1].aclose()
