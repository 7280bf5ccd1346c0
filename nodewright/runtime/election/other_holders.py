"""Other processes whose Leases overlap with ours: those that serve some of the same objects under another name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from controllers.kernel.refs import LEASE, Key, Obj, key_of
from nodewright.runtime.election.claims import Claim, Holder, holder_of, overlap
from nodewright.runtime.election.lease import Seen, duration_of

if TYPE_CHECKING:
    from nodewright.runtime.election.lease_options import LeaseClient, LeaseOptions


class OtherHolders:
    """Asked by a process that holds its own Lease, or that waits to take it. ``clock``: monotonic seconds.

    A Lease counts as live until it has been seen unchanged for its duration, or its holder has certainly ended.
    """

    def __init__(self, client: LeaseClient, own: Key, options: LeaseOptions, clock: Callable[[], float]) -> None:
        self._client = client
        self._own = own
        self._options = options
        self._clock = clock
        self._seen: dict[Key, Seen] = {}

    async def find(self, claims: Iterable[Claim]) -> tuple[str, Holder] | None:
        """The first live Lease that overlaps with ``claims``, and its holder. Raises KubeError."""
        found = (await self.overlapping(claims)).values()
        return min(found, key=lambda each: each[0], default=None)

    async def overlapping(self, claims: Iterable[Claim]) -> dict[Claim, tuple[str, Holder]]:
        """Those of ``claims`` that others serve, with the first live Lease that says so. Raises KubeError."""
        ours, found = tuple(claims), dict[Claim, tuple[str, Holder]]()
        if not ours:
            return found
        leases = await self._read()
        now = self._clock()
        self._seen = {key: self._seen.get(key, Seen(None, now)).then(lease, now) for key, lease in leases.items()}
        for key, lease in sorted(leases.items()):
            holder = holder_of(lease)
            runs_out = self._seen[key].since + duration_of(lease, self._options.terms)
            if not holder.identity or now >= runs_out or self._options.ended(holder):
                continue
            for claim in ours:
                if claim not in found and overlap((claim,), holder.claims):
                    found[claim] = (str(key), holder)
        return found

    async def _read(self) -> dict[Key, Obj]:
        """All but ours. They are read from the store itself, not from an API server's cache: no resourceVersion is
        asked for."""
        leases: dict[Key, Obj] = {}
        following = ""
        while True:
            page = await self._client.list_page(LEASE, continue_=following, namespace=self._own.namespace)
            leases |= {key_of(lease): lease for lease in page.items}
            following = page.continue_
            if not following:
                leases.pop(self._own, None)
                return leases
