"""One Cluster's way to its own API, from the Secret to a cache that is kept current; and what is known of it now.

    Secret -> connection -> contact -> lists -> Reached -> no answer for too long -> Unreachable -> contact -> ...

Each contact begins with lists: what was read before it was lost is shown, but nothing is done on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from contextvars import Context
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from urllib.parse import urlsplit

import structlog

from api import names
from api.conditions import Reason
from controllers.kernel.actions import Event
from controllers.kernel.endpoints import has_own_api
from controllers.kernel.node_policy import kubeconfig_secret_of, recorded_secret
from controllers.kernel.refs import CLUSTER, NODE, OPTIONAL_KINDS, SECRET, Key, Kind, Obj, annotations_of, uid_of
from controllers.kernel.view import MANAGEMENT_CLUSTER, ManagementCluster, Reached, Unreachable, Workload
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.part import Part
from nodewright.runtime.cache.polled import Polled
from nodewright.runtime.cache.reflector import Gap, Reflector, ReflectorOptions, Source
from nodewright.runtime.cache.store import Change
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.errors import ApiError, ConfigurationError, KubeError, NoAnswer
from nodewright.runtime.workloads.gate import Gate
from nodewright.runtime.workloads.metering import Meter, Metered
from nodewright.runtime.workloads.optional import Optional
from nodewright.runtime.workloads.options import WorkloadOptions
from nodewright.runtime.workloads.secret import connection_in
from nodewright.runtime.writes.executor import APITarget
from nodewright.runtime.writes.recorder import EventRecorder

_log = structlog.get_logger("nodewright.workloads")

_SHARE_APART = 4
"""The share of a cluster's memory that the kinds apart get beside the rest: a quarter. A flood of
the cluster with requests does not have it counted as unreachable.
"""
Companion = Callable[[Key, KubeClient], AbstractAsyncContextManager[object]]
"""Something that lives in a workload cluster for as long as there is contact (simulated kubelets)."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What all accesses share. ``kinds`` says what is read in the cluster of which Cluster, of some kinds only
    ``parts``; without those of ``apart`` it counts as reached all the same. ``home`` holds the Clusters.

    ``may_write``: whether this process leads, asked at the moment of each write. ``wanted``: Clusters that are looked
    at though no object names them.
    """

    client: KubeClient
    may_write: Callable[[], bool]
    home: Cache
    kinds: Callable[[Key], tuple[Kind, ...]]
    now: Callable[[], datetime]
    options: WorkloadOptions
    secrets: ReflectorOptions
    companion: Companion | None = None
    parts: Mapping[Kind, tuple[Key, ...]] = field(default_factory=dict)
    wanted: frozenset[Key] = frozenset()
    apart: Callable[[Key], frozenset[Kind]] = lambda _cluster: frozenset()


class _SilenceError(NoAnswer):
    """Nothing came in time. The cause may show a moment later."""


class ClusterAccess:
    """``run`` until cancelled. ``changed`` is called after each change of ``workload``, None until it is known."""

    def __init__(self, cluster: Key, deps: Dependencies, changed: Callable[[Key], None]) -> None:
        self.cluster = cluster
        self.workload: Workload | None = None
        self.cache = Cache(deps.kinds(cluster))
        self._apart = deps.apart(cluster)
        self.gate = Gate(f"Cluster {cluster}")
        self.place = APITarget(self.gate, self.cache, record=self._record)
        self._deps = deps
        self._options = deps.options
        self._tell = changed
        self._key = kubeconfig_secret_of(cluster)
        self._secrets = Cache([SECRET])
        self._secrets.listen(SECRET, self._secret_changed)
        self._again = asyncio.Event()
        self._seen_with: str | None = None
        """Uid of the Cluster with which a Secret was seen; None: never one."""
        self._last_contact: datetime | None = None
        self._heard_at = self._time()
        self._cause_known = False
        """``workload`` is Unreachable and its words name the cause, not only that nothing came."""
        self._recorders: dict[str, EventRecorder] = {}
        """By reconciler: Events about what lives there lie there."""
        self._recording: list[asyncio.Task[None]] = []
        self._missing: set[str] = set()
        """Plurals of kinds that are not served there."""
        self._gaps: dict[Kind, Gap] = {}
        """What the reflectors of the last connection knew of outages."""

    async def run(self) -> None:
        source = Polled(self._deps.client.named("workloads"), self._key, self._options.secret_pause)
        reflector = Reflector(source, self._secrets, SECRET, self._deps.secrets)
        reading = asyncio.create_task(reflector.run(), name=f"reflect Secret {self._key}")
        try:
            await self._first_read(reflector)
            while True:
                self._again.clear()
                await self._until_again(self._secrets.stores[SECRET].get(self._key))
        finally:
            tasks = [reading, *self._recording]
            self._recorders, self._recording = {}, []
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def flush(self, seconds: float) -> None:
        """Wait until all Events are written, at most ``seconds``."""
        await asyncio.gather(*(recorder.flush(seconds) for recorder in self._recorders.values()))

    def _record(self, reconciler: str, event: Event) -> None:
        recorder = self._recorders.get(reconciler)
        if recorder is None:
            recorder = self._recorders[reconciler] = EventRecorder(
                self.gate, f"nodewright-{reconciler}", self._deps.now
            )
            name = f"events of {reconciler} in {self.cluster}"
            self._recording.append(asyncio.create_task(recorder.run(), name=name, context=Context()))
        recorder.record(event)

    def reconsider(self) -> None:
        """Look again whether a Cluster without a Secret is home: another Cluster may have taken the name."""
        missing = isinstance(self.workload, Unreachable) and self.workload.reason == Reason.KUBECONFIG_MISSING
        taken_for_home = isinstance(self.workload, ManagementCluster) and has_own_api(self._cluster())
        if missing or taken_for_home:
            self._again.set()

    async def _first_read(self, reflector: Reflector) -> None:
        """A Secret that can't be read may be there: the Cluster is not taken for home on that."""
        try:
            async with asyncio.timeout(self._options.unreachable_after):
                await reflector.synced.wait()
        except TimeoutError:
            why = f"Secret {self._key} can't be read: {reflector.problem or 'no answer'}"
            self._unreachable(Reason.UNREACHABLE, why, cause_known=bool(reflector.problem))
            await reflector.synced.wait()

    async def _until_again(self, secret: Obj | None) -> None:
        serving = asyncio.create_task(self._serve(secret), name=f"workload {self.cluster}")
        waiting = asyncio.create_task(self._again.wait())
        try:
            await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():  # it never ends by itself
                serving.result()
        finally:
            serving.cancel()
            waiting.cancel()
            await asyncio.gather(serving, waiting, return_exceptions=True)

    async def _serve(self, secret: Obj | None) -> None:
        """What this Secret means, and to act on it, for as long as it stays what it is."""
        body = self._cluster()
        uid = uid_of(body) if body is not None else ""
        if secret is None:
            self._look_without_secret(body, seen_before=self._seen_with == uid)
            return await _for_ever()
        self._seen_with = uid
        try:
            connection = await asyncio.to_thread(connection_in, secret, self._options.servers)
        except ConfigurationError as error:
            self._unreachable(Reason.INVALID_KUBECONFIG, str(error))
            return await _for_ever()
        began = self._time()
        while True:
            await self._live(connection)
            await asyncio.sleep(self._retry_pause(self._time() - began))

    def _retry_pause(self, tried_for: float) -> float:
        """All that is to join a new cluster waits for its first answer, and a refused connection costs little."""
        cluster = self._cluster()
        made = cluster is None or names.CONTROL_PLANE_INITIALIZED in annotations_of(cluster)
        is_new = self._last_contact is None and not made and has_own_api(cluster)
        return self._options.retry_after(tried_for, is_new=is_new)

    def _look_without_secret(self, body: Obj | None, *, seen_before: bool) -> None:
        if recorded_secret(body) or seen_before:
            self._unreachable(Reason.KUBECONFIG_MISSING, f"Secret {self._key} is gone")
        elif has_own_api(body):
            text = f"its control plane is not there yet: the first Machine of it makes Secret {self._key}"
            self._unreachable(Reason.KUBECONFIG_MISSING, text)
        else:
            self._is(MANAGEMENT_CLUSTER)

    async def _live(self, connection: Connection) -> None:
        """One connection, from the first contact until it is lost; or one vain attempt at it."""
        try:
            async with KubeClient(connection, "workloads", self._options.client) as client:
                silent_since = float("-inf") if isinstance(self.workload, Unreachable) else self._heard_at
                await self._probe(client)
                await self._follow(client, silent_since)
        except KubeError as error:
            if self._is_silent():
                self._unreachable(Reason.UNREACHABLE, error.plain, cause_known=not isinstance(error, _SilenceError))

    async def _follow(self, client: KubeClient, silent_since: float) -> None:
        """Keep the cache current while there is contact. Raises KubeError when it is lost."""
        async with AsyncExitStack() as stack:
            reflectors = self._reflectors(client, silent_since)
            stack.callback(self._keep_gaps, reflectors)
            for reflector in reflectors:
                stack.push_async_callback(_end, asyncio.create_task(reflector.run()))
            read = asyncio.create_task(_all_read([r for r in reflectors if r.kind not in self._apart]))
            stack.push_async_callback(_end, read)
            if self._deps.companion is not None:
                fenced = client.fenced(self._deps.may_write)
                await stack.enter_async_context(self._deps.companion(self.cluster, fenced))
            stack.callback(self._close_gate)
            self.gate.client = client.fenced(self._deps.may_write)
            needed = [reflector for reflector in reflectors if reflector.kind not in self._apart]
            rest = [reflector for reflector in reflectors if reflector.kind in self._apart]
            complete_at = had_rest_at = self._time()
            while True:
                if all(reflector.complete for reflector in rest):
                    had_rest_at = self._time()
                lacks = self._time() - had_rest_at >= self._options.unreachable_after
                if all(reflector.complete for reflector in needed):
                    complete_at = self._time()
                    problem, missing = _problem(rest) if lacks else "", frozenset(self._missing)
                    self._is(Reached(self._key.name, _names(client.connection), problem, missing))
                elif self._time() - complete_at >= self._options.unreachable_after:
                    known = any(reflector.plain_problem for reflector in needed if not reflector.complete)
                    self._unreachable(Reason.UNREACHABLE, _problem(needed), cause_known=known)
                await _pause(self._options.probe_every, read)
                await self._probe_patiently(client)

    def _reflectors(self, client: KubeClient, silent_since: float) -> list[Reflector]:
        """A new connection is no outage by itself; one that comes after too long a silence ends one."""
        made = []
        meter, apart = Meter(self._options.memory), Meter(self._options.memory // _SHARE_APART)
        for kind in self.cache.stores:
            before = self._gaps.get(kind, Gap())
            lost_at = silent_since if before.lost_at is None else min(silent_since, before.lost_at)
            gap = Gap(lost_at, before.returned_at)
            source: Source = Metered(self._source(client, kind), apart if kind in self._apart else meter)
            if kind in OPTIONAL_KINDS:
                source = Optional(source, partial(self._is_missing, kind.plural), self._options.missing_pause)
            made.append(Reflector(source, self.cache, kind, self._options.reflector, gap))
        return made

    def _is_missing(self, plural: str, missing: bool) -> None:
        (self._missing.add if missing else self._missing.discard)(plural)
        if missing:
            _log.info("a kind is not served, so there are none", cluster=str(self.cluster), kind=plural)

    def _source(self, client: KubeClient, kind: Kind) -> KubeClient | Part:
        cached, part = client.named("cache"), self._deps.parts.get(kind)
        return cached if part is None else Part(cached, part)

    def _keep_gaps(self, reflectors: Iterable[Reflector]) -> None:
        self._gaps = {reflector.kind: reflector.gap for reflector in reflectors}

    async def _probe_patiently(self, client: KubeClient) -> None:
        """Raises KubeError only after a silence that is too long."""
        try:
            await self._probe(client)
        except KubeError:
            if self._is_silent():
                raise

    async def _probe(self, client: KubeClient) -> None:
        """Ask for something that only a sound API server can tell: one Node. A refusal is an answer too.

        ``/version`` would be answered by a server that has lost its etcd. Raises KubeError.
        """
        try:
            async with asyncio.timeout(self._options.probe_timeout):
                await (client.list_page(NODE, limit=1) if NODE in self.cache.stores else client.version())
        except TimeoutError as error:
            raise _SilenceError(f"no answer within {self._options.probe_timeout:g} s", sent=False) from error
        except ApiError as error:
            if error.code == 401 or error.code >= 500:
                raise
        self._heard_at = self._time()
        self._last_contact = self._deps.now()

    def _is_silent(self) -> bool:
        return self._time() - self._heard_at >= self._options.unreachable_after

    def failed(self, error: Exception) -> None:
        """A bug was met, or something that nobody thought of: it is said on this Cluster, and nothing else is hurt."""
        self._unreachable(Reason.UNREACHABLE, f"what it answered can't be taken in ({type(error).__name__})")

    def _unreachable(self, reason: Reason, why: str, *, cause_known: bool = True) -> None:
        """The first words for a trouble stay: others would cost a write each. A cause replaces silence, once."""
        before = self.workload if isinstance(self.workload, Unreachable) else None
        stays = reason is Reason.UNREACHABLE and (self._cause_known or not cause_known)
        if before is not None and before.reason == reason and (stays or before.why == why):
            return
        self._cause_known = cause_known
        self._is(Unreachable(self._secret_name(), str(reason), why, self._last_contact))

    def _secret_name(self) -> str:
        """ "" as long as nobody has ever seen that there is one."""
        body = self._cluster()
        return self._key.name if self._seen_with is not None or has_own_api(body) else recorded_secret(body)

    def _cluster(self) -> Obj | None:
        clusters = self._deps.home.stores.get(CLUSTER)
        return clusters.get(self.cluster) if clusters is not None else None

    def _is(self, workload: Workload) -> None:
        if workload == self.workload:
            return
        self.workload = workload
        if isinstance(workload, Unreachable):
            _log.warning(
                "cluster can't be reached", cluster=str(self.cluster), reason=workload.reason, why=workload.why
            )
        elif isinstance(workload, Reached):
            _log.info("cluster is reached", cluster=str(self.cluster), secret=workload.secret)
        self._tell(self.cluster)

    def _close_gate(self) -> None:
        self.gate.client = None

    def _secret_changed(self, change: Change, _from_list: bool) -> None:
        if change.old is None or change.new is None or change.old.get("data") != change.new.get("data"):
            self._again.set()

    def _time(self) -> float:
        return asyncio.get_running_loop().time()


async def _all_read(reflectors: Iterable[Reflector]) -> None:
    for reflector in reflectors:
        await reflector.synced.wait()


async def _pause(seconds: float, unless: asyncio.Task[None]) -> None:
    """``seconds``, or until ``unless`` is done, if it is not yet."""
    if unless.done():
        await asyncio.sleep(seconds)
    else:
        await asyncio.wait({unless}, timeout=seconds)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _for_ever() -> None:
    await asyncio.Event().wait()


def _names(connection: Connection) -> frozenset[str]:
    """Under which the API server is reached: the host of its URL, and the name in its certificate."""
    return frozenset({name for name in (urlsplit(connection.server).hostname, connection.server_name) if name})


def _problem(reflectors: Iterable[Reflector]) -> str:
    """What is not read, and why."""
    found = [f"{r.kind.plural}: {r.plain_problem or 'not read yet'}" for r in reflectors if not r.complete]
    return "; ".join(found)
