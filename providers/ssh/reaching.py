"""Ports of hosts, and scripts on them, for whoever may use the kept connections beside the provider itself."""

from __future__ import annotations

import asyncssh

from api.sshhostpool import SSHHost
from providers.base.errors import ErrorClass, ProviderError
from providers.ssh.connections import Connections
from providers.ssh.pool import Pool
from providers.ssh.trouble import HostError

_PIECE = 64 * 1024
_PROHIBITED = asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED


class SSHChannel:
    """``providers.base.capabilities.Channel`` over one channel of a kept connection."""

    def __init__(self, reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        try:
            return await self._reader.read(_PIECE)
        except asyncssh.Error as error:
            raise ConnectionResetError(error.reason) from error

    async def write(self, content: bytes) -> None:
        try:
            self._writer.write(content)
            await self._writer.drain()
        except asyncssh.Error as error:
            raise ConnectionResetError(error.reason) from error

    def close(self) -> None:
        self._writer.close()


async def connect(connections: Connections, pool: Pool, host: SSHHost, port: int) -> SSHChannel:
    """Raises ProviderError."""
    try:
        return SSHChannel(*await connections.open(host, pool.secret, port))
    except HostError as error:
        raise error.as_provider_error() from error
    except asyncssh.ChannelOpenError as error:
        why = "nothing listens there"
        if error.code == _PROHIBITED:
            why = "its sshd allows no forwarding (AllowTcpForwarding, PermitOpen)"
        raise ProviderError(ErrorClass.UNAVAILABLE, f"host {host.name}, port {port}: {why}") from error


async def run(connections: Connections, pool: Pool, host: SSHHost, script: str, within: float) -> str:
    """Raises ProviderError."""
    try:
        return await connections.output(host, pool.secret, script, step="run a script", within=within)
    except HostError as error:
        raise error.as_provider_error() from error
