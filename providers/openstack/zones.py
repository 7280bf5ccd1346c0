"""Which availability zone the next server goes to. Pure but for its memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from providers.base.contract import HostRequest, HostState
from providers.openstack import hosts, ownership_tags
from providers.openstack.inventory import Inventory

AVOIDED = 300.0
"""Seconds for which a zone in which there was no place comes last."""


@dataclass(slots=True)
class _Choice:
    """For a server that no census has shown yet. ``ended``: when its creation was over, None while it is under way."""

    zone: str
    pool: str
    ended: float | None = None


class Zones:
    """Many servers are made after one census: each sees where the ones before it are about to go."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._full_at: dict[str, float] = {}
        self._chosen: dict[str, _Choice] = {}
        """By Machine UID."""

    def found_full(self, zone: str) -> None:
        self._full_at[zone] = self._now()

    def refused(self, uid: str) -> None:
        """The cloud does not know the zone that was chosen, or all of it is down."""
        if uid in self._chosen:
            self.found_full(self._chosen[uid].zone)

    def made(self, uid: str) -> None:
        """The creation that a zone was chosen for is over; the next census tells what came of it."""
        if uid in self._chosen:
            self._chosen[uid].ended = self._now()

    def choose(self, request: HostRequest, wanted: Sequence[str], inventory: Inventory) -> str:
        """The Machine's failure domain if it has one; else of ``wanted`` the one with the fewest servers.

        Hosts of its own pool count first: many hosts of another pool in a zone must not drive all of this one out of
        it. "" leaves it to the cloud.
        """
        uid, pool = request.identity.machine_uid, ownership_tags.pool_of(ownership_tags.machine_of(request))
        self._forget(uid, inventory)
        taken = list(self._taken(inventory))
        alike, used = Counter(zone for zone, of in taken if of == pool), Counter(zone for zone, _ in taken)
        zone = request.failure_domain
        if not zone and wanted:
            zone = min(wanted, key=lambda one: (self._is_full(one), alike[one], used[one], wanted.index(one)))
        if zone:
            self._chosen[uid] = _Choice(zone, pool)
        return zone

    def _taken(self, inventory: Inventory) -> Iterator[tuple[str, str]]:
        for servers in inventory.servers.values():
            server = hosts.the_one(servers)
            if hosts.state_of(server) is not HostState.DELETING:
                yield hosts.zone_of(server), ownership_tags.pool_of(ownership_tags.machine_of_server(server))
        yield from ((choice.zone, choice.pool) for choice in self._chosen.values())

    def _forget(self, again: str, inventory: Inventory) -> None:
        """What the census shows by itself, and what came to nothing. ``again``: who chooses anew."""
        for uid, choice in list(self._chosen.items()):
            over = choice.ended is not None and choice.ended < inventory.began
            if over or uid == again or uid in inventory.servers:
                del self._chosen[uid]

    def _is_full(self, zone: str) -> bool:
        return self._now() - self._full_at.get(zone, float("-inf")) < AVOIDED
