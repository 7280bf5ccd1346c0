"""Gangs: pods that are of use only together. Which there are, what each still needs, in which order they are served.

| API | a pod names its gang in | the gang says |
|---|---|---|
| `scheduling.k8s.io/v1alpha2` (Kubernetes 1.36) | `spec.schedulingGroup` | `spec.schedulingPolicy.gang.minCount` |
| `scheduling.k8s.io/v1alpha3`, `…/v1beta1` (1.37) | the same | the same |
| `scheduling.x-k8s.io/v1alpha1` (coscheduling) | label `scheduling.x-k8s.io/pod-group` | `spec.minMember` |
| `scheduling.volcano.sh/v1beta1` (Volcano) | annotation `scheduling.k8s.io/group-name` | `spec.minMember` |

PodGroups of Kubernetes may ask for one place by ``spec.schedulingConstraints.topology``; those of 1.37 have a priority
of their own, and a part of a CompositePodGroup gets nothing: nobody here knows how many of its groups it needs. A group
without a gang policy, and one that has its minimum of pods on Nodes, is no gang (any more): its pods are asked for one
by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from api.selectors import Operator, Requirement
from controllers.kernel.conditions import parse_time
from controllers.kernel.refs import (
    COSCHEDULING_POD_GROUP,
    POD_GROUP,
    POD_GROUP_ALPHA2,
    POD_GROUP_ALPHA3,
    VOLCANO_POD_GROUP,
    Key,
    Kind,
    Obj,
    annotations_of,
    is_deleting,
    key_of,
    labels_of,
    mapping,
    spec_of,
    uid_of,
)
from controllers.scheduling.classes import Classes, Group
from controllers.scheduling.shapes import NodeInfo, PodInfo, PodKind

_COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
_VOLCANO_ANNOTATION = "scheduling.k8s.io/group-name"
_OVER = ("Succeeded", "Failed")
_DAWN = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """``pods`` look for a Node, ``need`` of them at once; more may come after. ``missing``: pods that don't look yet.

    ``topology``: label of Nodes that must be the same for all; ``domains``: its values where pods of it are already.
    """

    id: str
    uid: str
    created: datetime
    pods: tuple[PodInfo, ...]
    need: int
    missing: int = 0
    topology: str = ""
    domains: tuple[str, ...] = ()
    parent: str = ""
    """CompositePodGroup that it is a part of."""
    own_priority: int | None = None
    """What the group itself says (Kubernetes 1.37)."""

    @property
    def priority(self) -> int:
        if self.own_priority is not None:
            return self.own_priority
        return max((pod.kind.priority for pod in self.pods), default=0)

    @property
    def rank(self) -> tuple[int, datetime, str]:
        """Highest priority first, then who came first."""
        return -self.priority, self.created, self.id

    def choices(self) -> list[tuple[PodInfo, ...]]:
        """All of its pods, else as many as it needs."""
        return [self.pods, self.pods[: self.need]] if self.need < len(self.pods) else [self.pods]


@dataclass(frozen=True, slots=True)
class Api:
    kind: Kind
    named_by: Callable[[Obj], Any]
    minimum: Callable[[Obj], Any]
    topology: Callable[[Obj], Any] = lambda _group: None

    @property
    def name(self) -> str:
        return self.kind.api_version


def _native(pod: Obj) -> Any:
    return mapping(spec_of(pod).get("schedulingGroup")).get("podGroupName")


def _native_minimum(group: Obj) -> Any:
    return mapping(mapping(spec_of(group).get("schedulingPolicy")).get("gang")).get("minCount")


def _native_topology(group: Obj) -> Any:
    listed = mapping(spec_of(group).get("schedulingConstraints")).get("topology")
    return mapping(listed[0]).get("key") if isinstance(listed, list) and listed else None


def _member(group: Obj) -> Any:
    return spec_of(group).get("minMember")


APIS: Mapping[str, Api] = {
    api.name: api
    for api in (
        Api(POD_GROUP_ALPHA2, _native, _native_minimum, _native_topology),
        Api(POD_GROUP_ALPHA3, _native, _native_minimum, _native_topology),
        Api(POD_GROUP, _native, _native_minimum, _native_topology),
        Api(COSCHEDULING_POD_GROUP, lambda pod: labels_of(pod).get(_COSCHEDULING_LABEL), _member),
        Api(VOLCANO_POD_GROUP, lambda pod: annotations_of(pod).get(_VOLCANO_ANNOTATION), _member),
    )
}
"""By the name that ``--gangs`` takes."""


def kinds_of(names: Iterable[str]) -> tuple[Kind, ...]:
    return tuple(APIS[name].kind for name in names)


def read_gangs(
    groups: Mapping[str, Sequence[Obj]],
    pods: Iterable[Obj],
    *,
    pending: Iterable[PodInfo],
    nodes: Iterable[NodeInfo],
) -> tuple[Gang, ...]:
    """In the order in which they are served. ``groups``: by API; ``pods`` as they came, ``pending`` as read."""
    waiting = {(pod.namespace, pod.name): pod for pod in pending}
    labels = {node.name: node.labels for node in nodes}
    found: list[Gang] = []
    members = _members(groups, pods)
    for name, bodies in groups.items():
        for body in bodies:
            gang = _gang(APIS[name], body, members.get((name, key_of(body)), ()), waiting, labels)
            if gang is not None:
                found.append(gang)
    return tuple(sorted(found, key=lambda gang: gang.rank))


def _members(groups: Mapping[str, Sequence[Obj]], pods: Iterable[Obj]) -> dict[tuple[str, Key], list[Obj]]:
    apis = [APIS[name] for name in groups]
    found: dict[tuple[str, Key], list[Obj]] = {}
    for pod in pods:
        for api in apis:
            named = api.named_by(pod)
            if isinstance(named, str) and named:
                found.setdefault((api.name, Key(key_of(pod).namespace, named)), []).append(pod)
                break
    return found


def _gang(
    api: Api,
    body: Obj,
    members: Sequence[Obj],
    waiting: Mapping[tuple[str, str], PodInfo],
    labels: Mapping[str, Mapping[str, str]],
) -> Gang | None:
    """None where there are no pods, or where they are no longer asked for at once."""
    least = api.minimum(body)
    if isinstance(least, bool) or not isinstance(least, int) or least < 1 or is_deleting(body):
        return None
    alive = [pod for pod in members if mapping(pod.get("status")).get("phase") not in _OVER and not is_deleting(pod)]
    keys = [(key_of(pod).namespace, key_of(pod).name) for pod in alive]
    pods = sorted((waiting[key] for key in keys if key in waiting), key=lambda pod: (pod.created, pod.name))
    bound = [node for pod in alive if (node := _node_of(pod))]
    need = least - len(bound)
    if need <= 0 or not alive:
        return None
    topology = api.topology(body)
    key = topology if isinstance(topology, str) else ""
    there = {labels[node][key] for node in bound if node in labels and key in labels[node]} if key else set()
    return Gang(
        id=f"{api.kind.group} {key_of(body)}",
        uid=uid_of(body),
        created=parse_time(body["metadata"].get("creationTimestamp")) or _DAWN,
        pods=tuple(pods),
        need=min(need, len(pods)),
        missing=max(0, need - len(pods)),
        topology=key,
        domains=tuple(sorted(there)),
        **(_of_1_37(body) if api.kind in (POD_GROUP_ALPHA3, POD_GROUP) else {}),
    )


def _of_1_37(body: Obj) -> dict[str, Any]:
    priority, parent = spec_of(body).get("priority"), spec_of(body).get("parentCompositePodGroupName")
    known = isinstance(priority, int) and not isinstance(priority, bool)
    return {"own_priority": priority if known else None, "parent": parent if isinstance(parent, str) else ""}


def _node_of(pod: Obj) -> str:
    """Where it is, or is about to be."""
    return str(spec_of(pod).get("nodeName") or mapping(pod.get("status")).get("nominatedNodeName") or "")


def within(pods: Iterable[PodInfo], classes: Classes, *, topology: str = "", domain: str = "") -> list[Group]:
    """The pods by class; with a domain, as if each asked for Nodes in it."""
    if not domain:
        return classes.group(pods)
    narrowed: dict[PodKind, PodKind] = {}
    same_place = Requirement(topology, Operator.IN, (domain,))
    found = []
    for pod in pods:
        kind = narrowed.get(pod.kind)
        if kind is None:
            demand = replace(pod.kind.demand, node_selector=(*pod.kind.demand.node_selector, same_place))
            kind = narrowed[pod.kind] = replace(pod.kind, demand=demand)
        found.append(pod._replace(kind=kind))
    return classes.group(found)


def in_turn(unschedulable: Sequence[Group], gangs: Sequence[Gang]) -> list[Gang | list[Group]]:
    """Pods in the order in which they get room: gangs by rank, before each the single pods of a higher priority."""
    found: list[Gang | list[Group]] = []
    rest = list(unschedulable)
    for gang in gangs:
        first = _above(rest, gang.priority)
        if first:
            found.append(first)
            rest = _without(rest, first)
        found.append(gang)
    return [*found, rest] if rest else found


def _above(groups: Iterable[Group], priority: int) -> list[Group]:
    chosen = ((each.pod_class, tuple(pod for pod in each.pods if pod.kind.priority > priority)) for each in groups)
    return [Group(pod_class, pods) for pod_class, pods in chosen if pods]


def _without(groups: Iterable[Group], taken: Iterable[Group]) -> list[Group]:
    gone = {id(pod) for each in taken for pod in each.pods}
    kept = ((each.pod_class, tuple(pod for pod in each.pods if id(pod) not in gone)) for each in groups)
    return [Group(pod_class, pods) for pod_class, pods in kept if pods]


def single(pods: Iterable[PodInfo], gangs: Iterable[Gang]) -> list[PodInfo]:
    """Those that are of no gang."""
    members: Collection[tuple[str, str]] = {(pod.namespace, pod.name) for gang in gangs for pod in gang.pods}
    return [pod for pod in pods if (pod.namespace, pod.name) not in members]
