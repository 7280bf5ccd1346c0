"""What growing comes to: new Nodes, the pods that they help, and the pods that are left with the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from controllers.autoscaler.memory import PlannedNodes, pod_keys
from controllers.scheduling.binpacking import Estimate
from controllers.scheduling.classes import PodClass
from controllers.scheduling.shapes import PodInfo


@dataclass(frozen=True, slots=True)
class Helped:
    """``pods`` will find room on new Nodes of ``group``. ``planned``: which of them on which Node, if that is known."""

    group: str
    pods: tuple[PodInfo, ...]
    planned: tuple[PlannedNodes, ...] = ()


@dataclass(frozen=True, slots=True)
class Left:
    """``pods`` stay pending. ``why``: group → why it does not help."""

    pods: tuple[PodInfo, ...]
    why: Mapping[str, str]
    gang: str = ""
    """Why the gang that they are of gets no Node at all."""


@dataclass(frozen=True, slots=True)
class Apart:
    """``added``: group → new Nodes. ``short`` have no room on them; ``why``: group → why it does not help."""

    added: Mapping[str, int]
    short: int
    why: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Ample:
    """Nodes beyond those that pods just fit. ``added``: group → Nodes, a part of ``ScaleUp.added``. ``planned``: which
    pods might need them, if that is known.
    """

    added: Mapping[str, int] = field(default_factory=dict)
    planned: tuple[PlannedNodes, ...] = ()

    def and_also(self, added: Mapping[str, int], planned: Iterable[PlannedNodes]) -> Ample:
        return Ample(Counter(self.added) + Counter(added), (*self.planned, *planned))

    def why(self, group: str) -> str:
        """For people, after how many Nodes the group gets; "" if none are for that."""
        nodes = self.added.get(group, 0)
        return f"{nodes} of them since kube-scheduler prefers the least allocated Nodes" if nodes else ""


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """``added``: group → new Nodes, never 0. ``skipped``: group → why it could not grow (any further)."""

    added: Mapping[str, int] = field(default_factory=dict)
    helped: tuple[Helped, ...] = ()
    left: tuple[Left, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    for_gangs: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Gang \u2192 group \u2192 new Nodes, of those that got all they need."""
    ample: Ample = field(default_factory=Ample)


def planned(
    sizes: Mapping[str, int], found: Estimate, pods: Mapping[PodClass, Sequence[PodInfo]]
) -> Iterator[PlannedNodes]:
    """The Nodes of an estimate. ``sizes``: group → how many of them; ``pods``: those that it placed."""
    key = pod_keys()
    given: Counter[PodClass] = Counter()
    nodes: list[dict[str, int]] = []
    for filled in found.filled:
        for _ in range(filled.copies):
            here: list[PodInfo] = []
            for pod_class, count in filled.pods.items():
                here += pods[pod_class][given[pod_class] : given[pod_class] + count]
                given[pod_class] += count
            nodes.append(dict(Counter(map(key, here))))
    for group, count in sizes.items():
        mine, nodes = nodes[:count], nodes[count:]
        for on_each, same in groupby(mine):
            yield PlannedNodes(group, sum(1 for _ in same), on_each)
