"""Settings of the connections to workload clusters. Times in seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

from nodewright.runtime.cache.reflector import ReflectorOptions
from nodewright.runtime.kube.client import ClientLimits
from nodewright.runtime.kube.servers import ServerPolicy


def _limits() -> ClientLimits:
    return ClientLimits(
        in_flight=16,
        request_timeout=10.0,
        attempts=2,
        largest_answer=16 << 20,
        longest_line=4 << 20,
        heaviest_answer=192 << 20,
        lists_in_flight=2,
    )


def _reflector() -> ReflectorOptions:
    return ReflectorOptions(longest_backoff=5.0)


@dataclass(frozen=True, slots=True)
class WorkloadOptions:
    """``probe_every``: how often a cluster is asked whether it is there, ``probe_timeout``: how long it may think.

    ``unreachable_after``: without an answer for so long it counts as unreached. ``retry``: pause between attempts to
    connect again; ``retry_new``: to a cluster that its first Machine is making, for ``new_for`` at most. ``sweep``: how
    often clusters that nobody names any more are let go. ``secret_pause``: between two reads of a Cluster's kubeconfig
    Secret while it stays as it is. ``servers``: which API servers a Secret may name. ``memory``: bytes that all objects
    of one cluster may take. ``missing_pause``: between two looks whether a kind is served that a cluster need not have.
    """

    probe_every: float = 10.0
    probe_timeout: float = 5.0
    unreachable_after: float = 30.0
    retry: float = 5.0
    retry_new: float = 1.0
    new_for: float = 900.0
    sweep: float = 60.0
    secret_pause: float = 15.0
    memory: int = 512 << 20
    missing_pause: float = 30.0
    servers: ServerPolicy = field(default_factory=ServerPolicy)
    client: ClientLimits = field(default_factory=_limits)
    reflector: ReflectorOptions = field(default_factory=_reflector)

    def retry_after(self, tried_for: float, *, is_new: bool) -> float:
        """``is_new``: the cluster is being made, and was never reached."""
        return min(self.retry, self.retry_new) if is_new and tried_for < self.new_for else self.retry
