"""A gang on Nodes that are there or on their way: all that it needs, or nothing."""

from __future__ import annotations

from collections.abc import Iterable

from controllers.autoscaler.gangs import Gang, within
from controllers.scheduling.classes import Group
from controllers.scheduling.placement import place
from controllers.scheduling.shapes import CPU, MEMORY, NodeInfo
from controllers.scheduling.snapshot import Snapshot

_MOST_DOMAINS = 50
"""Values of the label that are tried; trying one costs as much as a gang without a constraint."""


def place_whole(snapshot: Snapshot, gang: Gang) -> bool:
    """Put as many of its pods as it needs into the snapshot, or none."""
    if not gang.pods:
        return True
    if gang.missing:
        return False
    for pods in gang.choices():
        for domain in domains_of(gang, snapshot.nodes):
            snapshot.fork()
            groups = within(pods, snapshot.classes, topology=gang.topology, domain=domain)
            if not unplaced(snapshot, groups):
                snapshot.commit()
                return True
            snapshot.revert()
    return False


def unplaced(snapshot: Snapshot, groups: Iterable[Group]) -> list[Group]:
    """Pods that find no place in the snapshot; the others are there afterwards. Big ones go first."""
    left = []
    for group in sorted(groups, key=_size, reverse=True):
        count = place(snapshot, group.pod_class, len(group)).count
        if count < len(group):
            left.append(Group(group.pod_class, group.pods[count:]))
    return left


def domains_of(gang: Gang, nodes: Iterable[NodeInfo], more: Iterable[str] = ()) -> list[str]:
    """Where all of the gang may go: "" is everywhere. Where some of its pods are, the others go too."""
    if not gang.topology:
        return [""]
    if gang.domains:
        return list(gang.domains[:1])
    found = {node.labels[gang.topology] for node in nodes if node.labels.get(gang.topology)}
    return sorted(found.union(more))[:_MOST_DOMAINS]


def _size(group: Group) -> tuple[int, int]:
    asked = dict(group.pod_class.requests)
    return asked.get(CPU, 0), asked.get(MEMORY, 0)
