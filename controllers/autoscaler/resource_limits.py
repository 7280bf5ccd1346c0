"""How many more Nodes the limits of the whole cluster and CapacityQuotas allow."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from api.durations import format_duration
from controllers.autoscaler.cluster_state import ClusterState
from controllers.autoscaler.projected import ProjectedCluster
from controllers.autoscaler.quotas import Quota, QuotaHeadroom
from controllers.autoscaler.templates import PREFIX
from controllers.scheduling.shapes import CPU, MEMORY, Amounts, NodeInfo

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
        self._capacity = cluster.capacity.of_groups
        self._quotas = self._left_of(cluster.capacity.quotas, projected)
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
        found._quotas = self._quotas.copy() if self._quotas else None
        return found

    def nodes(self, node: NodeInfo) -> tuple[int, str]:
        """How many Nodes like this one may be added, and what allows no more."""
        found = list(self._counts)
        if self._quotas:
            found += self._quotas.nodes(node.labels, self._capacity_of(node))
        for resource, (left, why) in self._amounts.items():
            if node.amount(resource):
                found.append((left // node.amount(resource), why))
        least, why = min(found)
        return max(0, least), why

    def take(self, node: NodeInfo, count: int) -> None:
        if self._quotas:
            self._quotas.take(node.labels, self._capacity_of(node), count=count)
        self._counts = [(left - count, why) for left, why in self._counts]
        self._amounts = {
            resource: (left - count * node.amount(resource), why) for resource, (left, why) in self._amounts.items()
        }

    def _left_of(self, quotas: Sequence[Quota], projected: ProjectedCluster) -> QuotaHeadroom | None:
        """What Nodes on their way will have is taken off."""
        if not quotas:
            return None
        left = QuotaHeadroom(quotas)
        for node, count in projected.nodes:
            if node.hypothetical:
                left.take(node.labels, self._capacity_of(node), count=count)
        return left

    def _capacity_of(self, node: NodeInfo) -> Amounts:
        """Of a Node to come: as its group is said to have, else what it offers to pods."""
        return self._capacity.get(node.name.removeprefix(PREFIX), node.allocatable)
