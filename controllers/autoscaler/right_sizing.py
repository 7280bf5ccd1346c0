"""Each new Node as small and cheap as its pods allow, where groups differ in nothing else that a pod can tell.

    10 Nodes of 16 cores are estimated; nine are full, the pods of the last one take 3 cores: a group with Nodes of
    4 cores that cost less gets that one

So a large Node stands for all smaller ones while pods are packed, and classes that need much cpu share it with those
that need much memory. Karpenter chooses the type of an instance after it has packed the pods, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from controllers.scheduling.binpacking import Estimate, Filled
from controllers.scheduling.classes import PodClass
from controllers.scheduling.shapes import PODS, NodeInfo


@dataclass(frozen=True, slots=True)
class Size:
    """Nodes that ``group`` may get, each for ``price``; ``daemons`` come with each.

    ``like``: equal for groups whose Nodes no pod tells apart but for their size.
    """

    group: str
    node: NodeInfo
    price: Fraction
    like: Hashable
    daemons: Collection[PodClass] = ()

    def free(self) -> dict[str, int]:
        """What an empty Node has left beside its daemons."""
        free = dict(self.node.allocatable)
        for daemon in self.daemons:
            free[PODS] = free.get(PODS, 0) - 1
            for name, amount in daemon.requests:
                free[name] = free.get(name, 0) - amount
        return free


class Sizes:
    """``offered``: of groups that may grow, in the order in which equals are taken."""

    def __init__(self, offered: Sequence[Size]) -> None:
        self._by_group = {each.group: each for each in offered}
        self._cheaper: dict[str, list[tuple[Size, Mapping[str, int]]]] = {}
        by_like: dict[Hashable, list[tuple[Size, Mapping[str, int]]]] = {}
        for each in sorted(offered, key=lambda each: each.price):
            alike = by_like.setdefault(each.like, [])
            self._cheaper[each.group] = [(other, free) for other, free in alike if other.price < each.price]
            alike.append((each, each.free()))
        self._known: dict[tuple[int, Hashable], tuple[Estimate, Fraction]] = {}

    def cost(self, group: str, found: Estimate) -> Fraction | None:
        """Of all Nodes of the estimate, each as cheap as can be; None if the group has no price."""
        mine = self._by_group.get(group)
        if mine is None:
            return None
        key = (id(found), mine.like)
        known = self._known.get(key)
        if known is None:
            total = sum((each.copies * self._best(mine, each).price for each in found.filled), Fraction(0))
            known = self._known[key] = (found, total)
        return known[1]

    def split(self, group: str, found: Estimate) -> list[tuple[str, Estimate]]:
        """The groups that get the Nodes, each with its part."""
        mine = self._by_group.get(group)
        if mine is None:
            return [(group, found)]
        shares: dict[str, list[Filled]] = {}
        for each in found.filled:
            shares.setdefault(self._best(mine, each).group, []).append(each)
        return [(name, _part(found, rows)) for name, rows in shares.items()]

    def _best(self, mine: Size, filled: Filled) -> Size:
        asked = _asked(filled.pods)
        for cheaper, free in self._cheaper[mine.group]:
            if all(amount <= free.get(name, 0) for name, amount in asked.items()):
                return cheaper
        return mine


def _asked(pods: Mapping[PodClass, int]) -> dict[str, int]:
    asked = {PODS: sum(pods.values())}
    for pod_class, count in pods.items():
        for name, amount in pod_class.requests:
            asked[name] = asked.get(name, 0) + amount * count
    return asked


def _part(found: Estimate, rows: Sequence[Filled]) -> Estimate:
    placed: Counter[PodClass] = Counter()
    for each in rows:
        for pod_class, count in each.pods.items():
            placed[pod_class] += count * each.copies
    nodes = sum(each.copies for each in rows)
    return replace(found, nodes=nodes, placed=dict(placed), left={}, filled=tuple(rows))
