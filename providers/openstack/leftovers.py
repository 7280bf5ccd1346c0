"""What is left of servers, and what has to go: ports without a server, servers that found no place, second ones.

Nova's users may not delete the port of a server that still exists, so ports go after it; until then the Machine's host
is shown as Deleting, which is what keeps the Machine's finalizer. Each list finishes what the last one could not.

Ports of a server that never came (a request failed, the program died) are shown as a host that is Unfinished: the next
creation goes on with them, or they go with their Machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from providers.base.contract import Host, HostState
from providers.base.errors import ErrorClass, ProviderError
from providers.openstack import hosts
from providers.openstack.inventory import Inventory
from providers.openstack.paths import one_of
from providers.openstack.requests import is_of_subport
from providers.openstack.session import COMPUTE, NETWORK, Requests
from providers.openstack.zones import Zones

ABANDONED = 900.0
"""Seconds after which ports without a server count as left behind, whoever made them: no back-off is longer."""
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 600.0
"""Between attempts to find a place for a server, doubling."""
MOST_AT_ONCE = 64
"""Deletions of one list."""

_UNBORN, _LEFTOVERS = "creating-", "remains-"

Thing = Mapping[str, Any]


def is_server(host: Host) -> bool:
    """Whether a host that was shown is a server, and not what comes before or after one."""
    return not host.id.startswith((_UNBORN, _LEFTOVERS))


@dataclass(slots=True)
class _NoPlace:
    """There was no place, or no quota, for the server of a Machine."""

    error_class: ErrorClass
    text: str
    times: int
    reported: bool = False


class Leftovers:
    def __init__(self, requests: Requests, zones: Zones, now: Callable[[], float]) -> None:
        self._requests = requests
        self._zones = zones
        self._now = now
        self._expected: set[str] = set()
        """UIDs whose server goes, or will never be: their ports go as soon as they are alone."""
        self._watched: dict[str, float] = {}
        """UIDs that may have ports and no server, and since when a list shows whether they have."""
        self._no_place: dict[str, _NoPlace] = {}
        self._creating: set[str] = set()
        self._tried: set[str] = set()
        """UIDs whose creation failed here: what was asked for them is known."""
        self._looked = False
        self._had: set[str] = set()
        """UIDs that had a server in the last list."""

    @property
    def wants_parts(self) -> bool:
        """Whether a list has to ask for ports too. At rest it has not."""
        return not self._looked or bool(self._watched)

    def misses(self, inventory: Inventory) -> bool:
        """Whether a server is gone whose ports go now."""
        return bool(self._expected - set(inventory.servers))

    def begin(self, uid: str) -> None:
        """A server is about to be made for ``uid``: nothing of it is left over until ``end``."""
        self._creating.add(uid)
        self._expected.discard(uid)

    def end(self, uid: str) -> None:
        self._creating.discard(uid)

    def expect(self, uid: str) -> None:
        """The server of ``uid`` goes or will not come: what was made for it goes too."""
        self._expected.add(uid)

    def found_at(self, uid: str, inventory: Inventory) -> float | None:
        """Since when there are parts of ``uid`` that another program made; None: there are none, or they are ours."""
        if uid in self._tried or inventory.parts is None or uid not in inventory.parts.uids:
            return None
        return self._watched.setdefault(uid, inventory.began)

    def watch(self, uid: str, seconds: float = 0.0) -> None:
        """Something may be made for ``uid`` within ``seconds`` of which nobody will hear."""
        self._tried.add(uid)
        self._watched[uid] = self._now() + seconds

    def forget(self, uid: str) -> None:
        self._no_place.pop(uid, None)

    def raise_if_no_place(self, uid: str) -> None:
        """Raises ProviderError once after each time that there was no place for the Machine's server."""
        known = self._no_place.get(uid)
        if known is not None and not known.reported:
            known.reported = True
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (known.times - 1))
            raise ProviderError(known.error_class, known.text, pause)

    async def settle(self, inventory: Inventory) -> tuple[Host, ...]:
        """The hosts that a census shows, after the deletions were requested."""
        self._watch_vanished(set(inventory.servers))
        shown: list[Host] = []
        going: list[Thing] = []
        for uid, servers in inventory.servers.items():
            kept = hosts.the_one(servers)
            for server in servers:
                host = hosts.host_of(server)
                no_place = hosts.found_no_place(server) if server is kept else None
                if server is not kept or no_place:
                    going += [server] if host.state is not HostState.DELETING else []
                    host = replace(host, state=HostState.DELETING)
                if no_place:
                    self._note_no_place(uid, server, *no_place)
                shown.append(host)
        await self._all(
            self._quietly(self._delete(COMPUTE, one_of("servers", one["id"]))) for one in going[:MOST_AT_ONCE]
        )
        return (*shown, *await self.clear(inventory), *self._unborn(inventory))

    def _watch_vanished(self, there: set[str]) -> None:
        """A server that somebody else deleted leaves its ports behind: the next list looks for them."""
        for uid in self._had - there - self._expected:
            self._watched.setdefault(uid, self._now())
        self._had = there

    async def clear(self, inventory: Inventory, only: str = "") -> tuple[Host, ...]:
        """Delete ports and floating IPs that are alone and not to be gone on with; what is left is shown as hosts."""
        if inventory.parts is None:
            return ()
        self._looked = True
        alone = {
            uid for uid in inventory.parts.uids - set(inventory.servers) if uid == only or uid not in self._creating
        }
        if inventory.parts_came_later:
            alone &= self._expected
        self._track(inventory, alone)
        due = [uid for uid in sorted(alone) if self._is_due(uid) and (not only or uid == only)][:MOST_AT_ONCE]
        left = await self._all(self._clear_one(uid, inventory) for uid in due)
        unfinished = (_left(uid, inventory, HostState.UNFINISHED) for uid in sorted(alone - set(due)))
        return (*(host for host in left if host is not None), *unfinished)

    def _track(self, inventory: Inventory, alone: set[str]) -> None:
        """UIDs to look at again. A UID that has its server needs no watching; one that has nothing is done."""
        for uid in alone:
            self._watched.setdefault(uid, inventory.began)
        for uid in [uid for uid, since in self._watched.items() if since <= inventory.began]:
            if uid not in alone and uid not in self._creating:
                del self._watched[uid]
                self._tried.discard(uid)
        self._expected &= alone | set(inventory.servers)

    def _is_due(self, uid: str) -> bool:
        return uid in self._expected or self._now() - self._watched.get(uid, self._now()) >= ABANDONED

    async def _clear_one(self, uid: str, inventory: Inventory) -> Host | None:
        """None once nothing is left."""
        assert inventory.parts is not None
        problem = ""
        for floating in inventory.parts.floating_ips.get(uid, ()):
            problem = problem or await self._quietly(self._delete(NETWORK, one_of("floatingips", floating["id"])))
        # A subport is free once its trunk has gone with its parent.
        for port in sorted(
            inventory.parts.ports.get(uid, ()), key=lambda one: is_of_subport(str(one.get("name") or ""))
        ):
            problem = problem or await self._quietly(self._delete_port(str(port["id"])))
        return _left(uid, inventory, HostState.DELETING, problem) if problem else None

    async def _delete_port(self, port: str) -> None:
        try:
            await self._delete(NETWORK, one_of("ports", port))
        except ProviderError as error:
            if error.error_class is not ErrorClass.CONFLICT:
                raise
            found = (await self._requests.get(NETWORK, f"/trunks?{urlencode({'port_id': port})}")).get("trunks") or ()
            for trunk in found:
                await self._delete(NETWORK, one_of("trunks", trunk["id"]))
            if not found:
                raise
            await self._delete(NETWORK, one_of("ports", port))

    async def _delete(self, service: str, path: str) -> None:
        try:
            await self._requests.change(service, "DELETE", path)
        except ProviderError as error:
            if error.error_class is not ErrorClass.NOT_FOUND:
                raise

    def _note_no_place(self, uid: str, server: Thing, error_class: ErrorClass, text: str) -> None:
        known = self._no_place.get(uid)
        self._expected.add(uid)
        if known is not None and not known.reported:
            return  # the same server, seen again while it goes
        zone = hosts.zone_of(server)
        if zone and error_class is ErrorClass.STOCK_OUT:
            self._zones.found_full(zone)
            text = f"{text} in zone {zone}"
        self._no_place[uid] = _NoPlace(error_class, text, known.times + 1 if known else 1)

    def _unborn(self, inventory: Inventory) -> Iterable[Host]:
        """Creations that are under way: an answer that nobody waits for any more may still become a server."""
        for uid in sorted(self._creating - set(inventory.servers)):
            yield Host(f"{_UNBORN}{uid}", uid, "", "", HostState.PENDING, "")

    @staticmethod
    async def _quietly(work: Awaitable[None]) -> str:
        """What went wrong, "" if nothing: the next list tries again."""
        try:
            await work
        except ProviderError as error:
            return error.message
        return ""

    @staticmethod
    async def _all(work: Iterable[Awaitable[Any]]) -> list[Any]:
        return list(await asyncio.gather(*work))


def _left(uid: str, inventory: Inventory, state: HostState, problem: str = "") -> Host:
    """What is left of a server, or was made for one, shown as a host; ports are named after their Machine."""
    ports = inventory.parts.ports.get(uid, ()) if inventory.parts else ()
    name = str(ports[0].get("name") or "").rpartition("-")[0] if ports else ""
    return Host(f"{_LEFTOVERS}{uid}", uid, name, "", state, "", failure=problem)
