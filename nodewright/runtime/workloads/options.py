"""Settings of the connections to workload clusters. Times in seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

from nodewright.runtime.cache.reflector import ReflectorOptions
from nodewright.runtime.kube.client import ClientLimits


def _limits() -> ClientLimits:
    return ClientLimits(in_flight=16, request_timeout=10.0, attempts=2)


def _reflector() -> ReflectorOptions:
    return ReflectorOptions(longest_backoff=5.0)


@dataclass(frozen=True, slots=True)
class WorkloadOptions:
    """``probe_every``: how often a cluster is asked whether it is there, ``probe_timeout``: how long it may think.

    ``unreachable_after``: without an answer for so long it counts as unreached. ``retry``: pause between attempts to
    connect again. ``sweep``: how often clusters that nobody names any more are let go. ``secret_pause``: between two
    reads of a Cluster's kubeconfig Secret while it stays as it is.
    """

    probe_every: float = 10.0
    probe_timeout: float = 5.0
    unreachable_after: float = 30.0
    retry: float = 5.0
    sweep: float = 60.0
    secret_pause: float = 15.0
    client: ClientLimits = field(default_factory=_limits)
    reflector: ReflectorOptions = field(default_factory=_reflector)
