"""How many pods of one class each Node takes as things stand: the predicates of ``predicates``, all Nodes at once."""

from __future__ import annotations

import numpy as np

from controllers.scheduling.classes import PodClass
from controllers.scheduling.columns import ABSENT, ALONE, Bools, Ints
from controllers.scheduling.matchers import Averse, Listening, MeantByAll, Using
from controllers.scheduling.predicates import volume_refusal
from controllers.scheduling.snapshot import Snapshot

PLENTY = 1 << 40
"""More pods than there are."""


def headroom_of(snapshot: Snapshot, pod_class: PodClass, rows: Ints) -> Ints:
    """The pods that one Node of each of ``rows`` takes, by all that pods of the class don't change for each other."""
    demand = pod_class.demand
    headroom = snapshot.headroom(demand.requests, rows)
    if demand.blocked:
        return np.zeros_like(headroom)
    allowed: Bools = snapshot.admits(pod_class, rows) & ~snapshot.closed[rows]
    for term in snapshot.aversions(pod_class):
        allowed &= ~inhabited(snapshot, term.topology_key, snapshot.counts(Averse(term)))[rows]
    if demand.ports:
        allowed &= snapshot.counts(Listening(demand.ports))[rows] == 0
        np.minimum(headroom, 1, out=headroom)
    for term in demand.anti_affinity:
        if not pod_class.is_meant_by(term):
            allowed &= ~inhabited(snapshot, term.topology_key, snapshot.counts(MeantByAll((term,))))[rows]
    if demand.volumes:
        allowed &= _volumes_come_along(snapshot, pod_class, rows)
    headroom[~allowed] = 0
    return headroom


def inhabited(snapshot: Snapshot, topology_key: str, counts: Ints) -> Bools:
    """Per row whether its place has any of the counted pods; a row without the label is in no place."""
    codes = snapshot.codes(topology_key)
    here = counts > 0
    places = np.zeros(int(codes.max(initial=-1)) + 1, np.bool_)
    places[codes[here & (codes >= 0)]] = True
    found = np.zeros(len(codes), np.bool_)
    shared = codes >= 0
    found[shared] = places[codes[shared]]
    found |= (codes == ALONE) & here
    return found


def is_per_node(snapshot: Snapshot, topology_key: str) -> bool:
    """Whether no two Nodes share a value of the label."""
    codes = snapshot.codes(topology_key)
    shared = codes >= 0
    if not shared.any():
        return True
    return int(np.bincount(codes[shared]).max()) == 1 and int(snapshot.copies[shared].max()) == 1


def _volumes_come_along(snapshot: Snapshot, pod_class: PodClass, rows: Ints) -> Bools:
    """Volumes bind to few Nodes and to few pods, so they are asked Node by Node."""
    volumes = pod_class.demand.volumes
    allowed = np.fromiter((volume_refusal(volumes, snapshot.nodes[row]) is None for row in rows), np.bool_, len(rows))
    mine = {(volume.driver, volume.handle) for volume in volumes if volume.driver}
    for position in np.flatnonzero(allowed) if mine else ():
        row = rows[position]
        limits = snapshot.nodes[row].volume_limits
        if not limits:
            continue
        there = {(v.driver, v.handle) for other in snapshot.pods[row] for v in other.demand.volumes if v.driver}
        for driver, limit in limits:
            new = sum(1 for each in mine - there if each[0] == driver)
            if new and new + sum(1 for each in there if each[0] == driver) > limit:
                allowed[position] = False
    return allowed


def in_use(snapshot: Snapshot, pod_class: PodClass) -> bool:
    """Whether a volume that only one pod may have is taken."""
    exclusive = frozenset(volume.handle for volume in pod_class.demand.volumes if volume.exclusive)
    return bool(exclusive) and bool(snapshot.counts(Using(exclusive)).any())


def has_label(snapshot: Snapshot, topology_key: str) -> Bools:
    codes = snapshot.codes(topology_key)
    present: Bools = codes != ABSENT
    return present
