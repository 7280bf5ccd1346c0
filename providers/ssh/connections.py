"""One kept SSH connection for each host. A host is only ever spoken to if it shows a key that is pinned for it."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import logging
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import asyncssh

from api.secrets import without_secrets
from api.sshhostpool import SSHHost
from providers.base import addresses
from providers.base.contract import Secrets
from providers.base.errors import ErrorClass, ProviderError

KEY_NAME = "ssh-privatekey"
"""Key of a Secret of type kubernetes.io/ssh-auth."""
HANDSHAKES_AT_ONCE = 16
"""An SSH handshake costs about 30 ms of CPU on each side; more at a time make all of them slow."""
SESSIONS_AT_ONCE = 4
"""Commands on one connection; sshd allows 10 (MaxSessions)."""
CONNECT_TIMEOUT, LOOK_TIMEOUT, RUN_TIMEOUT = 10.0, 10.0, 45.0
"""Seconds. ``RUN_TIMEOUT`` is longer than the 20 s for which a command waits for the lock of the host. A look takes
2 * (10 + 10 + 10) s at the very most, and only if it is cut off once: a list has 60 s.
"""
_LONGEST_ANSWER = 65_536
_BUSY = 75
"""Exit status of a command that did not get the lock (sysexits: EX_TEMPFAIL)."""

Answer = Mapping[str, str]

asyncssh.set_log_level(logging.WARNING)  # it tells of every command


class Trouble(StrEnum):
    """Why there is no answer of a host."""

    UNREACHABLE = "unreachable"
    WRONG_KEY = "wrong key"
    REFUSED = "refused"
    FAILED = "failed"
    """The command itself failed on the host."""


_REMEDIES = {
    Trouble.UNREACHABLE: "is it on, is its sshd running, and may you reach it from here?",
    Trouble.WRONG_KEY: "if it was installed anew, write its new key into hostKeys of the pool",
    Trouble.REFUSED: "put the public half of the Secret's key into its authorized_keys",
    Trouble.FAILED: "log in by hand and try it; a user that is not root needs sudo without a password",
}


class HostError(Exception):
    """No answer. The message names host and address, and holds nothing that was sent."""

    def __init__(self, trouble: Trouble, host: SSHHost, why: str) -> None:
        super().__init__(f"host {host.name} ({host.address}:{host.port}) {why}")
        self.trouble = trouble

    @property
    def remedy(self) -> str:
        """What a person does about it."""
        return _REMEDIES[self.trouble]

    def as_provider_error(self) -> ProviderError:
        """No class of these stops the calls for other hosts of the pool."""
        wrong = {Trouble.WRONG_KEY: ErrorClass.CONFLICT, Trouble.REFUSED: ErrorClass.CONFLICT}
        failed = ErrorClass.INTERNAL if self.trouble is Trouble.FAILED else ErrorClass.TIMEOUT
        return ProviderError(wrong.get(self.trouble, failed), str(self))


@dataclass(slots=True)
class _Kept:
    host: SSHHost
    secret: str
    connection: asyncssh.SSHClientConnection | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    sessions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SESSIONS_AT_ONCE))


class Connections:
    """For one event loop; ``close`` ends them all."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._kept: dict[str, _Kept] = {}
        self._turns = asyncio.Semaphore(HANDSHAKES_AT_ONCE)

    async def run(self, host: SSHHost, secret: str, script: str, within: float = RUN_TIMEOUT) -> Answer:
        """Run a script of ``remote`` as root, ``within`` seconds. It may run twice: a connection that was cut
        meanwhile is made anew once.

        Raises HostError; ProviderError where the key can't be read.
        """
        for last in (False, True):
            connection = await self._connected(host, secret)
            try:
                async with self._kept[host.name].sessions, asyncio.timeout(within):
                    return await self._run(host, connection, script)
            except (asyncssh.Error, OSError, TimeoutError) as error:
                connection.abort()
                if last or isinstance(error, TimeoutError):
                    raise HostError(Trouble.UNREACHABLE, host, f"does not answer: {_error_text(error)}") from error
        raise AssertionError("unreachable")

    def keep_only(self, names: set[str]) -> None:
        """Close the connections to hosts that are no longer in the pool."""
        for name in self._kept.keys() - names:
            gone = self._kept.pop(name)
            if gone.connection is not None:
                gone.connection.abort()

    async def close(self) -> None:
        found = [kept.connection for kept in self._kept.values() if kept.connection is not None]
        self._kept.clear()
        for connection in found:
            connection.abort()
        for connection in found:
            await connection.wait_closed()

    async def _connected(self, host: SSHHost, secret: str) -> asyncssh.SSHClientConnection:
        kept = self._kept.setdefault(host.name, _Kept(host, secret))
        async with kept.lock:
            if kept.connection is not None and (kept.host, kept.secret) != (host, secret):
                kept.connection.abort()
            elif kept.connection is not None and not kept.connection.is_closed():
                return kept.connection
            kept.host, kept.secret, kept.connection = host, secret, None
            key = await self._key(secret)
            kept.connection = await _connect(host, key, secret, self._turns)
            return kept.connection

    async def _key(self, secret: str) -> asyncssh.SSHKey:
        data = await self._secrets.read(secret)
        if KEY_NAME not in data:
            text = f"Secret {secret} has no key {KEY_NAME}: it has to be of the type kubernetes.io/ssh-auth"
            raise ProviderError(ErrorClass.INVALID_CONFIGURATION, text)
        try:
            return asyncssh.import_private_key(data[KEY_NAME])
        except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
            text = f"{KEY_NAME} of Secret {secret} is no private key without a passphrase"
            raise ProviderError(ErrorClass.INVALID_CONFIGURATION, text) from error

    @staticmethod
    async def _run(host: SSHHost, connection: asyncssh.SSHClientConnection, script: str) -> Answer:
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
            raise HostError(Trouble.FAILED, host, "is busy with another change")
        if process.exit_status is None:
            raise asyncssh.ConnectionLost("the command was cut off")
        if process.exit_status != 0:
            message = without_secrets(err[-300:].strip()) or f"exit status {process.exit_status}"
            raise HostError(Trouble.FAILED, host, f"can't do what is asked, as {host.user}: {message}")
        return _answer(out)


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


async def _connect(
    host: SSHHost, key: asyncssh.SSHKey, secret: str, turns: asyncio.Semaphore
) -> asyncssh.SSHClientConnection:
    """Nothing of this machine's own ~/.ssh is looked at: neither configuration, agent, keys nor known hosts.

    A host that does not answer takes no turn of those that do.
    """
    trusted = [_host_key(host, text) for text in host.host_keys]
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            connected = await _reached(host)
        with contextlib.ExitStack() as undo:
            undo.callback(connected.close)
            async with turns, asyncio.timeout(CONNECT_TIMEOUT):
                made = await asyncssh.connect(
                    sock=connected, username=host.user, client_keys=[key], known_hosts=(trusted, [], []), config=None,
                    agent_path=None, preferred_auth="publickey", keepalive_interval=15, keepalive_count_max=3,
                )  # fmt: skip
            undo.pop_all()
            return made
    except asyncssh.HostKeyNotVerifiable as error:
        text = "shows a host key that is not among its hostKeys: it is another machine, or was installed anew"
        raise HostError(Trouble.WRONG_KEY, host, text) from error
    except asyncssh.PermissionDenied as error:
        text = f"refuses user {host.user} with the key of Secret {secret}"
        raise HostError(Trouble.REFUSED, host, text) from error
    except (asyncssh.Error, OSError, TimeoutError) as error:
        raise HostError(Trouble.UNREACHABLE, host, f"can't be reached: {_error_text(error)}") from error


def _host_key(host: SSHHost, text: str) -> asyncssh.SSHKey:
    try:
        return asyncssh.import_public_key(text)
    except asyncssh.KeyImportError as error:
        raise HostError(Trouble.WRONG_KEY, host, "has an entry in hostKeys that is no public key") from error


async def _reached(host: SSHHost) -> socket.socket:
    """Connected to the numeric address that was judged."""
    loop = asyncio.get_running_loop()
    family, kind, protocol, _, address = (await loop.getaddrinfo(host.address, host.port, type=socket.SOCK_STREAM))[0]
    addresses.current().check(str(address[0]))
    made = socket.socket(family, kind, protocol)
    try:
        made.setblocking(False)
        await loop.sock_connect(made, address)
    except BaseException:
        made.close()
        raise
    return made


def _answer(text: str) -> dict[str, str]:
    answer = {}
    for line in text.splitlines():
        word, _, data = line.partition(" ")
        try:
            answer[word] = base64.b64decode(data, validate=True).decode(errors="replace").strip()
        except (binascii.Error, ValueError):
            continue  # what a login shell of the host prints of its own
    return answer


def _error_text(error: Exception) -> str:
    return without_secrets(str(error))[:200] or type(error).__name__
