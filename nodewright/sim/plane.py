"""The API as the simulation reaches it: the embedded plane's own store, called directly; answers may get lost.

It performs a plan's actions with the meaning that the executor gives them on a cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import count
from random import Random
from typing import Any, assert_never

from controllers.kernel.actions import ApiAction, Create, CreateFromTemplate, Delete, Event, Evict, Patch, Scale
from controllers.kernel.refs import Key, Kind, Obj, Ref, uid_of
from nodewright.apiserver.store import Store
from nodewright.apiserver.values import (
    ApiError,
    DeleteOptions,
    ListOptions,
    ListResult,
    PatchRequest,
    Resource,
    WriteOptions,
)
from nodewright.sim.clock import VirtualClock
from nodewright.sim.faults import NONE, Faults

GC_STEPS = 100
OUTAGE = timedelta(seconds=30)
"""A shorter silence is none (``ReflectorOptions.outage``)."""


class AnswerLost(Exception):
    """The write may have worked; nobody knows before the next read."""


class Plane:
    """All namespaces of one simulated cluster."""

    def __init__(self, clock: VirtualClock, crds: list[dict[str, Any]], random: Random, faults: Faults = NONE) -> None:
        uids = count(1)
        self.store = Store(clock=clock, new_uid=lambda: f"00000000-0000-4000-8000-{next(uids):012d}")
        self.writes: Counter[str] = Counter()
        self._random = random
        self.faults = faults
        self.down_since: datetime | None = None
        """Since when nobody reaches the API; None: it is up."""
        self.returned_at: datetime | None = None
        """When the last outage ended that was longer than OUTAGE."""
        self._clock = clock
        crd_resource = self.store.resources.by_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
        assert crd_resource is not None, "the store has no CustomResourceDefinition"
        for crd in crds:
            self.store.create(crd_resource, "", crd, WriteOptions())

    def go_down(self) -> None:
        """Nobody reaches the API until ``come_back``."""
        self.down_since = self._clock()

    def come_back(self) -> None:
        now = self._clock()
        if self.down_since is not None and now - self.down_since > OUTAGE:
            self.returned_at = now
        self.down_since = None

    def resource(self, kind: Kind) -> Resource:
        found = self.store.resources.find(kind.group, kind.version, kind.plural)
        if found is None:
            raise LookupError(f"{kind} is not served; are its CRDs installed?")
        return found

    def get(self, kind: Kind, key: Key) -> Obj | None:
        try:
            return self.store.get(self.resource(kind), key.namespace, key.name)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def list_page(self, kind: Kind) -> ListResult:
        return self.store.list(self.resource(kind), "", ListOptions())

    def list(self, kind: Kind) -> list[dict[str, Any]]:
        return self.list_page(kind).items

    def create(self, kind: Kind, body: Mapping[str, Any]) -> Obj:
        namespace = body["metadata"].get("namespace", "")
        return self.store.create(self.resource(kind), namespace, dict(body), WriteOptions()).obj

    def patch(self, kind: Kind, key: Key, patch: Mapping[str, Any], subresource: str = "") -> Obj:
        request = PatchRequest("merge", dict(patch), WriteOptions())
        return self.store.patch(self.resource(kind), key.namespace, key.name, request, subresource=subresource).obj

    def delete(self, kind: Kind, key: Key, propagation: str = "Background") -> None:
        options = DeleteOptions(propagation=propagation)  # type: ignore[arg-type]  # one of the three
        self.store.delete(self.resource(kind), key.namespace, key.name, options)

    def settle(self) -> None:
        """Let the garbage collector finish."""
        while self.store.run_gc(limit=GC_STEPS):
            pass

    def perform(self, action: ApiAction) -> Obj | None:
        """Do one action of a plan; the object as it is afterwards, if there is one.

        Raises ApiError (it did not work) or AnswerLost (it did, but the caller can't know).
        """
        if self.down_since is not None:
            raise ApiError(503, "ServiceUnavailable", "simulated: the API server is down")
        if self._random.random() < self.faults.refused_write:
            raise ApiError(500, "InternalError", "simulated: the API server failed")
        answer = self._perform(action)
        if not isinstance(action, Event):
            self.writes[_label(action)] += 1
        if self._random.random() < self.faults.lost_answer:
            raise AnswerLost(_label(action))
        return answer

    def _perform(self, action: ApiAction) -> Obj | None:
        match action:
            case Create():
                return self._create(action)
            case CreateFromTemplate():
                template = self.store.get(self.resource(action.template.kind), *_place(action.template.key))
                return self._create(action.filled(template))
            case Patch():
                return self._patch(action.target, action)
            case Scale():
                return self._scale(action)
            case Delete():
                return self._delete(action)
            case Evict():
                self._evict(action)
                return None
            case Event():
                return None
            case _:
                assert_never(action)

    def _evict(self, action: Evict) -> None:
        key = action.target.key
        options = {} if action.grace_seconds is None else {"gracePeriodSeconds": action.grace_seconds}
        meta = {"name": key.name}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta, "deleteOptions": options}
        self.store.evict(key.namespace, key.name, body)

    def _scale(self, action: Scale) -> Obj | None:
        patch = {"spec": {"replicas": action.replicas}}
        self.patch(action.target.kind, action.target.key, patch, "scale")
        return self.get(action.target.kind, action.target.key)

    def _create(self, action: Create) -> Obj:
        meta = action.body["metadata"]
        try:
            return self.create(action.kind, action.body)
        except ApiError as error:
            existing = self.get(action.kind, Key(meta.get("namespace", ""), meta["name"]))
            if error.reason == "AlreadyExists" and existing is not None and _same_owner(existing, action.body):
                return existing
            raise

    def _patch(self, target: Ref, action: Patch) -> Obj:
        body = dict(action.patch)
        guard = {"resourceVersion": action.resource_version} if action.resource_version else {}
        identity = {"uid": target.uid} if target.uid else {}
        if guard or identity:
            body["metadata"] = {**body.get("metadata", {}), **guard, **identity}
        return self.patch(target.kind, target.key, body, action.subresource)

    def _delete(self, action: Delete) -> Obj | None:
        target, key = action.target, action.target.key
        options = DeleteOptions(
            action.propagation,
            uid=target.uid,
            resource_version=action.resource_version,
            grace_seconds=action.grace_seconds,
        )
        try:
            self.store.delete(self.resource(target.kind), key.namespace, key.name, options)
        except ApiError as error:
            if error.code != 404:
                raise
        return self.get(target.kind, target.key)


def _place(key: Key) -> tuple[str, str]:
    return key.namespace, key.name


def _same_owner(existing: Obj, wanted: Mapping[str, Any]) -> bool:
    def owners(obj: Mapping[str, Any]) -> set[str]:
        return {reference["uid"] for reference in obj["metadata"].get("ownerReferences") or ()}

    return owners(existing) == owners(wanted) and not uid_of(wanted)


def _label(action: ApiAction) -> str:
    match action:
        case Create() | CreateFromTemplate():
            return f"create {action.kind}"
        case Patch() if action.subresource:
            return f"patch {action.target.kind}/{action.subresource}"
        case _:
            return f"{type(action).__name__.lower()} {action.target.kind}"
