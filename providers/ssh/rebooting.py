"""Reboot one host, once for each attempt: recorded in the pool's status, then asked of the host or of its power."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

from api.sshhostpool import SSHHostReboot
from providers.base.contract import Objects, Secrets
from providers.base.errors import ErrorClass, ProviderError
from providers.ssh import power, reboots, remote
from providers.ssh.connections import Connections
from providers.ssh.looks import Seen, status_of
from providers.ssh.pool import Pool, read
from providers.ssh.trouble import HostError, Trouble

_TRIES = 3
"""Of writing down why a power command failed, while others write the status too."""


class Rebooting:
    """One pool."""

    def __init__(self, connections: Connections, secrets: Secrets, objects: Objects) -> None:
        self._connections = connections
        self._secrets = secrets
        self._objects = objects
        self._turns = asyncio.Semaphore(power.AT_ONCE)

    async def reboot(self, pool: Pool, found: Seen, attempt: str) -> None:
        """``found``: a look at it that is a moment old. Raises ProviderError."""
        record = found.reboot
        if record is not None and record.attempt == attempt:
            await self._again(pool, found, record)
            return
        record = reboots.begin(found, attempt)
        if record.by == reboots.BY_SSH:
            await self._recorded(pool, found, record)
            await self._over_ssh(pool, found, record)
            return
        order = await power.order_of(found.host, pool.namespace, self._secrets)
        async with self._turns:
            pool = await self._recorded(pool, found, record)
            problem = await power.run(order)
        if problem:
            await self._failed(pool, found, record.model_copy(update={"problem": problem}))
            raise _power_failed(found, problem)

    async def _again(self, pool: Pool, found: Seen, record: SSHHostReboot) -> None:
        """Whoever wrote the record has run the power command, or was killed: it is not run twice."""
        if record.problem:
            raise _power_failed(found, record.problem)
        if record.by == reboots.BY_SSH and not found.trouble:
            await self._over_ssh(pool, found, record)

    async def _over_ssh(self, pool: Pool, found: Seen, record: SSHHostReboot) -> None:
        script = remote.reboot(record.claim, record.boot_id, record.attempt)
        try:
            answer = await self._connections.run(found.host, pool.secret, script, step="reboot")
        except HostError as error:
            if error.trouble is Trouble.UNREACHABLE:
                return  # it goes down under the connection; a look tells
            raise error.as_provider_error() from error
        if "gone" in answer:
            raise ProviderError(ErrorClass.NOT_FOUND, f"host {found.host.name} was given back meanwhile")

    async def _recorded(self, pool: Pool, found: Seen, record: SSHHostReboot) -> Pool:
        """Raises ProviderError (Conflict) if somebody has written the status meanwhile: nothing is done then."""
        hosts = status_of([replace(found, reboot=record)], {})["hosts"]
        return read(await self._objects.report(pool.object, {"hosts": hosts}))

    async def _failed(self, pool: Pool, found: Seen, record: SSHHostReboot) -> None:
        for _ in range(_TRIES):
            with contextlib.suppress(ProviderError):
                await self._recorded(pool, found, record)
                return
            pool = read(await self._objects.read(pool.object["apiVersion"], pool.object["kind"], pool.name))


def _power_failed(found: Seen, problem: str) -> ProviderError:
    return ProviderError(
        ErrorClass.INTERNAL, f"host {found.host.name} can't be rebooted by its power command: {problem}"
    )
