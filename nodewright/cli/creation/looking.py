"""The Cluster and its members as they are now, read from the plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from controllers.kernel.ownership import cluster_name_of
from controllers.kernel.refs import (
    CLUSTER,
    CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    Key,
    Kind,
    Obj,
    key_of,
)
from nodewright.cli.cluster.snapshot import now_view, objects_of, read_cluster
from nodewright.reports.tree.branch import Branch
from nodewright.reports.tree.builder import DisplayOptions, grow
from nodewright.runtime.kube.client import KubeClient

MEMBERS = (CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE)


@dataclass(frozen=True, slots=True)
class Look:
    """``cluster`` None: there is no such object; ``tree`` then too."""

    cluster: Obj | None
    members: Mapping[Kind, tuple[Obj, ...]]
    tree: Branch | None
    now: datetime

    @property
    def empty(self) -> bool:
        return self.cluster is None and not any(self.members.values())


async def look(client: KubeClient, cluster: Key) -> Look:
    """Raises ApiError and NoAnswer as the client does."""
    cache = await read_cluster(client)
    view = now_view(cache)
    obj = view.get(CLUSTER, cluster)
    members = {kind: tuple(o for o in objects_of(cache, kind) if _is_of(o, cluster)) for kind in MEMBERS}
    tree = grow(CLUSTER, obj, view, DisplayOptions()) if obj is not None else None
    return Look(obj, members, tree, view.now)


def _is_of(obj: Obj, cluster: Key) -> bool:
    return key_of(obj).namespace == cluster.namespace and cluster_name_of(obj) == cluster.name
