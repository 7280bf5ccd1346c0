"""Pods that are to be spread over zones are dealt to the zones of all groups before any group grows.

    35 pods, groups in zones a, b, c and d, 2 such pods run in a: 7 are asked for in a and 9 in b, c and d each, as if
    they named their zone; the one that is left goes where it may

Asked group by group, all would go to the zone of the first one, since zones without a Node count for nobody; once the
Nodes of the next zone are there, kube-scheduler keeps the skew over both, and half of the first ones stay empty. What
can't be dealt evenly is left as it is. Karpenter deals to the zones of its offerings alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from api.selectors import Operator, Requirement
from controllers.scheduling.classes import Classes, Group, Index, PodClass
from controllers.scheduling.likeness import admits
from controllers.scheduling.matchers import SpreadOver
from controllers.scheduling.rules import Evenly
from controllers.scheduling.shapes import HOSTNAME, NodeInfo, PodInfo, PodKind, Spread
from controllers.scheduling.snapshot import Snapshot


@dataclass(slots=True)
class Dealt:
    """``groups``: pods as if they asked for one zone, and those that are not to be dealt.

    ``rest``: those that are over when all zones have the same; once the others have their Nodes, it is known which
    zones there are. ``as_they_are``: of dealt pods, by namespace and name.
    """

    groups: list[Group] = field(default_factory=list)
    rest: list[Group] = field(default_factory=list)
    as_they_are: dict[tuple[str, str], PodInfo] = field(default_factory=dict)

    def undone(self, pods: Iterable[PodInfo], classes: Classes) -> list[Group]:
        """These pods without a zone of their own, and the rest."""
        left = [self.as_they_are.get((pod.namespace, pod.name), pod) for pod in pods]
        return classes.group([*(pod for group in self.rest for pod in group.pods), *left])


def deal(
    groups: Iterable[Group], snapshot: Snapshot, templates: Sequence[NodeInfo], *, uncertain: Collection[str] = ()
) -> Dealt:
    """``templates``: template Nodes of the groups that may grow. ``uncertain``: labels whose value differs between the
    Nodes of one group.
    """
    dealing = _Dealing(snapshot, templates, frozenset(uncertain))
    for group in groups:
        dealing.deal(group)
    return dealing.dealt


class _Dealing:
    def __init__(self, snapshot: Snapshot, templates: Sequence[NodeInfo], uncertain: frozenset[str]) -> None:
        self._snapshot = snapshot
        self._uncertain = uncertain
        self._templates = templates
        self._by_place: dict[str, dict[str, list[NodeInfo]]] = {}
        self._given: dict[PodClass, dict[str, int]] = {}
        self._by_mark: Index[PodClass] = Index()
        self.dealt = Dealt()

    def deal(self, group: Group) -> None:
        spread = _over_places(group.pod_class)
        zones = self._zones(group.pod_class, spread) if spread is not None else []
        if spread is None or len(zones) < 2:
            self.dealt.groups.append(group)
            return
        left = list(group.pods)
        for zone, count in self._shares(group, spread, zones).items():
            pods, left = left[:count], left[count:]
            self._give(group.pod_class, spread, zone, pods)
        if left:
            self.dealt.rest.append(Group(group.pod_class, tuple(left)))

    def _zones(self, pod_class: PodClass, spread: Spread) -> list[str]:
        """Where new Nodes take such pods; none if groups don't say."""
        key = spread.topology_key
        if key in self._uncertain:
            return []
        places = self._by_place.get(key)
        if places is None:
            places = self._by_place[key] = {}
            for each in self._templates:
                if key in each.labels:
                    places.setdefault(each.labels[key], []).append(each)
        return sorted(place for place, nodes in places.items() if any(admits(node, pod_class) for node in nodes))

    def _give(self, pod_class: PodClass, spread: Spread, zone: str, pods: Sequence[PodInfo]) -> None:
        if pod_class not in self._given:
            self._by_mark.add(pod_class, pod_class.marks)
        self._given.setdefault(pod_class, {})[zone] = len(pods)
        narrowed: dict[PodKind, PodKind] = {}
        found = []
        for pod in pods:
            kind = narrowed.get(pod.kind)
            if kind is None:
                kind = narrowed[pod.kind] = _in_zone(pod.kind, zone, spread)
            found.append(pod._replace(kind=kind))
            self.dealt.as_they_are[pod.namespace, pod.name] = pod
        self.dealt.groups += self._snapshot.classes.group(found)

    def _shares(self, group: Group, spread: Spread, zones: Sequence[str]) -> dict[str, int]:
        """Zone → pods; as many for each zone as bring all to one level."""
        pod_class, key = group.pod_class, spread.topology_key
        keys = tuple(each.topology_key for each in pod_class.demand.spread)
        totals = Evenly(self._snapshot, pod_class, spread, keys).totals()
        codes = {zone: self._snapshot.code(key, zone) for zone in zones}
        there = {zone: totals.get(codes[zone], 0) + self._given_to(pod_class, spread, zone) for zone in zones}
        others = [count for code, count in totals.items() if code not in codes.values()]
        level = _level(list(there.values()), len(group))
        if others:
            level = min(level, min(others) + spread.max_skew)
        elif len(zones) < spread.min_domains:
            level = min(level, spread.max_skew)
        return {zone: level - count for zone, count in there.items() if level > count}

    def _given_to(self, pod_class: PodClass, spread: Spread, zone: str) -> int:
        matcher = SpreadOver(pod_class.namespace, spread.selector)
        possible = self._given if matcher.marks is None else dict.fromkeys(self._by_mark.concerning(matcher.marks))
        return sum(self._given[other].get(zone, 0) for other in possible if matcher.matches(other))


def _over_places(pod_class: PodClass) -> Spread | None:
    """The one constraint over zones (or racks) that counts the class itself; None if there is none, or several."""
    found = [each for each in pod_class.demand.spread if each.topology_key != HOSTNAME]
    if len(found) != 1 or not SpreadOver(pod_class.namespace, found[0].selector).matches(pod_class):
        return None
    return found[0]


def _level(there: Sequence[int], more: int) -> int:
    """The highest level to which all places below it can be filled with so many pods: 2, 0, 0 and 5 pods: 2."""
    least, most = min(there), max(there) + more
    while least < most:
        middle = (least + most + 1) // 2
        if sum(middle - count for count in there if count < middle) <= more:
            least = middle
        else:
            most = middle - 1
    return least


def _in_zone(kind: PodKind, zone: str, spread: Spread) -> PodKind:
    demand = kind.demand
    where = Requirement(spread.topology_key, Operator.IN, (zone,))
    others = tuple(each for each in demand.spread if each != spread)
    return replace(kind, demand=replace(demand, node_selector=(*demand.node_selector, where), spread=others))
