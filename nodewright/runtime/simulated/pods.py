"""What else a cluster of simulated hosts needs for pods to run: somebody who binds them, and kubelets that start them.

Neither decides anything here: ``controllers.binder`` says which pod goes where, ``providers.simulated.pods`` what a
kubelet says. While no pod waits, each change of a pod costs one question, and other changes cost nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from types import TracebackType
from typing import Any

import structlog

from controllers.binder.decisions import Bind, Refuse
from controllers.binder.observe import Objects, observe, waits
from controllers.kernel.conditions import format_time, is_true
from controllers.kernel.refs import NAMESPACE, NODE, POD, Key, Kind, Obj, key_of, ref_of
from controllers.scheduling.reading import Reader
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.store import Change
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError, KubeError
from nodewright.runtime.simulated.kubelets import USER_AGENT
from providers.simulated import pods as simulated

_log = structlog.get_logger("nodewright.pods")

BINDER_READS = (POD, NODE, NAMESPACE)
KUBELETS_READ = (POD, NODE)
_GATHER = 0.05
"""Seconds in which changes are gathered before a reconcile."""
_SHARE = 10
"""Decisions take at most one part in so many of the time. What an API server takes to answer is no decision."""
_RETRY = 1.0
_BINDS_AT_ONCE = 16
_STATUSES_AT_ONCE = 4
"""As kwok's ``podPlayStageParallelism``: the Nodes and pods that others wait for go first."""


class _PodReconciles:
    """Reconciles after each change while pods are ``open``. An async context manager; one event loop."""

    name: str

    def __init__(self, client: KubeClient, cache: Cache, now: Callable[[], datetime]) -> None:
        self._client = client
        self._cache = cache
        self._now = now
        self._open: dict[Key, None] = {}
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        for pod in self._cache.stores[POD]:
            self._note(Change(POD, key_of(pod), None, pod), True)
        self._cache.listen(POD, self._note)
        for kind in self.reads():
            if kind != POD:
                self._cache.listen(kind, self._hear)
        self._task = asyncio.create_task(self._run(), name=self.name)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def reads(self) -> tuple[Kind, ...]:
        raise NotImplementedError

    def is_open(self, pod: Obj) -> bool:
        raise NotImplementedError

    async def reconcile(self) -> float:
        """One look at all open pods; gives the seconds that deciding took. Raises KubeError if it is to be repeated
        without a change.
        """
        raise NotImplementedError

    def _note(self, change: Change, from_list: bool) -> None:
        if change.new is not None and self.is_open(change.new):
            self._open[change.key] = None
        else:
            self._open.pop(change.key, None)
        self._hear(change, from_list)

    def _hear(self, _change: Change, _from_list: bool) -> None:
        if self._open:
            self._woken.set()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._woken.wait()
            await asyncio.sleep(_GATHER)
            self._woken.clear()
            decided = 0.0
            try:
                if all(self._cache.complete(kind) for kind in self.reads()):
                    decided = await self.reconcile()
                else:
                    loop.call_later(_RETRY, self._woken.set)
            except KubeError as error:
                _log.debug("pods are left for later", what=self.name, error=str(error))
                loop.call_later(_RETRY, self._woken.set)
            except Exception:
                _log.exception("reconcile failed", what=self.name)
                loop.call_later(_RETRY, self._woken.set)
            await asyncio.sleep(_SHARE * decided)


class Binder(_PodReconciles):
    """kube-scheduler's part: pending pods are bound to Nodes, or get an event that says why not."""

    name = "binder"

    def __init__(self, client: KubeClient, cache: Cache, now: Callable[[], datetime]) -> None:
        super().__init__(client.named("binder"), cache, now)
        self._reader = Reader()
        self._bound: dict[str, str] = {}
        """Pods that we bound and that the cache still shows without a Node, by uid."""
        self._plan: Callable[..., Iterable[Bind | Refuse]] | None = None

    def reads(self) -> tuple[Kind, ...]:
        return BINDER_READS

    def is_open(self, pod: Obj) -> bool:
        return waits(pod)

    async def reconcile(self) -> float:
        if self._plan is None:
            self._plan = await asyncio.to_thread(_load_plan)
        stores, started = self._cache.stores, time.monotonic()
        self._forget_seen()
        observed = observe(Objects(stores[NODE], stores[POD], stores[NAMESPACE], self._bound), self._reader)
        plan = tuple(self._plan(observed))
        decided = time.monotonic() - started
        await _all((self._carry_out(each) for each in plan), _BINDS_AT_ONCE)
        return decided

    async def _carry_out(self, decided: Bind | Refuse) -> None:
        try:
            if isinstance(decided, Bind):
                await self._client.bind(decided.pod, decided.node)
                self._bound[decided.pod.uid] = decided.node
                _log.info("bound", pod=str(decided.pod.key), node=decided.node)
            else:
                await self._client.report_status(decided.pod, {"conditions": [self._condition(decided)]})
        except ApiError as error:
            if not error.not_found and not error.conflict:
                raise

    def _condition(self, decided: Refuse) -> dict[str, Any]:
        says, since = decided.says, format_time(self._now())
        wording = {"reason": says.reason, "message": says.message}
        return {"type": "PodScheduled", "status": "False", **wording, "lastTransitionTime": since}

    def _forget_seen(self) -> None:
        for uid in list(self._bound):
            pod = self._cache.stores[POD].by_uid(uid)
            if pod is None or not waits(pod):
                del self._bound[uid]
        self._reader.look()


class PodKubelets(_PodReconciles):
    """The kubelets of simulated hosts, as far as pods are concerned: at once, as long as the Node is Ready."""

    name = "pod kubelets"

    def __init__(self, client: KubeClient, cache: Cache, now: Callable[[], datetime]) -> None:
        super().__init__(client.named("kubelets", USER_AGENT), cache, now)
        self._served: dict[Key, str] = {}
        """Pods that were answered, with the resourceVersion that the cache still shows of them."""

    def reads(self) -> tuple[Kind, ...]:
        return KUBELETS_READ

    def is_open(self, pod: Obj) -> bool:
        return simulated.is_to_start(pod) or simulated.is_to_end(pod)

    async def reconcile(self) -> float:
        pods = self._cache.stores[POD]
        found = {key: pod for key in self._open if (pod := pods.get(key)) is not None}
        shown = {key: _version(pod) for key, pod in found.items()}
        self._served = {key: version for key, version in self._served.items() if shown.get(key) == version}
        await _all((self._serve(pod) for key, pod in found.items() if key not in self._served), _STATUSES_AT_ONCE)
        return 0.0

    async def _serve(self, pod: Obj) -> None:
        node = self._cache.stores[NODE].get(Key("", pod["spec"]["nodeName"]))
        if node is None or not _is_served(node):
            return
        ref = ref_of(POD, pod)
        try:
            if simulated.is_to_end(pod):
                await self._client.delete(ref, grace_seconds=0)
            else:
                await self._client.report_status(ref, simulated.running(pod, node, self._now()))
            self._served[key_of(pod)] = _version(pod)
        except ApiError as error:
            if not error.not_found and not error.conflict:
                raise


def _load_plan() -> Callable[..., Iterable[Bind | Refuse]]:
    """numpy comes with it: loaded once a pod waits, and in a thread, since it takes a tenth of a second."""
    from controllers.binder.plan import plan  # noqa: PLC0415

    return plan


def _version(pod: Obj) -> str:
    return str(pod["metadata"].get("resourceVersion", ""))


def _is_served(node: Obj) -> bool:
    """Whether a simulated host is behind it, and its kubelet at work."""
    simulated_host = str((node.get("spec") or {}).get("providerID", "")).startswith("simulated://")
    return simulated_host and is_true((node.get("status") or {}).get("conditions"), "Ready")


async def _all(jobs: Iterable[Awaitable[None]], at_once: int) -> None:
    """So many at a time. Raises the first error, once all have been tried."""
    waiting, errors = iter(jobs), list[KubeError]()

    async def work() -> None:
        for job in waiting:
            try:
                await job
            except KubeError as error:
                errors.append(error)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(work())
    if errors:
        raise errors[0]
