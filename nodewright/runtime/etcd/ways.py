"""Two ways to a member's client port: directly, or by its provider's own connection to the host (docs/adr/0072).

    aiohttp -> a pair of sockets -> ``Channel`` -> the host's localhost:2379

TLS goes through all of it, and the certificate is checked for the member's address whichever way is taken.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum, auto
from functools import partial
from typing import Any

from controllers.kernel.etcd import EtcdHost
from providers.base.capabilities import Channel, ReachesPorts
from providers.base.contract import Host, Provider
from providers.base.errors import ErrorClass, ProviderError

OPENING = 3.0
"""Seconds for a channel to open."""
KEPT = 300.0
"""Seconds for which a channel that was needed is taken first."""
SHUT = 20.0
"""Seconds for which one that took too long is not tried again: a read that asks a dead host twice has 30 s in all."""
_PIECE = 64 * 1024
_MOST_TEXT = 300

Locate = Callable[[str, str], "tuple[Provider, Host] | None"]
"""UID and namespace of a Machine -> its host, and the provider of it; None where they are not known."""
Open = Callable[[int], Awaitable[Channel]]


class Way(Enum):
    DIRECT = auto()
    CHANNEL = auto()


def nowhere(_uid: str, _namespace: str) -> None:
    """``Locate`` of a process that has no providers."""


class Ways:
    """Those to the members of one Cluster, and which were open. ``port``: the only one that a channel leads to."""

    def __init__(self, locate: Locate, namespace: str, port: int) -> None:
        self._locate = locate
        self._namespace = namespace
        self._port = port
        self._uids: dict[str, str] = {}
        self._needed: dict[str, float] = {}
        self._shut: dict[str, float] = {}

    def know(self, hosts: Iterable[EtcdHost]) -> None:
        """These are its hosts now."""
        self._uids = {host.address: host.uid for host in hosts if host.uid}
        for times in (self._needed, self._shut):
            for address in times.keys() - self._uids.keys():
                del times[address]

    def opener(self, address: str, port: int | None) -> Open | None:
        """None: the provider has no such way, or it is none of our hosts."""
        uid = self._uids.get(address)
        found = self._locate(uid, self._namespace) if uid and port == self._port else None
        if found is None or not isinstance(found[0], ReachesPorts):
            return None
        return partial(found[0].connect, found[1])

    def order(self, address: str, port: int | None) -> tuple[Way, ...]:
        """In which they are to be tried."""
        at = _time()
        if self.opener(address, port) is None or at - self._shut.get(address, float("-inf")) < SHUT:
            return (Way.DIRECT,)
        needed = at - self._needed.get(address, float("-inf")) < KEPT
        return (Way.CHANNEL, Way.DIRECT) if needed else (Way.DIRECT, Way.CHANNEL)

    def worked(self, address: str, way: Way, *, tried: bool) -> None:
        """``tried``: the other one was shut before. What has been needed stays so until its time is over."""
        if way is Way.DIRECT:
            self._needed.pop(address, None)
        elif tried:
            self._needed[address] = _time()

    def shut(self, address: str) -> None:
        """A channel to it did not come in time."""
        self._shut[address] = _time()


class Tunnels:
    """Sockets for aiohttp's connector that lead into channels. ``close`` at the end. ``problems``: by address, why the
    last channel did not open."""

    def __init__(self, ways: Ways) -> None:
        self._ways = ways
        self._tasks: set[asyncio.Task[None]] = set()
        self.problems: dict[str, str] = {}

    def make(self, info: tuple[Any, ...]) -> socket.socket:
        """A socket factory. Raises OSError if there is no way any more."""
        address, port = str(info[4][0]), int(info[4][1])
        opener = self._ways.opener(address, port)
        if opener is None:
            self.problems[address] = "its host is not known any more"
            raise OSError(self.problems[address])
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        task = asyncio.create_task(self._carry(address, theirs, opener(port)), name=f"channel to etcd at {address}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return _Joined(fileno=ours.detach())

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _carry(self, address: str, theirs: socket.socket, opening: Awaitable[Channel]) -> None:
        try:
            async with asyncio.timeout(OPENING):
                channel = await opening
        except TimeoutError:
            self._ways.shut(address)
            self.problems[address] = f"no connection within {OPENING:.0f} s"
        except Exception as error:
            if isinstance(error, ProviderError) and error.error_class is ErrorClass.TIMEOUT:
                self._ways.shut(address)
            self.problems[address] = _text(error)
        else:
            with contextlib.closing(channel):
                await _joined(theirs, channel)
        finally:
            theirs.close()


class _Joined(socket.socket):
    """One end of a pair of sockets. It is connected already: aiohttp's wish for an address has been granted."""

    def connect(self, _address: Any) -> None:
        """Nothing is left to do."""


async def _joined(theirs: socket.socket, channel: Channel) -> None:
    """Until one of the two ends."""
    reader, writer = await asyncio.open_connection(sock=theirs)

    async def up() -> None:
        while content := await reader.read(_PIECE):
            await channel.write(content)

    async def down() -> None:
        while content := await channel.read():
            writer.write(content)
            await writer.drain()

    both = (asyncio.create_task(up()), asyncio.create_task(down()))
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        writer.close()


def _text(error: Exception) -> str:
    text = error.message if isinstance(error, ProviderError) else type(error).__name__
    return "".join(char if char.isprintable() else "?" for char in text[:_MOST_TEXT])


def _time() -> float:
    return asyncio.get_running_loop().time()
