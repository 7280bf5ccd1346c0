"""What classes of pods that wait mean to each other, and to the pods that are there, on new Nodes of one kind.

All new Nodes of a group share every place but the Node itself: one zone, one rack. So a constraint over such places
comes to one number, the pods of a class that may come in all, as long as no other class that waits changes it:

    spread over zones, max skew 1; zones a, b, c have 4, 2, 3 such pods; new Nodes in b:
    they may come up to least of the others + skew = 3 + 1 = 4 in b, so 4 - 2 = 2 pods, whatever the number of Nodes

Classes for which it is not that simple are ``tangled``, and are placed by ``placement``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from controllers.scheduling.classes import Index, PodClass
from controllers.scheduling.fitting import PLENTY, has_label
from controllers.scheduling.matchers import Averse, MeantByAll, SpreadOver
from controllers.scheduling.rules import Evenly
from controllers.scheduling.shapes import HOSTNAME, NodeInfo, PodTerm, Spread
from controllers.scheduling.snapshot import Matcher, Snapshot


class Relations:
    """Among ``waiting`` classes and those of ``daemons``, which come with new Nodes. Worked out once for all groups.

    ``apart``: class → those that are never on one Node with it; itself among them, if a Node takes one such pod only.
    """

    def __init__(self, waiting: Iterable[PodClass], daemons: Sequence[PodClass] = ()) -> None:
        self._waiting = list(dict.fromkeys(waiting))
        self._all = list(dict.fromkeys((*self._waiting, *daemons)))
        self._daemons = frozenset(daemons)
        self._by_mark: Index[PodClass] = Index()
        for each in self._all:
            self._by_mark.add(each, each.marks)
        self.apart: dict[PodClass, set[PodClass]] = {}
        self.tangled: set[PodClass] = set()
        self._listeners = [each for each in self._all if each.demand.ports]
        for each in self._all:
            self._relate(each)

    def _relate(self, pod_class: PodClass) -> None:
        demand = pod_class.demand
        for term in demand.anti_affinity:
            self._keep_apart(pod_class, term)
        for other in self._listeners if demand.ports else ():
            if any(mine.collides(theirs) for mine in demand.ports for theirs in other.demand.ports):
                self._pair(pod_class, other)
        if demand.volumes or (demand.affinity and self._is_tangled_by_affinity(pod_class)):
            self.tangled.add(pod_class)
        if any(self._is_tangled_by_spread(pod_class, spread) for spread in demand.spread):
            self.tangled.add(pod_class)

    def _keep_apart(self, pod_class: PodClass, term: PodTerm) -> None:
        for other in self._meant(MeantByAll((term,))):
            if term.topology_key == HOSTNAME:
                self._pair(pod_class, other)
            elif other is not pod_class or other in self._daemons:
                self.tangled.update((pod_class, other))

    def _pair(self, one: PodClass, other: PodClass) -> None:
        self.apart.setdefault(one, set()).add(other)
        self.apart.setdefault(other, set()).add(one)

    def _is_tangled_by_affinity(self, pod_class: PodClass) -> bool:
        terms = pod_class.demand.affinity
        return any(term.topology_key == HOSTNAME for term in terms) or self._others(pod_class, MeantByAll(terms))

    def _is_tangled_by_spread(self, pod_class: PodClass, spread: Spread) -> bool:
        matcher = SpreadOver(pod_class.namespace, spread.selector)
        if spread.topology_key == HOSTNAME or not matcher.matches(pod_class):
            return True
        return self._others(pod_class, matcher)

    def _others(self, pod_class: PodClass, matcher: Matcher) -> bool:
        """Whether the matcher means others that wait, or any that come with new Nodes."""
        return any(other is not pod_class or other in self._daemons for other in self._meant(matcher))

    def _meant(self, matcher: Matcher) -> list[PodClass]:
        marks = matcher.marks
        possible = self._all if marks is None else dict.fromkeys(self._by_mark.concerning(marks))
        return [each for each in possible if matcher.matches(each)]


class PlaceLimits:
    """How many pods of a class new Nodes may get in all, as the cluster is now; not for tangled classes.

    Asked once for each constraint, so a new one is needed when the cluster has changed.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._barred: dict[PodClass, list[tuple[str, frozenset[int]]]] = {}
        self._totals: dict[tuple[PodClass, Spread], dict[int, int]] = {}
        self._companions: dict[PodClass, list[tuple[str, frozenset[int] | None]]] = {}

    def most(self, pod_class: PodClass, node: NodeInfo) -> int:
        """PLENTY if nothing but each Node's own room limits them."""
        barred = self._barred_places(pod_class)
        demand = pod_class.demand
        if not (barred or demand.spread or demand.affinity or demand.anti_affinity):
            return PLENTY
        if any(self._code(node, key) in codes for key, codes in barred):
            return 0
        if demand.affinity and not self._has_company(pod_class, node):
            return 0
        most = PLENTY
        for term in demand.anti_affinity:
            if term.topology_key != HOSTNAME and term.topology_key in node.labels and pod_class.is_meant_by(term):
                most = 1
        for spread in demand.spread:
            most = min(most, self._evenly(pod_class, spread, node))
        return max(0, most)

    def _code(self, node: NodeInfo, key: str) -> int | None:
        """The number of its place; None if it has none, -1 if no Node that is there is in it."""
        value = node.labels.get(key)
        return None if value is None else self._snapshot.code(key, value)

    def _barred_places(self, pod_class: PodClass) -> list[tuple[str, frozenset[int]]]:
        """Where pods are that this class avoids, or that avoid it; by topology key."""
        found = self._barred.get(pod_class)
        if found is None:
            asked: list[tuple[str, Matcher]] = []
            asked += [(term.topology_key, MeantByAll((term,))) for term in pod_class.demand.anti_affinity]
            asked += [(term.topology_key, Averse(term)) for term in self._snapshot.aversions(pod_class)]
            places = [(key, self._inhabited(key, matcher)) for key, matcher in asked if key != HOSTNAME]
            found = self._barred[pod_class] = [each for each in places if each[1]]
        return found

    def _inhabited(self, key: str, matcher: Matcher) -> frozenset[int]:
        codes = self._snapshot.codes(key)[self._snapshot.counts(matcher) > 0]
        return frozenset(np.unique(codes[codes >= 0]).tolist())

    def _has_company(self, pod_class: PodClass, node: NodeInfo) -> bool:
        found = self._companions.get(pod_class)
        if found is None:
            found = self._companions[pod_class] = self._company(pod_class)
        codes = [(self._code(node, key), places) for key, places in found]
        return all(code is not None and (places is None or code in places) for code, places in codes)

    def _company(self, pod_class: PodClass) -> list[tuple[str, frozenset[int] | None]]:
        """By topology key where the pods are that the class wants beside it; None: anywhere, since it is the first."""
        terms = pod_class.demand.affinity
        matcher = MeantByAll(terms)
        there = self._snapshot.counts(matcher) > 0
        known = any((has_label(self._snapshot, term.topology_key) & there).any() for term in terms)
        is_first = matcher.matches(pod_class) and not known
        keys = dict.fromkeys(term.topology_key for term in terms)
        return [(key, None if is_first else self._inhabited(key, matcher)) for key in keys]

    def _evenly(self, pod_class: PodClass, spread: Spread, node: NodeInfo) -> int:
        """Worked example: at the top of this file."""
        code = self._code(node, spread.topology_key)
        if code is None:
            return 0
        totals = self._totals.get((pod_class, spread))
        if totals is None:
            keys = tuple(each.topology_key for each in pod_class.demand.spread)
            totals = self._totals[pod_class, spread] = Evenly(self._snapshot, pod_class, spread, keys).totals()
        mine = totals.get(code, 0)
        others = [count for place, count in totals.items() if place != code]
        if len(others) + 1 < spread.min_domains:
            return spread.max_skew - mine
        return min(others) + spread.max_skew - mine if others else PLENTY
