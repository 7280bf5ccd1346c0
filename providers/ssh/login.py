"""Logins: one machine that shows a key that is pinned for it lets one user in by one key, directly or by a tunnel."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import asyncssh

from api.secrets import without_secrets
from providers.base import addresses
from providers.ssh.hostkeys import Judge, Pins, WrongCertificateError
from providers.ssh.keys import Credential
from providers.ssh.trouble import LoginError, Trouble

CONNECT_TIMEOUT = 10.0
"""Seconds for TCP, and again for the handshake."""
KEEPALIVE, KEEPALIVES = 15, 3
"""Seconds between two questions whether the other end is there, and how many may stay without an answer."""


@dataclass(frozen=True, slots=True)
class Login:
    """Where to log in. ``pins``: who it may be; ``secret``: name of the Secret whose key it is, for messages."""

    address: str
    port: int
    user: str
    pins: Pins
    secret: str


async def connect(login: Login, key: Credential, turns: asyncio.Semaphore) -> asyncssh.SSHClientConnection:
    """A host that does not answer takes no turn of those that do. Raises LoginError."""
    judge = Judge(login.pins)
    with _errors_of(login):
        async with asyncio.timeout(CONNECT_TIMEOUT):
            reached = await _reached(login)
        with contextlib.ExitStack() as undo:
            undo.callback(reached.close)
            async with turns, asyncio.timeout(CONNECT_TIMEOUT):
                made = await asyncssh.connect(sock=reached, **_options(login, key, judge))
            undo.pop_all()
            return made


async def connect_through(
    jump: asyncssh.SSHClientConnection, login: Login, key: Credential, turns: asyncio.Semaphore
) -> asyncssh.SSHClientConnection:
    """The same over a tunnel that the other end of ``jump`` opens. A number is judged as for a direct connection; a
    name is looked up there. Raises LoginError.
    """
    judge = Judge(login.pins)
    with _errors_of(login):
        with contextlib.suppress(ValueError):
            addresses.current().check(str(ipaddress.ip_address(login.address)))
        async with turns, asyncio.timeout(CONNECT_TIMEOUT):
            return await asyncssh.connect(login.address, login.port, tunnel=jump, **_options(login, key, judge))


def _options(login: Login, key: Credential, judge: Judge) -> dict[str, Any]:
    """Nothing of this machine's own ~/.ssh is looked at: neither configuration, agent, keys nor known hosts."""
    return {
        "username": login.user, "client_keys": [key], "config": None, "agent_path": None,
        "preferred_auth": "publickey", "keepalive_interval": KEEPALIVE, "keepalive_count_max": KEEPALIVES,
        **judge.options(),
    }  # fmt: skip


@contextlib.contextmanager
def _errors_of(login: Login) -> Iterator[None]:
    """Raises LoginError in place of what asyncssh and the network raise."""
    try:
        yield
    except WrongCertificateError as error:
        raise LoginError(Trouble.WRONG_CERTIFICATE, str(error)) from error
    except asyncssh.HostKeyNotVerifiable as error:
        text = "shows a host key that is not among its hostKeys: it is another machine, or was installed anew"
        raise LoginError(Trouble.WRONG_KEY, text) from error
    except asyncssh.PermissionDenied as error:
        text = f"refuses user {login.user} with the key of Secret {login.secret}"
        raise LoginError(Trouble.REFUSED, text) from error
    except (asyncssh.Error, OSError, TimeoutError) as error:
        raise LoginError(Trouble.UNREACHABLE, f"can't be reached: {error_text(error)}") from error


async def _reached(login: Login) -> socket.socket:
    """Connected to the numeric address that was judged."""
    loop = asyncio.get_running_loop()
    family, kind, protocol, _, address = (await loop.getaddrinfo(login.address, login.port, type=socket.SOCK_STREAM))[0]
    addresses.current().check(str(address[0]))
    made = socket.socket(family, kind, protocol)
    try:
        made.setblocking(False)
        await loop.sock_connect(made, address)
    except BaseException:
        made.close()
        raise
    return made


def error_text(error: Exception) -> str:
    """What an error of the connection says, bounded; its kind where it says nothing."""
    return without_secrets(str(error))[:200] or type(error).__name__
