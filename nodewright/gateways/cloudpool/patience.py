"""Connections whose first request does not arrive are closed: half-sent heads must not keep others out.

aiohttp (3.14) has no timeout for the head of a request. Between two requests of a connection its keep-alive timeout
holds, half-sent heads included.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

_LOOK_EVERY = 1.0


class Patience:
    """``within``: seconds for the head of a connection's first request."""

    def __init__(self, within: float) -> None:
        self._within = within
        self._heard: set[Any] = set()

    def heard(self, request: web.Request) -> None:
        """Its connection has sent a whole head."""
        self._heard.add(request.protocol)

    async def watch(self, runner: web.AppRunner) -> None:
        """Until it is cancelled."""
        since: dict[Any, float] = {}
        while True:
            await asyncio.sleep(min(_LOOK_EVERY, self._within / 2))
            now = asyncio.get_running_loop().time()
            connections = set(runner.server.connections if runner.server is not None else ())
            self._heard &= connections
            since = {each: since.get(each, now) for each in connections - self._heard}
            for connection, began in since.items():
                if now - began >= self._within:
                    connection.force_close()
