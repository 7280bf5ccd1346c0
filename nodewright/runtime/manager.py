"""Put the parts together, start them in the right order, and stop them without leaving work half done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from api import yamltext
from controllers.kernel.actions import Event
from controllers.kernel.reconciler import Reconciler, clusters_served_by
from controllers.kernel.refs import MACHINE, NAMESPACE, NODE, Key, uid_of
from controllers.kernel.sharding import sharded, within
from nodewright import __version__
from nodewright.runtime.bootstrap.certificates import CertificateDirectory
from nodewright.runtime.bootstrap.directory import BootstrapDirectory, Deps
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.part import Part
from nodewright.runtime.cache.reflector import Reflector
from nodewright.runtime.election.cluster_claims import ClusterClaims
from nodewright.runtime.election.leadership import AlwaysLeader, Leadership, LeadershipLostError, LeaseLeadership
from nodewright.runtime.etcd.directory import EtcdDirectory
from nodewright.runtime.fleet import collectors, outset
from nodewright.runtime.fleet.chronicle import Chronicle, tell
from nodewright.runtime.fleet.findings import Finder
from nodewright.runtime.fleet.lifetimes import Lifetimes
from nodewright.runtime.hosts.credentials import secrets_by
from nodewright.runtime.hosts.directory import HostDirectory
from nodewright.runtime.hosts.endpoints import EndpointDirectory
from nodewright.runtime.hosts.objects import objects_by
from nodewright.runtime.hosts.sweeper import Sweeper
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.errors import KubeError
from nodewright.runtime.reconciling.shell import Controller, Facts
from nodewright.runtime.settings import wiring
from nodewright.runtime.settings.options import OrphanHosts, Reconcilers, RunOptions
from nodewright.runtime.telemetry.outages import Outages
from nodewright.runtime.workloads.access import Companion, Dependencies
from nodewright.runtime.workloads.directory import WorkloadDirectory
from nodewright.runtime.writes.executor import ExecutorDeps
from nodewright.runtime.writes.recorder import EventRecorder
from providers.base.registry import Registry

if TYPE_CHECKING:
    from nodewright.runtime.simulated.kubelets import SimulatedKubelets

_log = structlog.get_logger("nodewright.manager")

_SLOW_START = 10.0
"""Seconds after which it is said what the start is waiting for."""
_LOOK_SECONDS = 1.0


class Manager:
    """All reconcilers over one API server, and over the workload clusters that its Clusters name. ``run`` once.

    The parts are public so that the command line can show them and tests can look at them.
    """

    def __init__(
        self,
        client: KubeClient,
        options: RunOptions,
        leadership: Leadership | None = None,
        companion: Companion | None = None,
    ) -> None:
        self.options = options
        self._leadership = leadership or AlwaysLeader()
        fenced = client.fenced(self.may_act).named("certificates")
        self.certificates = CertificateDirectory(fenced, options.now, options.workloads.servers.sockets())
        self.claims = ClusterClaims(leadership if isinstance(leadership, LeaseLeadership) else None)
        self._registry = options.registry or Registry.installed()
        self.hosts = HostDirectory(self._registry, options.hosts, options.now, may_call=self.may_act)
        self.endpoints = EndpointDirectory(self.hosts)
        servers = options.workloads.servers
        self.etcd = EtcdDirectory(client.named("etcd"), options.now, servers=servers, locate=self.hosts.located)
        self.reconcilers = self._with_views(options)
        self.cache = Cache(wiring.kinds_of(self.reconcilers))
        self.hosts.read_secrets_by(secrets_by(client.named("hosts")))
        self.hosts.read_objects_by(objects_by(client.named("hosts")))
        self.finder = Finder(__version__, self.hosts, options.now)
        parts = wiring.parts_of(self.reconcilers, options.namespace)
        cached = client.named("cache")
        self.reflectors = tuple(
            Reflector(Part(cached, parts[kind]) if kind in parts else cached, self.cache, kind, options.reflector)
            for kind in self.cache.stores
        )
        self.workloads = WorkloadDirectory(self._dependencies(client, companion))
        self.bootstraps = BootstrapDirectory(
            Deps(
                client.fenced(self.may_act).named("bootstrap"),
                self.workloads,
                self.cache,
                options.now,
                lambda: self.hosts.management_cluster,
                options.namespace,
            )
        )
        self.controllers: list[Controller] = []
        self.started = False
        self._client = client.fenced(self.may_act)
        if any(reconciler.kind == MACHINE for reconciler in self.reconcilers):
            Chronicle(self.cache, options.now, lambda: self.started and self.may_act())
        self.workloads.listen(NODE, Lifetimes(self.cache, options.now).node_elsewhere)
        self._tasks: list[asyncio.Task[None]] = []
        self._recorders: list[EventRecorder] = []
        for reconciler in self.reconcilers:
            self.controllers.append(self._controller(reconciler))

    def _with_views(self, options: RunOptions) -> Reconcilers:
        """The reconcilers, with what they look at beside the cache."""
        wanted = wiring.reconcilers() if options.reconcilers is None else options.reconcilers
        wanted = wiring.with_certificates(wiring.with_etcd(wanted, self.etcd, self.etcd.snapshots), self.certificates)
        wanted = wiring.with_claims(wiring.with_endpoints(wanted, self.endpoints), self.claims)
        return within(sharded(wanted, options.machines), options.namespace)

    @property
    def ready(self) -> bool:
        """Reconcilers are at work on a world that is completely read."""
        return self.started and not self.problems()

    @property
    def synced(self) -> bool:
        """Everything has been read once; reconcilers may be waiting for this process to lead."""
        return all(reflector.synced.is_set() for reflector in self.reflectors)

    def problems(self) -> list[str]:
        """What is not current, one sentence each."""
        return [f"{plural}: {why}" for plural, why in self.watches().items() if why]

    def watches(self) -> dict[str, str]:
        """Why a kind is not current, "" if it is, by plural."""
        return {
            reflector.kind.plural: "" if reflector.complete else reflector.problem or "not read yet"
            for reflector in self.reflectors
        }

    def families(self) -> Iterable[object]:
        """The metrics that are counted when somebody asks."""
        queues = {_name_of_queue(each.reconciler): each.queue for each in self.controllers}
        staleness = {reflector.kind: reflector.staleness for reflector in self.reflectors}
        ends = tuple(self.certificates.ends())
        return collectors.families(collectors.Scene(self.cache, queues, staleness, self.options.now(), ends))

    async def run(self, stop: asyncio.Event, ready: Callable[[], None]) -> None:
        """Until ``stop`` is set. Raises LeadershipLostError, or whatever a background part died of (a bug)."""
        try:
            for reflector in self.reflectors:
                self._spawn(reflector.run(), f"reflect {reflector.kind.plural}")
            for recorder in self._recorders:
                self._spawn(recorder.run(), "events")
            self._spawn(self._say_what_is_missing(), "slow start")
            if await self._unless_stopped(self._start(), stop):
                self.started = True
                _log.info("controllers are running", reconcilers=[reconciler.name for reconciler in self.reconcilers])
                ready()
                await self._unless_stopped(self._leadership.lost.wait(), stop)
        finally:
            self.started = False
            await self._stop()
        if self._leadership.lost.is_set():
            raise LeadershipLostError(self._leadership.why_lost)

    async def _start(self) -> None:
        self._load()
        for reflector in self.reflectors:
            await reflector.synced.wait()
        self.hosts.management_cluster = self.options.management_cluster or await self._mark()
        await self._leadership.acquire()
        if self.options.on_leading is not None:
            await self.options.on_leading()
        self._say_at_the_outset()
        self._spawn(self.claims.run(), "claims on clusters")
        for controller in self.controllers:
            controller.start()
        if self._looks_for_orphans():
            removes = self.options.orphan_hosts is OrphanHosts.DELETE
            sweeper = Sweeper(self.cache, self.hosts, self.options.now, removes)
            self.finder.orphans, self.finder.removes = sweeper.orphans, removes
            self._spawn(sweeper.run(), "orphan hosts")

    def _load(self) -> None:
        """What takes long to load and that an object may ask for: no reconcile has to wait for it."""
        yamltext.load_parser()
        self._registry.load()

    def _say_at_the_outset(self) -> None:
        if not any(reconciler.kind == MACHINE for reconciler in self.reconcilers):
            return
        for line in outset.missing_providers(self.cache, self._registry):
            _log.warning("provider is missing", why=line)
        if self.options.hosts_in_memory and (line := outset.lost_simulation(self.cache)):
            _log.warning("simulated hosts are not known", why=line)

    def _looks_for_orphans(self) -> bool:
        """A process that sees the Machines of one namespace alone would take the hosts of all others for orphans."""
        wanted = self.options.orphan_hosts is not OrphanHosts.OFF and not self.options.namespace
        return wanted and any(reconciler.kind == MACHINE for reconciler in self.reconcilers)

    async def _mark(self) -> str:
        """Mark of this cluster's hosts: the UID that ``kube-system`` keeps for the cluster's life."""
        if not any(reconciler.kind == MACHINE for reconciler in self.reconcilers):
            return ""
        try:
            return uid_of(await self._client.get(NAMESPACE, Key("", "kube-system")))
        except KubeError as error:
            _log.warning("new hosts carry no mark of their cluster", why=str(error))
            return ""

    def may_act(self) -> bool:
        """Whether this process leads, at this very moment."""
        return self._leadership.held

    async def _stop(self) -> None:
        """Work first, in good order as long as this process leads; then the watches; the Lease last."""
        ending = asyncio.create_task(self._end_work(self.options.grace))
        losing = asyncio.create_task(self._leadership.lost.wait())
        await asyncio.wait({ending, losing}, return_when=asyncio.FIRST_COMPLETED)
        losing.cancel()
        if not ending.done():
            ending.cancel()
            await asyncio.gather(ending, return_exceptions=True)
            await self._end_work(0.0)
        else:
            ending.result()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(losing, *self._tasks, return_exceptions=True)
        await self._leadership.release()

    async def _end_work(self, grace: float) -> None:
        """Reconciles first, then provider calls, then Events; each has ``grace`` seconds to end by itself."""
        await asyncio.gather(*(controller.stop(grace) for controller in self.controllers))
        directories = (self.endpoints, self.hosts, self.bootstraps, self.etcd, self.certificates)
        await asyncio.gather(*(each.close(grace) for each in directories))
        for_events = min(grace, 2.0)
        await self.workloads.close(for_events)
        await asyncio.gather(*(recorder.flush(for_events) for recorder in self._recorders))

    async def _unless_stopped(self, work: Coroutine[Any, Any, Any], stop: asyncio.Event) -> bool:
        """Await ``work``; False if ``stop`` came first. A background task that ends by itself has failed."""
        working: asyncio.Task[Any] = asyncio.create_task(work)
        stopping: asyncio.Task[Any] = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({working, stopping, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
            for task in self._tasks:
                if task.done():
                    task.result()
                    raise RuntimeError(f"background task {task.get_name()!r} ended")
            if working.done():
                working.result()
                return not stop.is_set()
            return False
        finally:
            working.cancel()
            stopping.cancel()
            await asyncio.gather(working, stopping, return_exceptions=True)

    async def _say_what_is_missing(self) -> None:
        outages, clock = Outages(_SLOW_START), asyncio.get_running_loop().time
        began = False
        while True:
            if self.started and not began:
                outages, began = Outages(), True
            line = outages.look(clock(), {kind: why for kind, why in self.watches().items() if why})
            if line is not None:
                log = _log.warning if line.wrong else _log.info
                log(line.event, why=line.why, kinds=line.kinds)
            await asyncio.sleep(_LOOK_SECONDS)

    def _controller(self, reconciler: Any) -> Controller:
        client = self._client.named(reconciler.name)
        recorder = EventRecorder(client, f"nodewright-{reconciler.name}", self.options.now)
        self._recorders.append(recorder)
        record: Callable[[Event], None] = recorder.record
        executor_deps = ExecutorDeps(
            client,
            self.cache,
            self.hosts.submit,
            record,
            self.options.now,
            submit_bootstrap=self.bootstraps.submit,
            submit_etcd=lambda action: self.may_act() and self.etcd.submit(action),
            submit_renewal=lambda action: self.may_act() and self.certificates.submit(action),
            submit_endpoint=lambda action: self.may_act() and self.endpoints.submit(action),
            tell=tell,
        )
        facts = Facts(self.cache, self.hosts, self.workloads, self.bootstraps)
        return Controller(reconciler, facts, executor_deps, self.options.reconciler)

    def _dependencies(self, client: KubeClient, companion: Companion | None) -> Dependencies:
        return Dependencies(
            client=client,
            may_write=self.may_act,
            home=self.cache,
            kinds=partial(wiring.kinds_in, self.reconcilers),
            apart=partial(wiring.apart_in, self.reconcilers),
            now=self.options.now,
            options=self.options.workloads,
            secrets=self.options.reflector,
            companion=companion,
            parts=wiring.parts_of(self.reconcilers, self.options.namespace),
            wanted=wiring.clusters_of(self.reconcilers),
        )

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))


async def run_controllers(
    connection: Connection,
    options: RunOptions,
    *,
    stop: asyncio.Event,
    ready: asyncio.Event | Callable[[], None] | None = None,
    on_manager: Callable[[Manager], None] | None = None,
) -> None:
    """Run all reconcilers against one API server until ``stop`` is set.

    ``ready`` is set, or called, once every kind is read and the reconcilers are at work. ``on_manager`` is handed the
    Manager before it starts (for a display of queues and caches). An API server that is not there yet is waited for.

    Raises ConfigurationError if the connection's certificates can't be used, LeadershipLostError once another process
    may work.
    """
    announce = ready.set if isinstance(ready, asyncio.Event) else ready or _nobody
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(KubeClient(connection, "manager", options.client))
        leadership: LeaseLeadership | None = None
        if options.leader_election is not None:
            lease = options.leader_election
            keeper = await stack.enter_async_context(KubeClient(connection, "leader-election", lease.limits))
            leadership = LeaseLeadership(keeper, lease, options.now)
        kubelets = (
            _simulated_kubelets(options, lambda: manager.hosts.management_cluster) if _plays_kubelets(options) else None
        )
        manager = Manager(client, options, leadership, kubelets.of_cluster if kubelets is not None else None)
        if leadership is not None:
            leadership.findings = manager.finder.text
        if on_manager is not None:
            on_manager(manager)
        if options.preflight is not None and not await _unless(stop, options.preflight(client)):
            return
        if kubelets is not None:
            await stack.enter_async_context(
                kubelets.in_management_cluster(client.fenced(manager.may_act), manager.workloads.is_management_cluster)
            )
        await _play_pods(stack, manager, client.fenced(manager.may_act))
        await manager.run(stop, announce)


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Await ``work``; False if ``stop`` came first."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not working.done():
        working.cancel()
    stopping.cancel()
    await asyncio.gather(stopping, return_exceptions=True)
    await asyncio.gather(working, return_exceptions=stop.is_set())
    return not stop.is_set()


async def _play_pods(stack: AsyncExitStack, manager: Manager, client: KubeClient) -> None:
    """Start the pods of simulated hosts, and bind them first, where that is wanted and pods are read at all."""
    options, there = manager.options, manager.cache.stores.keys()
    plays = _plays_kubelets(options)
    if not (plays or options.bind_pods):
        return
    from nodewright.runtime.simulated import pods  # noqa: PLC0415  (only if it is wanted)

    if plays and there >= set(pods.KUBELETS_READ):
        await stack.enter_async_context(pods.PodKubelets(client, manager.cache, options.now))
    if options.bind_pods and there >= set(pods.BINDER_READS):
        await stack.enter_async_context(pods.Binder(client, manager.cache, options.now))


def _plays_kubelets(options: RunOptions) -> bool:
    """Simulated hosts are in the process that makes them; to another one all of them look dead."""
    makes_hosts = options.reconcilers is None or any(reconciler.kind == MACHINE for reconciler in options.reconcilers)
    return options.simulated_kubelets and makes_hosts


def _simulated_kubelets(options: RunOptions, mark: Callable[[], str]) -> SimulatedKubelets:
    from nodewright.runtime.simulated.kubelets import SimulatedKubelets, all_worlds  # noqa: PLC0415  (only if it is wanted)

    return SimulatedKubelets(options.simulated_worlds or all_worlds, options.now, mark)


def _name_of_queue(reconciler: Reconciler[Any]) -> str:
    """One controller may have two: of the management cluster, and of all Clusters that it serves."""
    return reconciler.name if clusters_served_by(reconciler) is None else f"{reconciler.name}-clusters"


def _nobody() -> None:
    return None
