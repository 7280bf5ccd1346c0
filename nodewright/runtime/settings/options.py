"""The settings of the runtime in one place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from api.selectors import EVERYTHING, Selector
from controllers.kernel.reconciler import Reconciler
from nodewright.runtime.cache.reflector import ReflectorOptions
from nodewright.runtime.election.lease_options import LeaseOptions
from nodewright.runtime.hosts.options import HostOptions
from nodewright.runtime.kube.client import ClientLimits, KubeClient
from nodewright.runtime.queues.queue import Backoff
from nodewright.runtime.workloads.options import WorkloadOptions
from providers.base.registry import Registry

Reconcilers = Sequence[Reconciler[Any]]


def utc_now() -> datetime:
    return datetime.now(UTC)


class StartRefusedError(Exception):
    """The controllers must not begin, and trying again won't help. ``remedy``: what to do about it."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class ReconcilerOptions:
    """``workers``: reconciles of one reconciler at a time. ``workers_of_namespace``: those of them that objects of one
    namespace may have, so that others need not wait for what one namespace asks for; ``workers_kept``: of these, those
    that only what is urgent or new may have. ``resync``: seconds between looks at every key, come what may.

    32 workers: 24 of one namespace, of which 6 are kept.
    """

    workers: int = 32
    resync: float = 600.0
    backoff: Backoff = field(default_factory=Backoff)

    @property
    def workers_of_namespace(self) -> int:
        return max(1, self.workers * 3 // 4)

    @property
    def workers_kept(self) -> int:
        return self.workers_of_namespace // 4


class OrphanHosts(StrEnum):
    """What becomes of hosts that no Machine knows."""

    OFF = "off"
    REPORT = "report"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What to run and how. Times in seconds.

    ``preflight`` is awaited first, with a client; it raises StartRefusedError. ``namespace``: the only one whose
    objects are served; "": all. ``reconcilers`` None: all of them (``wiring``). ``machines``: which Machines the
    Machine controller serves (see ``controllers.kernel.sharding``). ``registry`` None: the providers that are
    installed. ``management_cluster``: mark that hosts carry, so that clusters that share an account know theirs; "":
    the UID of the Namespace ``kube-system``.
    ``orphan_hosts``: what becomes of hosts that no Machine knows; only where the Machine controller runs.
    ``simulated_kubelets``: play the kubelets of simulated hosts, where the Machine controller runs; they live in
    ``simulated_worlds()`` (None: the clouds of the installed provider). ``bind_pods``: find Nodes for pods, where no
    kube-scheduler does.
    ``hosts_in_memory``: simulated hosts end with the process; Machines that have some already are reported.
    ``leader_election`` None: this is the only process. ``on_leading`` is awaited once this process leads, before the
    first reconcile: for what only one process may hold.
    ``grace``: how long a stop waits for reconciles and provider calls that are under way.
    ``operate`` serves liveness (``/healthz``) on ``health_port``, readiness and metrics (``/readyz``, ``/metrics``) on
    ``metrics_port``, both on ``listen_host``; None: not at all.
    """

    reconcilers: Reconcilers | None = None
    machines: Selector = EVERYTHING
    namespace: str = ""
    preflight: Callable[[KubeClient], Coroutine[Any, Any, None]] | None = None
    registry: Registry | None = None
    client: ClientLimits = field(default_factory=ClientLimits)
    reflector: ReflectorOptions = field(default_factory=ReflectorOptions)
    hosts: HostOptions = field(default_factory=HostOptions)
    reconciler: ReconcilerOptions = field(default_factory=ReconcilerOptions)
    workloads: WorkloadOptions = field(default_factory=WorkloadOptions)
    management_cluster: str = ""
    orphan_hosts: OrphanHosts = OrphanHosts.REPORT
    simulated_kubelets: bool = True
    bind_pods: bool = False
    hosts_in_memory: bool = False
    simulated_worlds: Callable[[], Mapping[str, Any]] | None = None
    leader_election: LeaseOptions | None = None
    on_leading: Callable[[], Awaitable[None]] | None = None
    grace: float = 10.0
    listen_host: str = "127.0.0.1"
    health_port: int | None = None
    metrics_port: int | None = None
    now: Callable[[], datetime] = field(default=utc_now)
