"""Servers are booted anew by Nova: softly first, hard for the next attempt, and once for each attempt.

An attempt is written into the server's metadata before it is ordered, with the number of reboots that Nova had recorded
of the server until then (``os-instance-actions``): one more says that it was ordered, whatever became of the process
that did. Another key says that it was seen to have ended; lists show no more than that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from providers.base.contract import Host
from providers.base.errors import ErrorClass, ProviderError
from providers.openstack import ownership_tags
from providers.openstack.paths import one_of
from providers.openstack.session import COMPUTE, Requests

SOFT, HARD = "SOFT", "HARD"
"""As Nova calls them. A soft one asks the system to shut down; Nova makes a hard one of it after its own time."""
_TASK = "OS-EXT-STS:task_state"
_AT_ONCE = 8
"""Servers whose end of a reboot is looked for at a time."""

Thing = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Order:
    """``before``: reboots of the server that Nova had recorded."""

    kind: str
    before: int
    attempt: str

    def text(self) -> str:
        return f"{self.kind} {self.before} {self.attempt}"

    @classmethod
    def read(cls, metadata: Mapping[str, Any]) -> _Order | None:
        """None if there is none, or one that others have written."""
        kind, _, rest = str(metadata.get(ownership_tags.REBOOT) or "").partition(" ")
        before, _, attempt = rest.partition(" ")
        if kind not in {SOFT, HARD} or not (before.isascii() and before.isdigit() and len(before) < 10) or not attempt:
            return None
        return cls(kind, int(before), attempt)


class Reboots:
    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._locks: dict[str, asyncio.Lock] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def order(self, host: Host, attempt: str) -> None:
        """Have the server booted anew, once for ``attempt``. Raises ProviderError as ``RebootsHosts.reboot`` does."""
        async with self._locks.setdefault(host.id, asyncio.Lock()):
            server = await self._server(host)
            metadata = server.get("metadata") or {}
            order = _Order.read(metadata)
            if metadata.get(ownership_tags.REBOOTED) == attempt:
                return
            recorded = len(await self._actions(host.id))
            if order is None or order.attempt != attempt:
                # A soft one that has helped is followed by none; after one that has not the power goes.
                order = _Order(SOFT if _runs(server) and order is None else HARD, recorded, attempt)
                await self._note(host.id, {ownership_tags.REBOOT: order.text()})
            if recorded > order.before:
                return
            path = one_of("servers", host.id, "action")
            await self._requests.change(COMPUTE, "POST", path, {"reboot": {"type": order.kind}})

    def forget(self, identity: str) -> None:
        """The server goes."""
        self._locks.pop(identity, None)

    async def settle(self, servers: Iterable[Thing]) -> dict[str, str]:
        """Attempts that have taken place since the last time, by id of the server; they are noted there. One that can't
        be looked at is looked at the next time.
        """
        waiting = [each for each in servers if _is_waited_for(each)]
        found = await asyncio.gather(*(self._ended(each) for each in waiting))
        return {str(server["id"]): attempt for server, attempt in zip(waiting, found, strict=True) if attempt}

    async def _ended(self, server: Thing) -> str:
        order, identity = _Order.read(server.get("metadata") or {}), str(server["id"])
        assert order is not None
        try:
            async with self._turns:
                actions = await self._actions(identity)
                since = len(actions) - order.before
                # Newest first. One that failed has a message, and the next attempt is another one.
                if since < 1 or any(each.get("message") for each in actions[:since]):
                    return ""
                await self._note(identity, {ownership_tags.REBOOTED: order.attempt})
        except ProviderError:
            return ""
        return order.attempt

    async def _server(self, host: Host) -> Thing:
        answer = await self._requests.get(COMPUTE, one_of("servers", host.id))
        server: Thing = answer.get("server") or {}
        if ownership_tags.uid_of_server(server) != host.machine_uid:
            raise ProviderError(ErrorClass.NOT_FOUND, f"there is no server {host.id} of this Machine")
        return server

    async def _actions(self, identity: str) -> list[Thing]:
        """Reboots of the server, the newest first."""
        answer = await self._requests.get(COMPUTE, one_of("servers", identity, "os-instance-actions"))
        listed = answer.get("instanceActions")
        return [each for each in listed or () if isinstance(each, Mapping) and each.get("action") == "reboot"]

    async def _note(self, identity: str, metadata: Mapping[str, str]) -> None:
        path = one_of("servers", identity, "metadata")
        await self._requests.change(COMPUTE, "POST", path, {"metadata": dict(metadata)})


def _is_waited_for(server: Thing) -> bool:
    metadata = server.get("metadata") or {}
    order = _Order.read(metadata)
    if order is None or metadata.get(ownership_tags.REBOOTED) == order.attempt:
        return False
    return _runs(server)


def _runs(server: Thing) -> bool:
    """Nova does nothing with it now."""
    return server.get("status") == "ACTIVE" and not server.get(_TASK)
