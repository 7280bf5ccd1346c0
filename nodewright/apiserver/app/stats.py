"""Requests by user, verb and resource, counted. For tests that count writes, and to look at a busy plane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_MAX_KEYS = 10_000


class RequestKey(NamedTuple):
    """`user_agent` is the client's name without its version, `resource` as in "machines.cluster.k8s.io"."""

    user_agent: str
    verb: str
    resource: str
    subresource: str


class Stats:
    """Counts requests as they arrive, also those that are refused; dry runs count like any other."""

    def __init__(self) -> None:
        self._counts: Counter[RequestKey] = Counter()

    def record(self, key: RequestKey) -> None:
        """Count one request; past 10 000 different keys, strangers are counted together."""
        if len(self._counts) >= _MAX_KEYS and key not in self._counts:
            key = RequestKey("other", key.verb, "", "")
        self._counts[key] += 1

    def reset(self) -> None:
        """Start again from nothing."""
        self._counts.clear()

    def snapshot(self) -> dict[RequestKey, int]:
        """Give all counts by key."""
        return dict(self._counts)

    def count(
        self,
        *,
        user_agent: str | None = None,
        verbs: Iterable[str] | None = None,
        resource: str | None = None,
        subresource: str | None = None,
    ) -> int:
        """Add up the requests that match; what is not given matches everything. `subresource=""` is the object."""
        wanted = None if verbs is None else frozenset(verbs)
        return sum(
            number
            for key, number in self._counts.items()
            if (user_agent is None or key.user_agent == user_agent)
            and (wanted is None or key.verb in wanted)
            and (resource is None or key.resource == resource)
            and (subresource is None or key.subresource == subresource)
        )

    def writes(self, *, user_agent: str | None = None, resource: str | None = None) -> int:
        """Add up the writes that match."""
        return self.count(user_agent=user_agent, verbs=WRITES, resource=resource)
