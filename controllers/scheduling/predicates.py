"""kube-scheduler's predicates for one pod, Node by Node, each no with its reason.

Read this to learn what fits. ``fitting`` computes the same for a whole class of pods and all Nodes at once; a
property test holds the two to each other, and ``tests/realplane`` holds this one to kube-scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from controllers.scheduling import refusals
from controllers.scheduling.classes import PodClass
from controllers.scheduling.refusals import Refusal
from controllers.scheduling.shapes import (
    PODS,
    UNSCHEDULABLE_TAINT,
    Demand,
    NodeInfo,
    PodTerm,
    Spread,
    Taint,
    Volume,
)

_CORDON = (Taint(UNSCHEDULABLE_TAINT, "", "NoSchedule"),)
Place = tuple[str, str]
"""Topology key and value."""


@dataclass(frozen=True, slots=True)
class Occupied:
    """A Node with the pods on it."""

    node: NodeInfo
    pods: Mapping[PodClass, int] = field(default_factory=dict)


def static_refusal(pod: PodClass, node: NodeInfo) -> Refusal | None:
    """The part that depends on nothing but the two: cordon, taints, node selector and affinity."""
    refused = taint_refusal(pod.demand, node)
    if refused:
        return refused
    return None if pod.demand.selects(node.labels, node.name) else refusals.NOT_SELECTED


def taint_refusal(demand: Demand, node: NodeInfo) -> Refusal | None:
    """Cordon and taints."""
    if node.unschedulable and demand.untolerated(_CORDON):
        return refusals.UNSCHEDULABLE
    return refusals.UNTOLERATED if demand.untolerated(node.taints) else None


def volume_refusal(volumes: Iterable[Volume], node: NodeInfo) -> Refusal | None:
    """Whether the volumes can be had on this Node: binding first, then zones, as kube-scheduler asks."""
    volumes = tuple(volumes)
    for volume in volumes:
        if volume.terms is not None and not any(term.matches(node.labels, node.name) for term in volume.terms):
            return refusals.VOLUME_ELSEWHERE if volume.bound else refusals.NO_VOLUME_HERE
    for volume in volumes:
        if any(zone.key in node.labels for zone in volume.zones) and not all(
            zone.matches(node.labels) for zone in volume.zones
        ):
            return refusals.OTHER_ZONE
    return None


def lacking(pod: PodClass, node: NodeInfo, pods: Mapping[PodClass, int]) -> list[str]:
    """Resources of which the Node has too little left."""
    there = dict(node.allocatable)
    short = [PODS] if sum(pods.values()) + 1 > there.get(PODS, 0) else []
    used: Counter[str] = Counter()
    for other, count in pods.items():
        used.update({name: amount * count for name, amount in other.requests})
    return short + [name for name, amount in pod.requests if amount > there.get(name, 0) - used[name]]


class Judge:
    """What the whole cluster means for one pod, worked out once where it is asked for; ``refusal`` then asks Node by
    Node.
    """

    def __init__(self, pod: PodClass, nodes: Sequence[Occupied]) -> None:
        self._pod = pod
        self._demand = pod.demand
        self._nodes = nodes

    def refusal(self, here: Occupied) -> Refusal | None:
        """None if the pod fits. Asked in kube-scheduler's order, the first no counts."""
        if self._demand.blocked:
            return refusals.blocked(self._demand.blocked)
        node = here.node
        return (
            static_refusal(self._pod, node)
            or self._ports(here)
            or self._resources(here)
            or (refusals.VOLUME_IN_USE if self._in_use else None)
            or self._volume_limits(here)
            or volume_refusal(self._demand.volumes, node)
            or next((no for no in (each.refusal(node) for each in self._spreads) if no), None)
            or self._inter_pod(node)
        )

    @cached_property
    def _spreads(self) -> list[_SpreadCount]:
        return [_SpreadCount(each, self._pod, self._nodes) for each in self._demand.spread]

    @cached_property
    def _in_use(self) -> bool:
        mine = frozenset(volume.handle for volume in self._demand.volumes if volume.exclusive)
        if not mine:
            return False
        return any(
            volume.handle in mine for here in self._nodes for other in here.pods for volume in other.demand.volumes
        )

    def refusals(self) -> list[Refusal | None]:
        """For all Nodes in their order."""
        return [self.refusal(each) for each in self._nodes]

    def _ports(self, here: Occupied) -> Refusal | None:
        wanted = self._demand.ports
        if wanted and any(
            mine.collides(theirs) for other in here.pods for theirs in other.demand.ports for mine in wanted
        ):
            return refusals.PORT_TAKEN
        return None

    def _resources(self, here: Occupied) -> Refusal | None:
        short = lacking(self._pod, here.node, here.pods)
        return refusals.short_of(short) if short else None

    def _volume_limits(self, here: Occupied) -> Refusal | None:
        mine = {(volume.driver, volume.handle) for volume in self._demand.volumes if volume.driver}
        if not mine:
            return None
        there = {(v.driver, v.handle) for other in here.pods for v in other.demand.volumes if v.driver}
        for driver, limit in here.node.volume_limits:
            new = sum(1 for each in mine - there if each[0] == driver)
            if new and new + sum(1 for each in there if each[0] == driver) > limit:
                return refusals.TOO_MANY_VOLUMES
        return None

    def _inter_pod(self, node: NodeInfo) -> Refusal | None:
        if not self._has_company(node):
            return refusals.NO_COMPANY
        if any(self._avoided[place] for term in self._demand.anti_affinity for place in _place(node, term)):
            return refusals.BAD_COMPANY
        if self._claimed and any(self._claimed[place] for place in node.labels.items()):
            return refusals.UNWELCOME
        return None

    def _has_company(self, node: NodeInfo) -> bool:
        terms = self._demand.affinity
        places = [place for term in terms for place in _place(node, term)]
        if len(places) < len(terms):
            return False
        if all(self._company[place] for place in places):
            return True
        return not self._company and all(self._pod.is_meant_by(term) for term in terms)

    @cached_property
    def _company(self) -> Counter[Place]:
        """Per place the pods that match all affinity terms."""
        terms = self._demand.affinity
        found: Counter[Place] = Counter()
        if terms:
            for here in self._nodes:
                count = sum(n for other, n in here.pods.items() if all(other.is_meant_by(term) for term in terms))
                for term in terms if count else ():
                    found.update(dict.fromkeys(_place(here.node, term), count))
        return found

    @cached_property
    def _avoided(self) -> Counter[Place]:
        found: Counter[Place] = Counter()
        for term in self._demand.anti_affinity:
            for here in self._nodes:
                count = sum(n for other, n in here.pods.items() if other.is_meant_by(term))
                found.update(dict.fromkeys(_place(here.node, term), count) if count else {})
        return found

    @cached_property
    def _claimed(self) -> Counter[Place]:
        """Places that pods which are there already don't want to share with this one."""
        found: Counter[Place] = Counter()
        for here in self._nodes:
            for other, count in here.pods.items():
                for term in other.demand.anti_affinity:
                    if self._pod.is_meant_by(term):
                        found.update(dict.fromkeys(_place(here.node, term), count))
        return found


class _SpreadCount:
    """How many pods a spread constraint counts per domain."""

    def __init__(self, spread: Spread, pod: PodClass, nodes: Sequence[Occupied]) -> None:
        self._spread = spread
        self._is_counted = spread.selector.matches(pod.labels)
        self._domains: Counter[str] = Counter()
        keys = [each.topology_key for each in pod.demand.spread]
        for here in nodes:
            if all(key in here.node.labels for key in keys) and is_eligible(spread, pod, here.node):
                count = sum(n for other, n in here.pods.items() if counts(spread, pod, other))
                self._domains[here.node.labels[spread.topology_key]] += count

    def refusal(self, node: NodeInfo) -> Refusal | None:
        domain = node.labels.get(self._spread.topology_key)
        if domain is None:
            return refusals.NO_TOPOLOGY
        enough = len(self._domains) >= self._spread.min_domains
        least = min(self._domains.values()) if enough and self._domains else 0
        skew = self._domains[domain] + self._is_counted - least
        return refusals.SKEWED if skew > self._spread.max_skew else None


def is_eligible(spread: Spread, pod: PodClass, node: NodeInfo) -> bool:
    """Whether the constraint counts this Node's domain at all."""
    if spread.honors_affinity and not pod.demand.selects(node.labels, node.name):
        return False
    return not (spread.honors_taints and pod.demand.untolerated(node.taints))


def counts(spread: Spread, pod: PodClass, other: PodClass) -> bool:
    """Whether the constraint of ``pod`` counts ``other``. A selector that is empty counts nobody, terminating pods
    are as good as gone."""
    if spread.selector.empty or other.terminating or other.namespace != pod.namespace:
        return False
    return spread.selector.matches(other.labels)


def _place(node: NodeInfo, term: PodTerm) -> tuple[Place, ...]:
    value = node.labels.get(term.topology_key)
    return () if value is None else ((term.topology_key, value),)
