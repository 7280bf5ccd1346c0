"""Share new Nodes out among groups that are alike, so that they become or stay equally big."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controllers.scaling.node_group import NodeGroup
from controllers.scheduling.shapes import HOSTNAME, MEMORY, Amounts, NodeInfo, Taint

_PLACES = frozenset(
    {
        HOSTNAME,
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    }
)
_CLOSE, _CLOSE_MEMORY = 0.05, 0.015
"""As in the Cluster Autoscaler: hosts of one size never offer exactly the same."""


def alike(one: NodeInfo, other: NodeInfo) -> bool:
    """Nodes of the same size, labels and taints; only the place may differ."""
    here, there = dict(one.allocatable), dict(other.allocatable)
    if here.keys() != there.keys() or set(one.taints) != set(other.taints) or _labels(one) != _labels(other):
        return False
    return all(
        abs(amount - there[name]) <= max(amount, there[name]) * (_CLOSE_MEMORY if name == MEMORY else _CLOSE)
        for name, amount in here.items()
    )


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """Ids of groups; compared by identity, so that what is worked out for them is quickly found again."""

    names: tuple[str, ...]


class AlikeGroups:
    """Which of many groups are alike, by the ``templates`` of their Nodes.

    500 groups of 4 sizes, all with the same labels but for the zone: 4 x 4 pairs are compared, not 500 x 500.
    """

    def __init__(self, templates: Mapping[str, NodeInfo]) -> None:
        self._position = {name: position for position, name in enumerate(templates)}
        self._by_look: dict[_Look, dict[Amounts, list[tuple[str, NodeInfo]]]] = {}
        self._known: dict[tuple[_Look, Amounts], Alike] = {}
        for name, node in templates.items():
            self._by_look.setdefault(_look(node), {}).setdefault(node.allocatable, []).append((name, node))

    def of(self, node: NodeInfo) -> Alike:
        """Groups whose Nodes are ``alike`` this one, in the order of ``templates``."""
        look = _look(node)
        found = self._known.get((look, node.allocatable))
        if found is None:
            sizes = self._by_look.get(look, {}).values()
            names = [name for same in sizes if alike(node, same[0][1]) for name, _ in same]
            found = self._known[look, node.allocatable] = Alike(tuple(sorted(names, key=self._position.__getitem__)))
        return found


def balance(groups: Sequence[NodeGroup], new_nodes: int) -> dict[str, int]:
    """Nodes to add per group id: the smallest is filled first, none goes over its maximum. What no group can take is
    left out; costs groups × groups, not Nodes.
    """
    sizes = {group.id: group.replicas for group in groups}
    tops = {group.id: max(group.bounds.max_size, group.replicas) for group in groups}
    left = new_nodes
    while left > 0:
        growing = [name for name in sorted(sizes) if sizes[name] < tops[name]]
        if not growing:
            break
        least = min(sizes[name] for name in growing)
        lowest = [name for name in growing if sizes[name] == least]
        ceiling = min([tops[name] for name in lowest] + [sizes[name] for name in growing if sizes[name] > least])
        step = min(ceiling - least, left // len(lowest))
        for position, name in enumerate(lowest):
            more = step or int(position < left)
            sizes[name] += more
        left -= step * len(lowest) or min(left, len(lowest))
    return {group.id: sizes[group.id] - group.replicas for group in groups if sizes[group.id] > group.replicas}


_Look = tuple[frozenset[tuple[str, str]], frozenset[Taint]]


def _look(node: NodeInfo) -> _Look:
    """What must be equal."""
    return frozenset(_labels(node).items()), frozenset(node.taints)


def _labels(node: NodeInfo) -> dict[str, str]:
    return {key: value for key, value in node.labels.items() if key not in _PLACES}
