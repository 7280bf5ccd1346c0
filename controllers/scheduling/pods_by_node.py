"""Pods by Node, and how much of each Node they ask for: worked out once for all who want to know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controllers.scheduling.shapes import CPU, MEMORY, NodeInfo, PodInfo, PodKind


class PodsByNode:
    """Index of all Nodes. ``pods`` without a Node are left out."""

    def __init__(self, pods: Iterable[PodInfo]) -> None:
        self._on: dict[str, list[PodInfo]] = {}
        on = self._on
        for pod in pods:
            mine = on.get(pod.node)
            if mine is None:
                on[pod.node] = [pod]
            else:
                mine.append(pod)
        on.pop("", None)
        self._asks: dict[PodKind, tuple[int, int]] = {}
        self._loads: dict[str, float] = {}

    def on(self, node: str) -> Sequence[PodInfo]:
        return self._on.get(node, ())

    def load(self, node: NodeInfo) -> float:
        """The larger of the shares of cpu and memory that are asked for; a Node that offers none is full."""
        load = self._loads.get(node.name)
        if load is None:
            load = self._loads[node.name] = self._load(node)
        return load

    def share(self, node: NodeInfo, resources: Iterable[str], without_daemons: bool = False) -> float:
        """The largest of the shares of ``resources`` that are asked for. ``without_daemons``: pods of DaemonSets use
        nothing, and what they ask for is not there for others.
        """
        shares = []
        for name in resources:
            asked, daemons = (sum(self._amounts(node, name, daemons=which)) for which in (False, True))
            there = node.amount(name) - (daemons if without_daemons else 0)
            if there > 0:
                shares.append((asked if without_daemons else asked + daemons) / there)
        return max(shares, default=1.0)

    def _amounts(self, node: NodeInfo, resource: str, *, daemons: bool) -> Iterable[int]:
        for pod in self.on(node.name):
            keeping = pod.kind.keeping
            if keeping.daemon_set is daemons and not keeping.finished:
                yield dict(pod.kind.demand.requests).get(resource, 0)

    def _load(self, node: NodeInfo) -> float:
        cpu = memory = 0
        for pod in self.on(node.name):
            asked = self._asks.get(pod.kind)
            if asked is None:
                asked = self._asks[pod.kind] = _asked(pod.kind)
            cpu += asked[0]
            memory += asked[1]
        there = dict(node.allocatable)
        shares = [used / there[name] for name, used in ((CPU, cpu), (MEMORY, memory)) if there.get(name)]
        return max(shares, default=1.0)


def _asked(kind: PodKind) -> tuple[int, int]:
    if kind.keeping.finished:
        return 0, 0
    asked = dict(kind.demand.requests)
    return asked.get(CPU, 0), asked.get(MEMORY, 0)
