"""One kept SSH connection for each host. A host is only ever spoken to if it shows a key that is pinned for it."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import asyncssh

from api.secrets import without_secrets
from api.sshhostpool import SSHHost
from providers.base.contract import Secrets
from providers.ssh.hostkeys import pins_of
from providers.ssh.keys import Credential, Keys
from providers.ssh.login import Login, connect, connect_through, error_text
from providers.ssh.trouble import HostError, LoginError, Trouble, jump_name

HANDSHAKES_AT_ONCE = 16
"""An SSH handshake costs about 30 ms of CPU on each side; more at a time make all of them slow."""
SESSIONS_AT_ONCE = 4
"""Commands on one connection; sshd allows 10 (MaxSessions)."""
TUNNELS_AT_ONCE = 64
"""Handshakes over proxy jumps: a host behind one that is not there holds its turn until the time is over."""
LOOK_TIMEOUT, RUN_TIMEOUT = 10.0, 45.0
"""Seconds. ``RUN_TIMEOUT`` is longer than the 20 s for which a command waits for the lock of the host. A look takes
2 * (10 + 10 + 10) s at the very most (TCP, handshake, command), and only if it is cut off once: a list has 60 s.
"""
_LONGEST_ANSWER = 65_536
_BUSY = 75
"""Exit status of a command that did not get the lock (sysexits: EX_TEMPFAIL)."""

Answer = Mapping[str, str]
_Streams = tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]
_Way = tuple[Login, ...]
"""Proxy jumps on the way to a host, the nearest one first."""

asyncssh.set_log_level(logging.WARNING)  # it tells of every command


@dataclass(slots=True)
class _Kept:
    host: SSHHost
    secret: str
    connection: asyncssh.SSHClientConnection | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    sessions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SESSIONS_AT_ONCE))


class Connections:
    """For one event loop; ``close`` ends them all. Hosts behind the same proxy jump share one connection to it."""

    def __init__(self, secrets: Secrets) -> None:
        self._keys = Keys(secrets)
        self._kept: dict[str, _Kept] = {}
        self._jumps: dict[_Way, asyncio.Task[asyncssh.SSHClientConnection]] = {}
        self._turns = asyncio.Semaphore(HANDSHAKES_AT_ONCE)
        self._tunnels = asyncio.Semaphore(TUNNELS_AT_ONCE)

    async def run(
        self, host: SSHHost, secret: str, script: str, *, step: str = "look", within: float = RUN_TIMEOUT
    ) -> Answer:
        """The answer of a script of ``remote``; else as ``output``."""
        return _answer(await self.output(host, secret, script, step=step, within=within))

    async def output(self, host: SSHHost, secret: str, script: str, *, step: str, within: float) -> str:
        """What a script prints that runs as root, ``within`` seconds. It may run twice: a connection that was cut
        meanwhile is made anew once. ``step``: what the script does, for messages.

        Raises HostError; ProviderError where the key can't be read.
        """
        for last in (False, True):
            connection = await self._ready(host, secret, step)
            try:
                async with self._kept[host.name].sessions, asyncio.timeout(within):
                    return await self._run(host, connection, script, step)
            except (asyncssh.Error, OSError, TimeoutError) as error:
                connection.abort()
                if last or isinstance(error, TimeoutError):
                    text = f"does not answer at step {step}: {error_text(error)}"
                    raise HostError(Trouble.UNREACHABLE, host, text) from error
        raise AssertionError("unreachable")

    async def open(self, host: SSHHost, secret: str, port: int) -> _Streams:
        """A stream to a port at the host's own localhost. Raises HostError; asyncssh.ChannelOpenError if the host
        refuses it or nothing listens there.
        """
        for last in (False, True):
            connection = await self._ready(host, secret, "connect")
            try:
                async with asyncio.timeout(LOOK_TIMEOUT):
                    return await connection.open_connection("localhost", port)
            except asyncssh.ChannelOpenError:
                if last or not connection.is_closed():
                    raise
            except (asyncssh.Error, OSError, TimeoutError) as error:
                connection.abort()
                if last or isinstance(error, TimeoutError):
                    text = f"opens no connection to its port {port}: {error_text(error)}"
                    raise HostError(Trouble.UNREACHABLE, host, text) from error
        raise AssertionError("unreachable")

    async def _ready(self, host: SSHHost, secret: str, step: str) -> asyncssh.SSHClientConnection:
        """Raises HostError."""
        try:
            return await self._connected(host, secret)
        except LoginError as error:
            raise HostError(error.trouble, host, f"{error} (step {step})") from error

    def keep_only(self, hosts: Iterable[SSHHost]) -> None:
        """Close the connections to hosts that are no longer in the pool, and to jumps that lead to none."""
        left = {host.name: host for host in hosts}
        for name in self._kept.keys() - left.keys():
            gone = self._kept.pop(name)
            if gone.connection is not None:
                gone.connection.abort()
        wanted = {(jump.address, jump.port) for each in left.values() for jump in each.way}
        for way in [each for each in self._jumps if any((one.address, one.port) not in wanted for one in each)]:
            _end(self._jumps.pop(way))

    async def close(self) -> None:
        found = [kept.connection for kept in self._kept.values() if kept.connection is not None]
        self._kept.clear()
        for connection in found:
            connection.abort()
        for connection in found:
            await connection.wait_closed()
        jumps = list(self._jumps.values())
        self._jumps.clear()
        for jump in jumps:
            _end(jump)
        await asyncio.gather(*jumps, return_exceptions=True)

    async def _connected(self, host: SSHHost, secret: str) -> asyncssh.SSHClientConnection:
        kept = self._kept.setdefault(host.name, _Kept(host, secret))
        async with kept.lock:
            if kept.connection is not None and (kept.host, kept.secret) != (host, secret):
                kept.connection.abort()
            elif kept.connection is not None and not kept.connection.is_closed():
                return kept.connection
            kept.host, kept.secret, kept.connection = host, secret, None
            key = await self._keys.read(secret)
            login = Login(host.address, host.port, host.user, pins_of(host), secret)
            way = tuple(
                Login(jump.address, jump.port, jump.user, pins_of(jump), jump.secret_name or secret)
                for jump in host.way
            )
            kept.connection = await self._logged_in(login, key, way)
            return kept.connection

    async def _logged_in(self, login: Login, key: Credential, way: _Way) -> asyncssh.SSHClientConnection:
        """Directly, or through the last one of ``way``."""
        if not way:
            return await connect(login, key, self._turns)
        jump = await self._jump(way)
        try:
            return await connect_through(jump, login, key, self._tunnels)
        except LoginError as error:
            raise LoginError(error.trouble, f"{error}, by way of {jump_name(way[-1].address, way[-1].port)}") from error

    async def _jump(self, way: _Way) -> asyncssh.SSHClientConnection:
        """The kept connection to the last one of ``way``. Those that come meanwhile wait for the same attempt."""
        task = self._jumps.get(way)
        if task is None or _over(task):
            task = self._jumps[way] = asyncio.create_task(self._to_jump(way), name=f"ssh jump {way[-1].address}")
            task.add_done_callback(_over)  # it may fail after all that waited have gone
        try:
            return await asyncio.shield(task)
        except LoginError as error:
            raise LoginError(
                error.trouble, f"can't be asked, for {jump_name(way[-1].address, way[-1].port)} {error}"
            ) from error

    async def _to_jump(self, way: _Way) -> asyncssh.SSHClientConnection:
        return await self._logged_in(way[-1], await self._keys.read(way[-1].secret), way[:-1])

    @staticmethod
    async def _run(host: SSHHost, connection: asyncssh.SSHClientConnection, script: str, step: str) -> str:
        command = "/bin/sh -s" if host.user == "root" else "sudo -n /bin/sh -s"
        async with connection.create_process(command, encoding="utf-8", errors="replace") as process:
            process.stdin.write(script)
            process.stdin.write_eof()
            try:
                out, err = await asyncio.gather(_read(process.stdout), _read(process.stderr))
            except _TooLongError as error:
                connection.abort()
                text = f"answers with more than {_LONGEST_ANSWER} characters: look what its shell prints"
                raise HostError(Trouble.FAILED, host, text) from error
            await process.wait_closed()
        if process.exit_status == _BUSY:
            raise HostError(Trouble.FAILED, host, f"is busy with another change (step {step})")
        if process.exit_status is None:
            raise asyncssh.ConnectionLost("the command was cut off")
        if process.exit_status != 0:
            message = " ".join(without_secrets(err[-300:]).split()) or f"exit status {process.exit_status}"
            if host.user != "root" and message.startswith("sudo:"):
                text = f"lets user {host.user} in, who may not do `sudo -n /bin/sh` without a password"
                raise HostError(Trouble.NO_ROOT, host, f"{text} (step {step}): {message}")
            raise HostError(Trouble.FAILED, host, f"can't do step {step}, as {host.user}: {message}")
        return out


class _TooLongError(Exception):
    """More output than any answer has."""


async def _read(reader: asyncssh.SSHReader[str]) -> str:
    parts, size = [], 0
    while part := await reader.read(8192):
        parts.append(part)
        size += len(part)
        if size > _LONGEST_ANSWER:
            raise _TooLongError
    return "".join(parts)


def _over(task: asyncio.Task[asyncssh.SSHClientConnection]) -> bool:
    """It failed, or its connection has ended."""
    return task.done() and (task.cancelled() or task.exception() is not None or task.result().is_closed())


def _end(task: asyncio.Task[asyncssh.SSHClientConnection]) -> None:
    if not task.done():
        task.cancel()
    elif not task.cancelled() and task.exception() is None:
        task.result().abort()


def _answer(text: str) -> dict[str, str]:
    answer = {}
    for line in text.splitlines():
        word, _, data = line.partition(" ")
        try:
            answer[word] = base64.b64decode(data, validate=True).decode(errors="replace").strip()
        except (binascii.Error, ValueError):
            continue  # what a login shell of the host prints of its own
    return answer
