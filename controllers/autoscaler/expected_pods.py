"""Pods that ReplicaSets, Jobs and StatefulSets are about to make: they get Nodes before they are there.

    a ReplicaSet of 100 replicas was made a second ago, and 12 of its pods are there: 88 more are expected

The Cluster Autoscaler's proactive scale-up (``--enable-proactive-scaleup``, autoscaler#7145). A pod that is never made
would hold its Node for ever there (kubernetes-sigs/cluster-autoscaler#71), so here none is expected

- once neither the owner nor the newest of its pods is younger than ``FRESH``: it makes no more of them,
- of a ReplicaSet that says that the API server refuses its pods (condition ReplicaFailure),
- beyond what the ResourceQuotas of the namespace leave,
- where it would not look for a Node by itself: gated pods (autoscaler#8580), gangs, pods that take room of a
  ProvisioningRequest, pods with ``spec.nodeName`` and those of a scheduler that nobody has seen at work,
- where the next pod is not like the last one: volumes of its own, StatefulSets that make one pod after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from controllers.autoscaler.gangs import APIS
from controllers.autoscaler.limit_ranges import container_defaults
from controllers.autoscaler.options import AutoscalerOptions
from controllers.autoscaler.pod_quotas import quotas_left, use_of
from controllers.autoscaler.requests import consumed_by, pod_of_template
from controllers.kernel.conditions import find, is_true, parse_time
from controllers.kernel.ownership import controller_uid
from controllers.kernel.refs import (
    JOB,
    REPLICA_SET,
    STATEFUL_SET,
    Kind,
    Obj,
    is_deleting,
    key_of,
    mapping,
    spec_of,
    uid_of,
)
from controllers.scheduling.demand import ShapeError
from controllers.scheduling.reading import Reader
from controllers.scheduling.shapes import PodInfo

OWNERS = (REPLICA_SET, JOB, STATEFUL_SET)
FRESH = timedelta(seconds=30)
DEFAULT_SCHEDULER = "default-scheduler"
_OVER = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")
"""Conditions of a Job that makes no more pods."""
_NODE_FAULTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerObjects:
    """``owners``: those that make pods. ``resource_quotas`` and ``limit_ranges``: what their pods will have to keep."""

    owners: Mapping[Kind, Sequence[Obj]] = field(default_factory=dict)
    resource_quotas: Sequence[Obj] = ()
    limit_ranges: Sequence[Obj] = ()


@dataclass(slots=True)
class _Owner:
    """``wanted`` pods, of which ``there`` are; ``newest``: of these, with what was read of it."""

    kind: Kind
    body: Obj
    wanted: int
    there: int = 0
    newest: tuple[Obj, PodInfo] | None = None

    @property
    def missing(self) -> int:
        return max(0, self.wanted - self.there)

    def meets(self, body: Obj, pod: PodInfo) -> None:
        self.there += 1
        if self.newest is None or self.newest[1].created <= pod.created:
            self.newest = (body, pod)

    def is_at_work(self, now: datetime) -> bool:
        made = [self.body["metadata"].get("creationTimestamp"), self.newest[1].created if self.newest else None]
        return any(time is not None and now - time < FRESH for time in map(parse_time, made))


@dataclass(frozen=True, slots=True)
class _Next:
    """``body``: a pod like those to come, with what was read of it."""

    body: Obj
    pod: PodInfo


def wanted_by(kind: Kind, owner: Obj) -> int:
    """Pods that an owner is to have at a time, if it makes all at once and equal ones; else 0."""
    spec, status = spec_of(owner), mapping(owner.get("status"))
    template = spec_of(mapping(spec.get("template")))
    if is_deleting(owner) or template.get("nodeName") or template.get("schedulingGates") or _has_own_volumes(template):
        return 0
    if kind == JOB:
        return _wanted_by_job(spec, status)
    if kind == STATEFUL_SET and (spec.get("podManagementPolicy") != "Parallel" or spec.get("volumeClaimTemplates")):
        return 0
    return 0 if is_true(status.get("conditions"), "ReplicaFailure") else _whole(spec.get("replicas"), 1)


def _wanted_by_job(spec: Obj, status: Obj) -> int:
    """Of 10 completions 7 have succeeded, and 5 pods may run at a time: 3."""
    if spec.get("suspend") is True or any(is_true(status.get("conditions"), each) for each in _OVER):
        return 0
    parallel = _whole(spec.get("parallelism"), 1)
    if spec.get("completions") is None:
        return 0 if _whole(status.get("succeeded"), 0) else parallel
    return max(0, min(parallel, _whole(spec.get("completions"), 1) - _whole(status.get("succeeded"), 0)))


def lacks_pods(kind: Kind, owner: Obj) -> bool:
    """Whether it has reported so. What it says is a moment old, so pods are counted where this is true."""
    status = mapping(owner.get("status"))
    reported = status.get("active") if kind == JOB else status.get("replicas")
    return wanted_by(kind, owner) > _whole(reported, 0)


def expected_pods(
    objects: OwnerObjects,
    pods: Iterable[tuple[Obj, PodInfo | ShapeError]],
    *,
    reader: Reader,
    now: datetime,
    options: AutoscalerOptions,
) -> tuple[PodInfo, ...]:
    """``pods``: all that are there. At most ``options.growth.most_expected`` in all, the fewest of one owner first, so
    that one owner of very many leaves the others theirs.
    """
    lacking = {
        uid_of(body): _Owner(kind, body, wanted_by(kind, body))
        for kind, bodies in objects.owners.items()
        for body in bodies
        if lacks_pods(kind, body)
    }
    if not lacking:
        return ()
    _count(lacking, pods)
    found: list[PodInfo] = []
    quotas, defaults = quotas_left(objects.resource_quotas), container_defaults(objects.limit_ranges)
    for owner in sorted(lacking.values(), key=lambda each: (each.missing, key_of(each.body), uid_of(each.body))):
        if not owner.missing or not owner.is_at_work(now):
            continue
        following = _like_newest(owner) if owner.newest else _like_template(owner, reader, defaults)
        if following is None or not _looks_for_a_node(following, options):
            continue
        number = min(owner.missing, options.growth.most_expected - len(found))
        mine = [each for each in quotas.get(following.pod.namespace, ()) if each.counts(following.body)]
        use = use_of(following.body, following.pod.kind.demand.requests)
        number = min([number, *(count for left in mine for count, _ in left.headroom(use))])
        for left in mine:
            left.take(use, number)
        found += _numbered(owner, following.pod, number)
    return tuple(found)


def _count(owners: Mapping[str, _Owner], pods: Iterable[tuple[Obj, PodInfo | ShapeError]]) -> None:
    """Users write owner references, so a pod of another namespace is nobody's."""
    for body, pod in pods:
        if isinstance(pod, ShapeError):
            owner = owners.get(controller_uid(body))
            if owner is not None and key_of(owner.body).namespace == key_of(body).namespace:
                owner.there += 1
        elif pod.owner is not None and not pod.deleting and not pod.kind.keeping.finished:
            owner = owners.get(pod.owner.uid)
            if owner is not None and key_of(owner.body).namespace == pod.namespace:
                owner.meets(body, pod)


def _like_newest(owner: _Owner) -> _Next | None:
    assert owner.newest is not None
    body, pod = owner.newest
    looked_at = (find((body.get("status") or {}).get("conditions"), "PodScheduled") or {}).get("reason")
    seen_at_work = pod.node or looked_at == "Unschedulable" or _scheduler(body) == DEFAULT_SCHEDULER
    return _Next(body, pod) if seen_at_work else None


def _like_template(owner: _Owner, reader: Reader, defaults: Mapping[str, Any]) -> _Next | None:
    """As the API server would admit it. What a PriorityClass means is not known here."""
    meta, template = owner.body["metadata"], mapping(spec_of(owner.body).get("template"))
    spec = spec_of(template)
    if spec.get("priorityClassName") or not spec.get("containers") or _scheduler(template) != DEFAULT_SCHEDULER:
        return None
    body = pod_of_template({"template": template}, meta.get("namespace", ""), meta["name"])
    reference = {"kind": owner.kind.name, "name": meta["name"], "uid": uid_of(owner.body), "controller": True}
    body["metadata"]["ownerReferences"] = [{"apiVersion": owner.kind.api_version, **reference}]
    body["spec"] = {**body["spec"], "priority": 0, "tolerations": _tolerations(spec)}
    if (limits := defaults.get(meta.get("namespace", ""))) is not None:
        body = limits.applied(body)
    try:
        return _Next(body, reader.pod(body))
    except ShapeError:
        return None


def _tolerations(spec: Obj) -> list[Any]:
    """With those that the admission plugin DefaultTolerationSeconds gives to each pod."""
    given = [each for each in spec.get("tolerations") or () if isinstance(each, Mapping)]

    def tolerated(key: str) -> bool:
        concerned = [each for each in given if each.get("key") in (None, "", key)]
        return any(each.get("effect") in (None, "", "NoExecute") for each in concerned)

    more = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    return [*given, *({"key": key, **more} for key in _NODE_FAULTS if not tolerated(key))]


def _looks_for_a_node(following: _Next, options: AutoscalerOptions) -> bool:
    body, pod, growth = following.body, following.pod, options.growth
    if pod.kind.priority < growth.expendable_below or spec_of(body).get("schedulingGates"):
        return False
    if options.provisioning_requests and consumed_by(body) is not None:
        return False
    return not any(APIS[name].named_by(body) for name in growth.gangs)


def _numbered(owner: _Owner, pod: PodInfo, number: int) -> Iterator[PodInfo]:
    name = owner.body["metadata"]["name"]
    for place in range(number):
        yield pod._replace(name=f"{name}-expected-{place}", uid="", node="", created="")


def _scheduler(of: Obj) -> str:
    return str(spec_of(of).get("schedulerName") or DEFAULT_SCHEDULER)


def _has_own_volumes(spec: Obj) -> bool:
    return any("ephemeral" in volume for volume in spec.get("volumes") or () if isinstance(volume, Mapping))


def _whole(value: Any, default: int) -> int:
    return value if isinstance(value, int) else default
