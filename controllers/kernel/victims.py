"""Who goes first: one total order, shared by the MachineSet that deletes and the MachineDeployment that plans for it.

    deleting > annotated > failed, unhealthy or no Node > not Ready > failed or unhealthy, but Ready > user's priority
    > policy by exact age > name

One that is Ready serves, whatever else is said of it, and a minimum counts it: whoever does not serve goes first.
Sharing it is what lets "scale the old set down by one" mean a known Machine. Ages are compared exactly: peers squeeze
them through an exponential that is 1.0 after about a year, so that old Machines tie with annotated ones
(cluster-api#5424, #10755).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from hashlib import sha256

from api.names import DeletePolicy
from controllers.kernel.machine_facts import MachineFacts


class Rank(IntEnum):
    """The lower, the earlier it goes."""

    DELETING = 0
    ANNOTATED = 1
    FAILED = 2
    NOT_READY = 3
    AILING = 4
    READY = 5


def rank(machine: MachineFacts) -> Rank:
    if machine.deleting:
        return Rank.DELETING
    if machine.annotated:
        return Rank.ANNOTATED
    ails = machine.failed or machine.unhealthy or not machine.node_name
    if machine.ready:
        return Rank.AILING if ails else Rank.READY
    return Rank.FAILED if ails else Rank.NOT_READY


def in_order(machines: Iterable[MachineFacts], policy: str = DeletePolicy.RANDOM) -> list[MachineFacts]:
    """``machines`` with the first victim first. An unknown or empty policy means Random, as in the lineage."""
    return sorted(machines, key=lambda machine: _sort_key(machine, policy))


def _sort_key(machine: MachineFacts, policy: str) -> tuple[int, int, float, str, str]:
    age, lot = 0.0, ""
    if policy == DeletePolicy.OLDEST:
        age = machine.created.timestamp()
    elif policy == DeletePolicy.NEWEST:
        age = -machine.created.timestamp()
    else:
        lot = sha256(machine.uid.encode()).hexdigest()
    return (rank(machine), -machine.priority, age, lot, machine.key.name)
