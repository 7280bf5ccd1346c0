"""Who goes first: one total order, shared by the MachineSet that deletes and the MachineDeployment that plans for it.

    deleting > annotated > failed, unhealthy or no Node > not Ready > user's priority > policy > name

The policy is a lot, the exact age, or how much a Machine's going would disturb (which its MachineSet alone finds out).

Sharing it is what lets "scale the old set down by one" mean a known Machine. Ages are compared exactly: peers squeeze
them through an exponential that is 1.0 after about a year, so that old Machines tie with annotated ones
(cluster-api#5424, #10755).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from hashlib import sha256

from api.names import DeletePolicy
from controllers.kernel.machine_facts import MachineFacts

UNPLACED: Mapping[str, int] = {}
_LAST = 1 << 40


class Rank(IntEnum):
    """The lower, the earlier it goes."""

    DELETING = 0
    ANNOTATED = 1
    FAILED = 2
    NOT_READY = 3
    READY = 4


def rank(machine: MachineFacts) -> Rank:
    if machine.deleting:
        return Rank.DELETING
    if machine.annotated:
        return Rank.ANNOTATED
    if machine.failed or machine.unhealthy or not machine.node_name:
        return Rank.FAILED
    return Rank.READY if machine.ready else Rank.NOT_READY


def in_order(
    machines: Iterable[MachineFacts],
    policy: str = DeletePolicy.RANDOM,
    places: Mapping[str, int] = UNPLACED,
) -> list[MachineFacts]:
    """``machines`` with the first victim first. An unknown or empty policy means Random, as in the lineage.

    ``places``: uid → place in the order of LeastDisruptive, as far as that is known; those without one come last and by
    lot.
    """
    return sorted(machines, key=lambda machine: _sort_key(machine, policy, places.get(machine.uid, _LAST)))


def _sort_key(machine: MachineFacts, policy: str, place: int) -> tuple[int, int, float, str, str]:
    age, lot = 0.0, ""
    if policy == DeletePolicy.OLDEST:
        age = machine.created.timestamp()
    elif policy == DeletePolicy.NEWEST:
        age = -machine.created.timestamp()
    else:
        age = float(place)
        lot = sha256(machine.uid.encode()).hexdigest()
    return (rank(machine), -machine.priority, age, lot, machine.key.name)
