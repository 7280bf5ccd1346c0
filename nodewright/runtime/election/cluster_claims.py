"""Which Clusters are ours: those that a process serves one by one are claimed in the Lease that it holds anyway.

A claim is written down first, and then the Leases of all others are read: of two processes that begin at once at least
one sees the other, and gives way. A process for one Cluster, of an earlier version too, reads such claims before it
begins, and its own claim is read here. So no Lease more is kept, and a Cluster costs no write but two.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from typing import Protocol

import structlog

from controllers.kernel.each_cluster import Refused
from controllers.kernel.refs import Key
from nodewright.runtime.election.claims import Claim, Holder
from nodewright.runtime.kube.errors import KubeError

_log = structlog.get_logger("nodewright.claims")

MOST_TEXT = 60_000
"""Characters that all claims of a process may take: others do not read a record that is much longer."""
_FRAME = 40
"""Characters of a claim beside the names in it."""
_RECORDING = 0.5
"""Seconds after which it is looked again whether a claim is written down."""
_HELD = 5.0
"""Seconds after which a Cluster is tried again that another process serves."""
_CLAIMING = Refused("it is being claimed: no other process may act on it at the same time")


class SharedLease(Protocol):
    """What is needed of the Lease that this process holds (``LeaseLeadership`` has it)."""

    @property
    def recorded(self) -> frozenset[Claim]: ...

    def serve_also(self, claims: Iterable[Claim]) -> None: ...

    async def others(self, claims: Iterable[Claim]) -> dict[Claim, tuple[str, Holder]]: ...


class ClusterClaims:
    """``ClaimsView``. ``lease`` None: this process is alone, and every Cluster is its own. ``run`` until cancelled."""

    def __init__(self, lease: SharedLease | None) -> None:
        self._lease = lease
        self._ours: set[Claim] = set()
        self._written: set[Claim] = set()
        """Those that are to be written down, and are not ours yet."""
        self._refused: dict[Claim, Refused] = {}
        """Those that are wanted, with why they are not ours."""
        self._some = asyncio.Event()
        self._random = random.Random()  # noqa: S311  (jitter)

    def ask(self, controller: str, cluster: Key) -> Refused | None:
        claim = Claim(controller, str(cluster))
        if self._lease is None or claim in self._ours:
            return None
        self._some.set()
        return self._refused.setdefault(claim, _CLAIMING)

    def release(self, controller: str, cluster: Key) -> None:
        claim = Claim(controller, str(cluster))
        held = claim in self._ours or claim in self._written
        self._ours.discard(claim)
        self._written.discard(claim)
        self._refused.pop(claim, None)
        if held:
            self._tell()

    async def run(self) -> None:
        while True:
            await self._some.wait()
            if not self._refused:
                self._some.clear()
                continue
            await self.look()
            await asyncio.sleep(_RECORDING if self._written else self._random.uniform(_HELD / 2, _HELD))

    async def look(self) -> None:
        """Take a step with all that are wanted: have them written down, or find that nobody else has them."""
        assert self._lease is not None
        recorded = self._lease.recorded
        wanted = tuple(self._refused)
        try:
            others = await self._lease.others(wanted)
        except KubeError as error:
            _log.info("claims can't be compared with those of others", why=error.plain)
            return
        for claim in wanted:
            if claim in self._refused:  # it was not released meanwhile
                self._take(claim, others.get(claim), claim in recorded)
        self._tell()

    def _take(self, claim: Claim, other: tuple[str, Holder] | None, recorded: bool) -> None:
        if other is not None:
            lease, holder = other
            self._refuse(claim, Refused(f"{holder} serves it, by the Lease {lease}", by_another=True))
        elif recorded and claim in self._written:
            self._ours.add(claim)
            self._written.discard(claim)
            del self._refused[claim]
            _log.info("serving a cluster", controller=claim.controller, cluster=claim.cluster)
        elif claim not in self._written and self._length() + _text(claim) > MOST_TEXT:
            why = "the Lease names as many Clusters as it can; give some to another process by --clusters=SELECTOR"
            self._refuse(claim, Refused(why, by_another=True))
        else:
            self._written.add(claim)
            self._refused[claim] = _CLAIMING

    def _refuse(self, claim: Claim, refused: Refused) -> None:
        if self._refused[claim] != refused:
            _log.warning("not served", controller=claim.controller, cluster=claim.cluster, why=refused.why)
        self._written.discard(claim)
        self._refused[claim] = refused

    def _length(self) -> int:
        return sum(map(_text, (*self._ours, *self._written)))

    def _tell(self) -> None:
        if self._lease is not None:
            self._lease.serve_also(self._ours | self._written)


def _text(claim: Claim) -> int:
    return len(claim.controller) + len(claim.cluster) + _FRAME
