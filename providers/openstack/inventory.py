"""All servers of the project, and the ports and floating IPs that were made for Machines, in a few paged calls.

Servers are asked for without a filter: with one, Nova leaves out those whose cell is down without a word, and a host
that is missing from a list counts as gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import Context
from dataclasses import dataclass, field, replace
from typing import Any

from providers.base.errors import ErrorClass, ProviderError
from providers.openstack import hosts, ownership_tags
from providers.openstack.pages import all_of
from providers.openstack.session import COMPUTE, NETWORK, Requests

PAGE = 200
"""Servers of a page: for a thousand at once Nova answers four megabytes."""
_IN_ORDER = "sort_key=id&sort_dir=asc"
_PORT_FIELDS = "fields=id&fields=name&fields=description&fields=mac_address"

Thing = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Inventory:
    """By Machine UID; ``parts`` None: not asked for. ``began``: when it was begun, on the loop's clock."""

    began: float
    servers: Mapping[str, tuple[Thing, ...]]
    parts: Parts | None = None
    parts_came_later: bool = False


@dataclass(frozen=True, slots=True)
class Parts:
    """What was made beside servers, by Machine UID."""

    ports: Mapping[str, tuple[Thing, ...]] = field(default_factory=dict)
    floating_ips: Mapping[str, tuple[Thing, ...]] = field(default_factory=dict)

    def of(self, uid: str) -> tuple[Thing, ...]:
        return (*self.ports.get(uid, ()), *self.floating_ips.get(uid, ()))

    def handed_over(self, servers: Mapping[str, tuple[Thing, ...]]) -> Parts:
        """The same, with parts of the former UID of a server that is being handed over (``handover``) as its own."""
        former = {
            str(one["metadata"][ownership_tags.FORMER]): uid
            for uid, several in servers.items()
            for one in several
            if (one.get("metadata") or {}).get(ownership_tags.FORMER)
        }
        return Parts(_joined(self.ports, former), _joined(self.floating_ips, former)) if former else self

    @property
    def uids(self) -> set[str]:
        return {*self.ports, *self.floating_ips}


class Counter:
    """Takes a census for all who wait: one is under way, and at most one more is due after it."""

    def __init__(self, requests: Requests, now: Callable[[], float]) -> None:
        self._requests = requests
        self._now = now
        self._running: tuple[float, bool, asyncio.Task[Inventory]] | None = None
        self._floating_ips = True
        """Whether there may be floating IPs of Machines: a census finds out, and ``expect_floating_ips`` tells it."""
        self._floating_ips_until = now()
        self._known: dict[str, Thing] = {}
        """Servers of Machines as last seen, by their id: what is left of one whose cell is down."""

    async def take(self, with_parts: bool) -> Inventory:
        """A census that is begun after this call. Raises ProviderError."""
        asked = self._now()
        while True:
            running = self._running
            if running is None or running[2].done():
                # It serves many: nothing of the call that happened to be the first may stick to it.
                task = asyncio.get_running_loop().create_task(self._take(with_parts), context=Context())
                task.add_done_callback(_heard)
                self._running = (self._now(), with_parts, task)
                return await asyncio.shield(task)
            began, parts, task = running
            if began > asked and (parts or not with_parts):
                return await asyncio.shield(task)
            await asyncio.wait([task])
            await asyncio.sleep(0)  # others who waited too agree with the first on the next one

    def expect_floating_ips(self, seconds: float = 0.0) -> None:
        """There may be some now, or within ``seconds``: a census that was begun before that does not know of them."""
        self._floating_ips = True
        self._floating_ips_until = max(self._floating_ips_until, self._now() + seconds)

    async def with_parts(self, inventory: Inventory) -> Inventory:
        """The same servers with parts that were asked for later: those of servers made meanwhile look alone."""
        parts = (await self._parts()).handed_over(inventory.servers)
        return replace(inventory, parts=parts, parts_came_later=True)

    async def _take(self, with_parts: bool) -> Inventory:
        began = self._now()
        if with_parts:
            # Parts first: a server that is made in between is seen with its ports or without them, never they alone.
            parts = await self._parts()
            servers = await self._servers()
            return Inventory(began, servers, parts.handed_over(servers))
        return Inventory(began, await self._servers())

    async def _servers(self) -> dict[str, tuple[Thing, ...]]:
        listed = await all_of(self._requests, COMPUTE, "/servers/detail", PAGE)
        seen = {str(one["id"]): self._as_known(one) for one in listed}
        self._known = {identity: one for identity, one in seen.items() if ownership_tags.uid_of_server(one)}
        return _by_uid(list(self._known.values()), ownership_tags.uid_of_server)

    def _as_known(self, server: Thing) -> Thing:
        if not hosts.is_of_a_lost_cell(server):
            return server
        known = self._known.get(str(server["id"]))
        if known is None:
            text = f"a cell of the cloud is down: of server {server['id']} nobody knows whose it is"
            raise ProviderError(ErrorClass.UNAVAILABLE, text)
        return known

    async def _parts(self) -> Parts:
        began = self._now()
        ports = await all_of(self._requests, NETWORK, f"/ports?{_IN_ORDER}&{_PORT_FIELDS}", PAGE)
        floating: dict[str, tuple[Thing, ...]] = {}
        if self._floating_ips:
            listed = await all_of(self._requests, NETWORK, f"/floatingips?{_IN_ORDER}", PAGE)
            floating = _by_uid(listed, ownership_tags.uid_of_part)
            self._floating_ips = bool(floating) or began <= self._floating_ips_until
        return Parts(_by_uid(ports, ownership_tags.uid_of_part), floating)


def _heard(task: asyncio.Task[Inventory]) -> None:
    """Everybody who waited may have gone: an error is nobody's then."""
    if not task.cancelled():
        task.exception()


def _joined(parts: Mapping[str, tuple[Thing, ...]], former: Mapping[str, str]) -> dict[str, tuple[Thing, ...]]:
    """Parts of a former UID are listed after those that have the new one."""
    joined = {uid: found for uid, found in parts.items() if uid not in former}
    for uid, now in former.items():
        if uid in parts:
            joined[now] = (*joined.get(now, ()), *parts[uid])
    return joined


def _by_uid(things: list[Thing], uid_of: Callable[[Thing], str]) -> dict[str, tuple[Thing, ...]]:
    grouped: dict[str, list[Thing]] = {}
    for thing in things:
        uid = uid_of(thing)
        if uid:
            grouped.setdefault(uid, []).append(thing)
    return {uid: tuple(found) for uid, found in grouped.items()}
