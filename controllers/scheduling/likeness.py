"""What pods that wait can tell apart of new Nodes: groups whose Nodes differ in nothing else get the same estimate.

500 groups of four sizes, each with a label ``pool`` of its own, in three zones. The pods that wait ask for the pools
``a`` and ``b`` and are spread over zones: values of ``pool`` that nobody names are one, so that at most
4 sizes x 3 zones x 3 pools = 36 estimates are made and not 500.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from api.selectors import Operator, Requirement
from controllers.scheduling.classes import PodClass
from controllers.scheduling.predicates import static_refusal, volume_refusal
from controllers.scheduling.shapes import HOSTNAME, PODS, NodeInfo
from controllers.scheduling.snapshot import Snapshot

_NAMING = (Operator.IN, Operator.NOT_IN)
_PRESENT = (Operator.EXISTS, Operator.DOES_NOT_EXIST)
_UNNAMED = object()
"""Stands for every value that no requirement names."""


class Likeness:
    """For classes that wait, and the constraints of pods in ``snapshot`` that mean them. ``daemons`` come with new
    Nodes.
    """

    def __init__(self, snapshot: Snapshot, waiting: Iterable[PodClass], daemons: Iterable[PodClass] = ()) -> None:
        self._waiting = list(dict.fromkeys(waiting))
        self._named: dict[str, set[str]] = {}
        self._exact: set[str] = set()
        self._by_name = False
        for pod_class in self._waiting:
            self._ask_static(pod_class)
        for pod_class in (*self._waiting, *daemons):
            self._ask_places(snapshot, pod_class)
        self._keys = sorted({*self._named, *self._exact})
        self._admitted: dict[Hashable, tuple[PodClass, ...]] = {}

    def of(self, node: NodeInfo) -> Hashable:
        """Equal for Nodes that are the same to every class, and to the pods around it."""
        return self.but_for_size(node), node.allocatable

    def but_for_size(self, node: NodeInfo) -> Hashable:
        """The same for Nodes that offer different amounts."""
        labels = tuple(self._seen(key, node.labels.get(key)) for key in self._keys)
        name = node.name if self._by_name else ""
        return labels, name, node.taints, node.unschedulable, node.volume_limits

    def admitted(self, node: NodeInfo) -> tuple[PodClass, ...]:
        """Those that such a Node takes when nothing runs on it, by all that depends on the two alone."""
        like = self.of(node)
        found = self._admitted.get(like)
        if found is None:
            found = self._admitted[like] = tuple(each for each in self._waiting if admits(node, each))
        return found

    def _seen(self, key: str, value: str | None) -> object:
        if value is None or key in self._exact or value in self._named[key]:
            return value
        return _UNNAMED

    def _ask_static(self, pod_class: PodClass) -> None:
        demand = pod_class.demand
        for requirement in requirements_of(pod_class):
            self._named.setdefault(requirement.key, set()).update(requirement.values)
            if requirement.operator not in (*_NAMING, *_PRESENT):
                self._exact.add(requirement.key)
        self._by_name |= any(term.names for term in demand.node_terms or ())
        self._by_name |= any(term.names for volume in demand.volumes for term in volume.terms or ())

    def _ask_places(self, snapshot: Snapshot, pod_class: PodClass) -> None:
        demand = pod_class.demand
        terms = (*demand.affinity, *demand.anti_affinity, *snapshot.aversions(pod_class))
        places = {term.topology_key for term in terms} | {spread.topology_key for spread in demand.spread}
        self._exact |= places - {HOSTNAME}
        if HOSTNAME in places:
            self._named.setdefault(HOSTNAME, set())


def admits(node: NodeInfo, pod_class: PodClass) -> bool:
    """Whether an empty Node takes such a pod, whatever is around."""
    demand, there = pod_class.demand, dict(node.allocatable)
    if demand.blocked or not there.get(PODS) or any(there.get(name, 0) < amount for name, amount in demand.requests):
        return False
    return static_refusal(pod_class, node) is None and volume_refusal(demand.volumes, node) is None


def requirements_of(pod_class: PodClass) -> Iterator[Requirement]:
    """All that it or its volumes ask of the labels of a Node."""
    demand = pod_class.demand
    yield from demand.node_selector
    for term in demand.node_terms or ():
        yield from term.labels
    for volume in demand.volumes:
        yield from volume.zones
        for term in volume.terms or ():
            yield from term.labels
