"""What a label selector chooses of a fleet: the objects that it matches, and all that belongs to one of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from api.selectors import Selector
from controllers.kernel.node_policy import cluster_key_of
from controllers.kernel.ownership import controller_uid
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
    labels_of,
    uid_of,
)

_OWNERS_FIRST = (CLUSTER, CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE)


def chosen(objects: Mapping[Kind, Iterable[Obj]], selector: Selector) -> dict[Kind, list[Obj]]:
    """``objects`` without those that ``selector`` neither matches nor chooses by their owner or their Cluster.

    A MachineDeployment with such labels brings its MachineSets and Machines, whatever theirs are. Of a selector that
    asks nothing all are chosen.
    """
    owners: set[tuple[str, str]] = set()
    clusters: set[Key] = set()
    found: dict[Kind, list[Obj]] = {}
    for kind in sorted(objects, key=_rank):
        found[kind] = []
        for obj in objects[kind]:
            if not _is_chosen(kind, obj, selector, (owners, clusters)):
                continue
            found[kind].append(obj)
            owners.add((key_of(obj).namespace, uid_of(obj)))
            if kind == CLUSTER:
                clusters.add(key_of(obj))
    return found


def _is_chosen(kind: Kind, obj: Obj, selector: Selector, before: tuple[set[tuple[str, str]], set[Key]]) -> bool:
    owners, clusters = before
    return (
        selector.matches(labels_of(obj))
        or (key_of(obj).namespace, controller_uid(obj)) in owners
        or (kind != CLUSTER and cluster_key_of(kind, obj) in clusters)
    )


def _rank(kind: Kind) -> int:
    return _OWNERS_FIRST.index(kind) if kind in _OWNERS_FIRST else len(_OWNERS_FIRST)
