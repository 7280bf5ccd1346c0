"""The host key that a machine shows, read once for a person to look at."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from nodewright.cli.exits import CliError
from providers.base.extras import install_command

_SECONDS = 10.0
_ALGORITHMS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256")
"""The best first: one key is read, as one is enough."""


@dataclass(frozen=True, slots=True)
class HostKey:
    """``text``: as in ``hostKeys`` of a pool; ``fingerprint``: as ssh-keygen -l prints it."""

    algorithm: str
    text: str
    fingerprint: str


async def host_key(address: str, port: int) -> HostKey:
    """Raises CliError if there is no answer in ten seconds, or no SSH."""
    try:
        import asyncssh  # noqa: PLC0415  (an extra, and 0.3 s to import)
    except ModuleNotFoundError as error:
        raise CliError(f"{error.name} is missing", install_command("ssh")) from error
    try:
        async with asyncio.timeout(_SECONDS):
            key = await asyncssh.get_server_host_key(address, port, server_host_key_algs=list(_ALGORITHMS), config=None)
    except (asyncssh.Error, OSError, TimeoutError) as error:
        message = " ".join(str(error).split())[:200] or type(error).__name__
        raise CliError(
            f"{address}:{port} shows no host key: {message}", "Is its sshd running, and reachable from here?"
        ) from error
    if key is None:
        raise CliError(f"{address}:{port} shows no host key")
    words = key.export_public_key().decode().split()
    return HostKey(words[0], " ".join(words[:2]), key.get_fingerprint())
