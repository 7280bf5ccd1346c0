"""The slow way, pod by pod and Node by Node, that the arithmetic must agree with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from controllers.scheduling.binpacking import by_size
from controllers.scheduling.classes import PodClass
from controllers.scheduling.predicates import Judge, Occupied
from controllers.scheduling.refusals import Refusal
from controllers.scheduling.shapes import HOSTNAME, NodeInfo


@dataclass
class Town:
    """Nodes with pods, changed by placing."""

    nodes: list[NodeInfo]
    pods: list[Counter[PodClass]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pods = self.pods or [Counter() for _ in self.nodes]

    def occupied(self) -> list[Occupied]:
        return [Occupied(node, pods) for node, pods in zip(self.nodes, self.pods, strict=True)]

    def refusal(self, pod: PodClass, index: int) -> Refusal | None:
        nodes = self.occupied()
        return Judge(pod, nodes).refusal(nodes[index])

    def place_one(self, pod: PodClass, order: Sequence[int]) -> int | None:
        """On the first Node of ``order`` that takes it."""
        nodes = self.occupied()
        judge = Judge(pod, nodes)
        for index in order:
            if judge.refusal(nodes[index]) is None:
                self.pods[index][pod] += 1
                return index
        return None

    def place(self, pod: PodClass, count: int, order: Sequence[int]) -> int:
        placed = 0
        while placed < count and self.place_one(pod, order) is not None:
            placed += 1
        return placed


def estimate(town: Town, node: NodeInfo, pods: Mapping[PodClass, int], limit: int) -> tuple[int, dict[PodClass, int]]:
    """Nodes with pods on them, and how many pods of each class were placed."""
    first = len(town.nodes)
    placed: dict[PodClass, int] = {}
    for pod in by_size(pods, node):
        for _ in range(pods[pod]):
            new = range(first, len(town.nodes))
            found = town.place_one(pod, new)
            while found is None:
                last_is_empty = len(town.nodes) > first and not town.pods[-1]
                if last_is_empty or len(town.nodes) - first >= limit:
                    break
                name = f"new-{len(town.nodes)}"
                town.nodes.append(replace(node, name=name, labels={**node.labels, HOSTNAME: name}, hypothetical=False))
                town.pods.append(Counter())
                found = town.place_one(pod, [len(town.nodes) - 1])
                if found is None:
                    town.nodes.pop()
                    town.pods.pop()
                    break
            if found is None:
                break
            placed[pod] = placed.get(pod, 0) + 1
    return sum(1 for each in town.pods[first:] if each), placed
