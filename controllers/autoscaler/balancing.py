"""Share new Nodes out among groups that are alike, so that they become or stay equally big."""

from __future__ import annotations

from collections.abc import Sequence

from controllers.autoscaler.groups import NodeGroup


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
