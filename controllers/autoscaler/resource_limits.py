"""How many more Nodes the limits of the whole cluster allow."""

from __future__ import annotations

import copy

from api.durations import format_duration
from controllers.autoscaler.cluster_state import ClusterState
from controllers.autoscaler.projected import ProjectedCluster
from controllers.scheduling.shapes import CPU, MEMORY, NodeInfo

MILLI = 1000


class ResourceLimits:
    """What is left; ``take`` lowers it."""

    def __init__(self, cluster: ClusterState, projected: ProjectedCluster) -> None:
        options = cluster.options.growth
        coming = sum(projected.upcoming.values())
        self._counts: list[tuple[int, str]] = [
            (options.nodes_per_scale_up, f"{options.nodes_per_scale_up} Nodes are added at a time")
        ]
        if options.max_nodes:
            left = options.max_nodes - cluster.health.total - coming
            self._counts.append((left, f"the cluster may have {options.max_nodes} Nodes"))
        if options.nodes_per_window:
            left = options.nodes_per_window - cluster.memory.grown_since(cluster.now - options.window)
            why = f"{options.nodes_per_window} Nodes may be added in {format_duration(options.window)}"
            self._counts.append((left, why))
        self._amounts = {
            CPU: (
                options.cores.most * MILLI - projected.offered(CPU),
                f"the cluster may have {options.cores.most} cores",
            ),
            MEMORY: (
                options.memory.most - projected.offered(MEMORY),
                f"the cluster may have {options.memory.most} bytes of memory",
            ),
        }

    def copy(self) -> ResourceLimits:
        """What is left now, for a try that may be undone."""
        found = copy.copy(self)
        found._counts, found._amounts = list(self._counts), dict(self._amounts)
        return found

    def nodes(self, node: NodeInfo) -> tuple[int, str]:
        """How many Nodes like this one may be added, and what allows no more."""
        found = list(self._counts)
        for resource, (left, why) in self._amounts.items():
            if node.amount(resource):
                found.append((left // node.amount(resource), why))
        least, why = min(found)
        return max(0, least), why

    def take(self, node: NodeInfo, count: int) -> None:
        self._counts = [(left - count, why) for left, why in self._counts]
        self._amounts = {
            resource: (left - count * node.amount(resource), why) for resource, (left, why) in self._amounts.items()
        }
