"""What new Nodes of each group would take of the pods that are left, asked once for groups that are alike to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

from controllers.autoscaler.projected import ProjectedCluster
from controllers.scheduling.binpacking import Estimate
from controllers.scheduling.classes import PodClass
from controllers.scheduling.estimator import Estimator
from controllers.scheduling.likeness import Likeness
from controllers.scheduling.ordered_estimate import asks_where
from controllers.scheduling.predicates import Judge, Occupied
from controllers.scheduling.shapes import HOSTNAME, NodeInfo, PodInfo, PodTerm


class Refusals:
    """Why new Nodes would not take a pod of a class, as the cluster is now; asked once for all that are alike to it."""

    def __init__(self, projected: ProjectedCluster, pod_class: PodClass) -> None:
        self._projected = projected
        self._pod_class = pod_class
        self._likeness = Likeness(projected.snapshot, [pod_class], projected.daemons)
        self._there = projected.snapshot.occupied()
        self._known: dict[Hashable, str] = {}

    def of(self, node: NodeInfo) -> str:
        """Empty if they would."""
        daemons = self._projected.daemons_on(node)
        like = (self._likeness.of(node), daemons)
        found = self._known.get(like)
        if found is None:
            new = Occupied(node, Counter(daemons))
            found = self._known[like] = str(Judge(self._pod_class, [*self._there, new]).refusal(new) or "")
        return found


def _matters(node: NodeInfo, reaches_out: bool, pod_class: PodClass) -> bool:
    """Whether such new Nodes may change what other new Nodes take of the class. Without a rule of its own they don't,
    unless a pod on them ``reaches_out``; rules about single Nodes ask only Nodes that the class may come to.
    """
    demand = pod_class.demand
    if reaches_out or demand.affinity or demand.volumes or _reach_out(demand.anti_affinity):
        return True
    if any(each.topology_key != HOSTNAME or not each.honors_affinity for each in demand.spread):
        return True
    return bool(demand.spread) and demand.selects(node.labels, node.name)


def _reach_out(terms: Iterable[PodTerm]) -> bool:
    """Beyond single Nodes."""
    return any(term.topology_key != HOSTNAME for term in terms)


_Key = tuple[Hashable, str]


class Estimates:
    """``expect`` names all classes that may be left, ``look`` those that are, at each step anew."""

    def __init__(self, projected: ProjectedCluster) -> None:
        self._projected = projected
        self._keys: dict[int, tuple[NodeInfo, Hashable]] = {}
        self._left: Mapping[PodClass, Sequence[PodInfo]] = {}
        self._known: dict[_Key, list[tuple[int, Estimate]]] = {}
        self._wanted: dict[_Key, dict[PodClass, int]] = {}
        self._choosy: dict[str, dict[PodClass, int]] = {}
        self._added: list[tuple[NodeInfo, bool]] = []
        self._changed: dict[PodClass, bool] = {}
        self.expect(())

    def expect(self, waiting: Collection[PodClass]) -> None:
        snapshot, daemons = self._projected.snapshot, self._projected.daemons
        self._keys, self._known, self._wanted, self._added = {}, {}, {}, []
        self._likeness = Likeness(snapshot, waiting, daemons)
        self._estimator = Estimator(snapshot, waiting, daemons)

    def look(self, left: Mapping[PodClass, Sequence[PodInfo]]) -> None:
        """Nodes may have been added, and these are left. Estimates to which neither matters are kept."""
        self._left, self._choosy, self._changed = left, {}, {}
        for key, wanted in list(self._wanted.items()):
            if key[1] or any(self._is_changed(each, number) for each, number in wanted.items()):
                del self._wanted[key]
                self._known.pop(key, None)
        self._added = []
        self._estimator.look()

    def coming_with(self, node: NodeInfo, pods: Iterable[PodClass]) -> tuple[PodClass, ...]:
        """Such Nodes are about to be added to the picture, with such pods and with their daemons, which it returns."""
        daemons = self.daemons_on(node)
        self._added.append((node, any(_reach_out(each.demand.anti_affinity) for each in (*pods, *daemons))))
        return daemons

    def _is_changed(self, pod_class: PodClass, number: int) -> bool:
        """``number``: how many of the class are left."""
        if len(self._left.get(pod_class, ())) != number:
            return True
        found = self._changed.get(pod_class)
        if found is None:
            found = self._changed[pod_class] = any(_matters(node, far, pod_class) for node, far in self._added)
        return found

    def daemons_on(self, node: NodeInfo) -> tuple[PodClass, ...]:
        """Pods of DaemonSets that run on every such Node."""
        return self._projected.daemons_on(node)

    def choosy(self, label: str) -> dict[PodClass, int]:
        """Pods that are left to which this label of a Node matters."""
        found = self._choosy.get(label)
        if found is None:
            snapshot = self._projected.snapshot
            choosing = (each for each in self._left if asks_where(snapshot, each, label))
            found = self._choosy[label] = {each: len(self._left[each]) for each in choosing}
        return found

    def of(self, template: NodeInfo, limit: int, *, unknown: str = "") -> Estimate:
        """``unknown``: a label that differs from Node to Node; not for pods to which it matters.

        10 Nodes are needed and 50 were allowed: 10 are needed, too, where 12 or 100 are allowed.
        """
        key = (self._like(template), unknown)
        wanted = self._wanted.get(key)
        if wanted is None:
            wanted = self._wanted[key] = self._wanted_on(template, unknown)
        known = self._known.setdefault(key, [])
        for asked, found in known:
            if asked == limit or found.most_tried <= min(asked, limit):
                return found
        found = self._estimator.estimate(template, wanted, limit, self.daemons_on(template))
        known.append((limit, found))
        return found

    def _wanted_on(self, template: NodeInfo, unknown: str) -> dict[PodClass, int]:
        choosy = self.choosy(unknown) if unknown else {}
        admitted = self._likeness.admitted(template)
        return {each: len(self._left[each]) for each in admitted if each in self._left and each not in choosy}

    def like_but_for_size(self, template: NodeInfo) -> Hashable:
        """Equal for Nodes that no pod tells apart but by how much they offer."""
        return self._likeness.but_for_size(template)

    def _like(self, template: NodeInfo) -> Hashable:
        """Remembered by identity, with the template itself, so that no other object gets its identity."""
        found = self._keys.get(id(template))
        if found is None:
            like = (self._likeness.of(template), self.daemons_on(template))
            found = self._keys[id(template)] = (template, like)
        return found[1]
