"""Share new Nodes out among groups that are alike, so that they become or stay equally big."""

from __future__ import annotations

from collections.abc import Sequence

from controllers.scaling.node_group import NodeGroup
from controllers.scheduling.shapes import HOSTNAME, MEMORY, NodeInfo

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


def _labels(node: NodeInfo) -> dict[str, str]:
    return {key: value for key, value in node.labels.items() if key not in _PLACES}
