"""Where the Nodes of each Machine are seen: in a cluster of their own, if they have one, which may be lost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from controllers.kernel.node_policy import cluster_key_of
from controllers.kernel.refs import MACHINE, NODE, Key, Obj
from controllers.kernel.view import ManagementCluster, Unreachable, View

OUTAGE = "the API server can't be followed now: what is known may be old"


@dataclass(frozen=True, slots=True)
class NodeSource:
    """``nodes``: since when the cluster's Nodes have been followed. ``lost``: why nobody knows how they are now.

    ``outage``: why not even that can be said, so that the whole check has to wait.
    """

    view: View
    nodes: datetime
    lost: str = ""
    outage: str = ""


class NodeSources:
    """Nodes of all clusters at one moment; each is looked up once."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._found: dict[Key | None, NodeSource] = {}

    def of(self, machine: Obj) -> NodeSource:
        cluster = cluster_key_of(MACHINE, machine)
        found = self._found.get(cluster)
        if found is None:
            found = self._found[cluster] = _node_source(cluster, self._view)
        return found


def _node_source(cluster: Key | None, view: View) -> NodeSource:
    there = view.of_cluster(cluster)
    nodes = there.current_since(NODE)
    if isinstance(there.workload, Unreachable) and there.workload.finding_out:
        return NodeSource(there, view.now, outage=f"Cluster {cluster}: {there.workload.why}")
    if nodes is not None and there.complete(NODE) and not isinstance(there.workload, Unreachable):
        return NodeSource(there, nodes)
    if isinstance(there.workload, ManagementCluster):
        return NodeSource(there, view.now, outage=OUTAGE)
    return NodeSource(there, view.now, f"Cluster {cluster} can't be followed now (see its condition Reachable)")
