"""Which Lease a process holds and on which terms, and what keeping it needs of a client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from controllers.kernel.refs import Key, Kind, Obj, Ref
from nodewright.runtime.election.claims import Claim, Holder
from nodewright.runtime.election.lease import Terms
from nodewright.runtime.election.process_identity import is_gone
from nodewright.runtime.kube.client import ClientLimits, Page


@dataclass(frozen=True, slots=True)
class LeaseOptions:
    """Which Lease to hold, and on which terms. ``identity`` "": host name, process and a random part.

    ``claims``: what the process serves while it holds the Lease; (): it excludes only those with the same Lease.
    ``waits`` False: HeldElsewhereError at once instead of standing by. ``command``: what people call the process.
    ``ended`` tells of a holder whether it has certainly ended. ``on_wait`` is called with a line for people when the
    process begins to stand by, and again when it stands by for somebody else.
    """

    name: str
    namespace: str
    terms: Terms = field(default_factory=Terms)
    identity: str = ""
    claims: tuple[Claim, ...] = ()
    waits: bool = True
    command: str = ""
    ended: Callable[[Holder], bool] = lambda holder: is_gone(holder.process)
    on_wait: Callable[[str], None] | None = None

    @property
    def limits(self) -> ClientLimits:
        """Connection of the client that keeps the Lease: its own, so that no burst of other work delays a renewal."""
        terms = self.terms
        return ClientLimits(
            2, request_timeout=terms.renew_deadline / 2, attempts=2, retry_after_at_most=terms.retry_period
        )


class LeaseClient(Protocol):
    """What keeping a Lease needs of a client (``KubeClient`` has it)."""

    async def get(self, kind: Kind, key: Key) -> dict[str, Any]: ...

    async def list_page(
        self, kind: Kind, limit: int = 500, continue_: str = "", namespace: str = "", name: str = ""
    ) -> Page: ...

    async def create(self, kind: Kind, body: Obj) -> dict[str, Any]: ...

    async def merge_patch(
        self, target: Ref, patch: Mapping[str, Any], *, subresource: str = "", resource_version: str = ""
    ) -> dict[str, Any]: ...
