"""Carry out a Plan: steps one after the other, the actions of a step side by side.

What an answer means:

| action | done | else |
|---|---|---|
| Create | created, or AlreadyExists and the owner is ours | another's: failed. No answer: unresolved, see below |
| CreateFromTemplate | as Create | no template: failed, said in an Event. No answer: the next reconcile tries again |
| Patch | patched | gone or changed meanwhile: stale, the plan was made on an old view |
| Scale | patched | as Patch; sent again where only the status has changed |
| Delete | accepted, or gone already, or a namesake came since | failed |
| Evict | accepted, or the pod is gone | refused by a PodDisruptionBudget, or put off: no failure, asked again |
| Event | always | |
| bootstrap actions | handed over to the directory of bootstrap data, likewise | |
| RemoveEtcdMember, TakeEtcdSnapshot | handed over to the directory of etcd's members, likewise | |
| RenewKubeconfig | handed over to the directory of certificates, likewise | |
| EnsureEndpoint, RemoveEndpoint | handed over to the directory of endpoints, likewise | |
| host actions | handed over to the directory; their outcome is observed in a later reconcile | |

An unresolved Create may have happened. It is sent again under the same name, before anything else is planned for the
key, until the server says either "created" or "exists".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, assert_never

from controllers.kernel.actions import (
    Action,
    BootstrapAction,
    Create,
    CreateFromTemplate,
    CreateHost,
    Delete,
    DeleteHost,
    EndpointAction,
    EnsureBootstrap,
    EnsureEndpoint,
    EtcdAction,
    Event,
    Evict,
    HostAction,
    Patch,
    RebootHost,
    RemoveBootstrap,
    RemoveEndpoint,
    RemoveEtcdMember,
    RenewKubeconfig,
    Scale,
    TakeEtcdSnapshot,
    UpdateHost,
)
from controllers.kernel.plan import Plan, Step
from controllers.kernel.refs import (
    EVENT,
    WORKLOAD_KINDS,
    Key,
    Kind,
    Obj,
    Ref,
    intent_of,
    key_of,
    resource_version_of,
    uid_of,
)
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.kube.errors import ApiError, KubeError
from nodewright.runtime.telemetry import metrics
from nodewright.runtime.telemetry.loop_time import shared
from nodewright.runtime.writes.evictions import EvictionPace


class Writer(Protocol):
    """What the executor needs of a client (``KubeClient`` has it; the simulation brings its own)."""

    async def get(self, kind: Kind, key: Key) -> dict[str, Any]: ...

    async def create(self, kind: Kind, body: Obj) -> dict[str, Any]: ...

    async def merge_patch(
        self, target: Ref, patch: Mapping[str, Any], *, subresource: str = "", resource_version: str = ""
    ) -> dict[str, Any]: ...

    async def scale(self, target: Ref, replicas: int, resource_version: str = "") -> dict[str, Any]: ...

    async def delete(
        self,
        target: Ref,
        propagation: str = "Background",
        grace_seconds: int | None = None,
        resource_version: str = "",
    ) -> dict[str, Any]: ...

    async def evict(self, target: Ref, grace_seconds: int | None = None) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Failure:
    """One action that did not succeed. ``stale``: only the view was old; looking again is the cure."""

    action: Action
    error: KubeError
    stale: bool = False


@dataclass(slots=True)
class Execution:
    """What became of a plan. ``unresolved`` creations must be resolved before the key is planned again."""

    failures: list[Failure] = field(default_factory=list)
    unresolved: list[Create] = field(default_factory=list)
    writes: int = 0

    @property
    def ok(self) -> bool:
        return not self.failures and not self.unresolved


@dataclass(frozen=True, slots=True)
class APITarget:
    """One API server: where writes go, which cache hears of their answers, and how fast pods may be evicted there.

    ``record`` takes Events about what lives there, with the name of the reconciler that tells them.
    """

    writer: Writer
    cache: Cache
    evictions: EvictionPace = field(default_factory=EvictionPace)
    record: Callable[[str, Event], None] = lambda _reconciler, _event: None


@dataclass(frozen=True, slots=True)
class ExecutorDeps:
    """Where actions go. ``submit_host`` may raise LookupError; ``record`` takes Events.

    ``workload`` is where actions on WORKLOAD_KINDS go instead, in reconciles of a Cluster that has an API of its own.
    ``evictions`` is shared by all drains in the management cluster; each workload cluster has a pace of its own.
    ``tell`` hears of each action that was carried out.
    """

    writer: Writer
    cache: Cache
    submit_host: Callable[[HostAction], bool]
    record: Callable[[Event], None]
    now: Callable[[], datetime]
    workload: APITarget | None = None
    submit_bootstrap: Callable[[BootstrapAction], bool] = lambda _action: False
    submit_etcd: Callable[[EtcdAction], bool] = lambda _action: False
    submit_renewal: Callable[[RenewKubeconfig], bool] = lambda _action: False
    submit_endpoint: Callable[[EndpointAction], bool] = lambda _action: False
    evictions: EvictionPace = field(default_factory=EvictionPace)
    tell: Callable[[Action], None] = lambda _action: None

    def submit_rare(self, action: EtcdAction | RenewKubeconfig | EndpointAction) -> bool:
        """To whoever carries out what is no write to an API server, host or bootstrap data. False: not now."""
        match action:
            case RemoveEtcdMember() | TakeEtcdSnapshot():
                return self.submit_etcd(action)
            case RenewKubeconfig():
                return self.submit_renewal(action)
            case _:
                return self.submit_endpoint(action)

    def target_of(self, kind: Kind) -> APITarget:
        if self.workload is not None and kind in WORKLOAD_KINDS:
            return self.workload
        return APITarget(self.writer, self.cache, self.evictions)


class Executor:
    """Executes the plans of one reconciler. ``at_once`` bounds how many actions of a step are under way."""

    def __init__(self, reconciler: str, executor_deps: ExecutorDeps, at_once: int = 50) -> None:
        self._reconciler = reconciler
        self._executor_deps = executor_deps
        self._at_once = at_once

    async def execute(self, plan: Plan) -> Execution:
        """Stops after the first step in which an action did not succeed."""
        execution = Execution()
        for step in plan.steps:
            await self._step(step, execution)
            if not execution.ok:
                break
        return execution

    async def resolve(self, creates: list[Create]) -> Execution:
        """Send unresolved creations again."""
        execution = Execution()
        await self._step(tuple(creates), execution)
        return execution

    async def _step(self, step: Step, execution: Execution) -> None:
        if len(step) == 1:
            await self._act(step[0], execution)
            return
        waiting = iter(step)

        async def work() -> None:
            for action in waiting:
                await self._act(action, execution)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._at_once, len(step))):
                group.create_task(shared(work()))

    async def _act(self, action: Action, execution: Execution) -> None:
        """One action; failures are collected, so that one does not stop its siblings."""
        result = "ok"
        try:
            result = await self._carry_out(action, execution)
        except KubeError as error:
            result = self._failed(action, error, execution)
        metrics.of(metrics.ACTIONS, self._reconciler, type(action).__name__, result).inc()
        if result in _DONE:
            self._executor_deps.tell(action)

    def _failed(self, action: Action, error: KubeError, execution: Execution) -> str:
        if isinstance(action, Create) and error.ambiguous:
            execution.unresolved.append(action)
            return "unresolved"
        stale = isinstance(error, ApiError) and (error.conflict or error.not_found)
        stale = stale and not isinstance(action, CreateFromTemplate)
        execution.failures.append(Failure(action, error, stale))
        return "stale" if stale else "failed"

    async def _carry_out(self, action: Action, execution: Execution) -> str:
        executor_deps = self._executor_deps
        match action:
            case Event(target=Ref(kind=kind)):
                if executor_deps.workload is not None and kind in WORKLOAD_KINDS:
                    executor_deps.workload.record(self._reconciler, action)
                else:
                    executor_deps.record(action)
                return "ok"
            case CreateHost() | UpdateHost() | DeleteHost() | RebootHost():
                return "ok" if executor_deps.submit_host(action) else "refused"
            case EnsureBootstrap() | RemoveBootstrap():
                return "ok" if executor_deps.submit_bootstrap(action) else "refused"
            case RemoveEtcdMember() | TakeEtcdSnapshot() | RenewKubeconfig() | EnsureEndpoint() | RemoveEndpoint():
                return "ok" if executor_deps.submit_rare(action) else "refused"
            case Create():
                result = await self._create(action)
            case CreateFromTemplate():
                result = await self._create(action.filled(await self._template(action)))
            case Patch():
                result = await self._patch(action)
            case Scale():
                result = await self._scale(action)
            case Delete():
                result = await self._delete(action)
            case Evict():
                return await self._evict(action, execution)
            case _:
                assert_never(action)
        execution.writes += 1
        return result

    async def _create(self, action: Create) -> str:
        place = self._executor_deps.target_of(action.kind)
        try:
            created = await place.writer.create(action.kind, action.body)
        except ApiError as error:
            if not error.already_exists or action.kind == EVENT:
                raise
            existing = await place.writer.get(action.kind, key_of(action.body))
            place.cache.wrote(action.kind, existing)
            if not _is_ours(existing, action.body):
                raise
            return "existed"
        place.cache.wrote(action.kind, created)
        return "ok"

    async def _template(self, action: CreateFromTemplate) -> Obj:
        """Its template. A missing one is said in an Event: no reconciler sees it, and looking again is no cure."""
        try:
            return await self._executor_deps.writer.get(action.template.kind, action.template.key)
        except ApiError as error:
            if error.not_found:
                self._executor_deps.record(
                    Event(action.template, "Warning", "TemplateNotFound", f"{action.why}; it is not there")
                )
            raise

    async def _patch(self, action: Patch) -> str:
        place = self._executor_deps.target_of(action.target.kind)
        try:
            patched = await place.writer.merge_patch(
                action.target, action.patch, subresource=action.subresource, resource_version=action.resource_version
            )
        except ApiError as error:
            if error.not_found and action.target.uid:
                place.cache.deleted(action.target.kind, action.target.key, action.target.uid)
            raise
        place.cache.wrote(action.target.kind, patched)
        return "ok"

    async def _scale(self, action: Scale) -> str:
        """Once more where only the status was written since it was decided, as soon as the cache shows so."""
        target, place = action.target, self._executor_deps.target_of(action.target.kind)
        version = action.resource_version
        for pause in (*_SCALE_PAUSES, None):
            try:
                await place.writer.scale(target, action.replicas, version)
                break
            except ApiError as error:
                if not (error.conflict and action.intent) or pause is None:
                    raise
                await asyncio.sleep(pause)
                found = place.cache.stores[target.kind].get(target.key)
                if found is None or intent_of(found) != action.intent:
                    raise
                version = resource_version_of(found)
        return "ok"

    async def _delete(self, action: Delete) -> str:
        target = action.target
        place = self._executor_deps.target_of(target.kind)
        try:
            answer = await place.writer.delete(
                target, action.propagation, action.grace_seconds, action.resource_version
            )
        except ApiError as error:
            if not error.not_found and not (error.conflict and await self._is_namesake(target)):
                raise
            if target.uid:
                place.cache.deleted(target.kind, target.key, target.uid)
            return "gone"
        if answer.get("kind") == target.kind.name and answer["metadata"].get("deletionTimestamp"):
            place.cache.wrote(target.kind, answer)
        elif answer.get("kind") == "Status" and target.uid:
            place.cache.deleted(target.kind, target.key, target.uid)
        return "ok"

    async def _is_namesake(self, target: Ref) -> bool:
        """The object of that name has another uid now: the one that was meant is gone."""
        if not target.uid:
            return False
        place = self._executor_deps.target_of(target.kind)
        try:
            found = await place.writer.get(target.kind, target.key)
        except ApiError as error:
            return error.not_found
        place.cache.wrote(target.kind, found)
        return uid_of(found) != target.uid

    async def _evict(self, action: Evict, execution: Execution) -> str:
        """A refusal or a postponement is no failure: nobody waits for it here, a later reconcile asks again."""
        pod = action.target
        place = self._executor_deps.target_of(pod.kind)
        pace = place.evictions
        if not pace.may(pod.uid, asyncio.get_running_loop().time()):
            return "put off"
        execution.writes += 1
        try:
            await place.writer.evict(pod, action.grace_seconds)
        except ApiError as error:
            if error.code == 429:
                pace.refused(pod.uid, asyncio.get_running_loop().time())
                return "refused"
            if not error.not_found:
                raise
            pace.accepted(pod.uid)
            return "gone"
        pace.accepted(pod.uid)
        return "ok"


_SCALE_PAUSES = (0.05, 0.1, 0.2, 0.4)
"""Seconds before a Scale is sent again: a watch takes its time, and statuses are written often."""
_DONE = frozenset(("ok", "existed"))
"""Results after which an action has been carried out."""


def _is_ours(existing: Obj, wanted: Obj) -> bool:
    """Same controlling owner. Without one wanted, the name alone is the identity."""
    return _controller(existing) == _controller(wanted)


def _controller(obj: Obj) -> str:
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return str(reference.get("uid", ""))
    return ""
