"""The order of deletion: one total order, shared by the MachineSet that deletes and the MachineDeployment that plans
for it.

    deleting > annotated > failed, unhealthy or no Node > not Ready > failed or unhealthy, but Ready > user's priority
     > fullest failure domain > policy > name

Protected Machines come last of all, and whoever chooses leaves them out (``removable``).

The policy is a lot, the exact age, or how much a Machine's going would disturb (which its MachineSet alone finds out).

One that is Ready serves, whatever else is said of it, and a minimum counts it: whoever does not serve goes first.
Sharing it is what lets "scale the old set down by one" mean a known Machine. Ages are compared exactly: peers squeeze
them through an exponential that is 1.0 after about a year, so that old Machines tie with annotated ones
(cluster-api#5424, #10755).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from hashlib import sha256
from itertools import groupby

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
    AILING = 4
    READY = 5
    PROTECTED = 6


def rank(machine: MachineFacts) -> Rank:
    if machine.deleting:
        return Rank.DELETING
    if machine.protected:
        return Rank.PROTECTED
    if machine.annotated:
        return Rank.ANNOTATED
    ails = machine.failed or machine.unhealthy or not machine.node_name
    if machine.ready:
        return Rank.AILING if ails else Rank.READY
    return Rank.FAILED if ails else Rank.NOT_READY


def in_order(
    machines: Iterable[MachineFacts],
    policy: str = DeletePolicy.RANDOM,
    domains: Collection[str] = (),
    places: Mapping[str, int] = UNPLACED,
) -> list[MachineFacts]:
    """``machines`` with the first victim first. An unknown or empty policy means Random, as in the lineage.

    ``domains``: failure domains over which they are to be spread; of those that are equally good otherwise the next
    one comes from the domain that holds most by then, and before all from where none should be.
    ``places``: uid → place in the order of LeastDisruptive, as far as that is known; those without one come last and by
    lot.
    """
    ordered = sorted(machines, key=lambda machine: _sort_key(machine, policy, places.get(machine.uid, _LAST)))
    return _evened(ordered, domains) if domains else ordered


def _evened(ordered: list[MachineFacts], domains: Collection[str]) -> list[MachineFacts]:
    loads = Counter(machine.failure_domain for machine in ordered)
    found: list[MachineFacts] = []
    for _, equals in groupby(enumerate(ordered), key=lambda pair: _before_domains(pair[1])):
        queues: dict[str, deque[tuple[int, MachineFacts]]] = {}
        for position, machine in equals:
            queues.setdefault(machine.failure_domain, deque()).append((position, machine))
        while queues:
            fullest = min(queues, key=lambda domain: (domain in domains, -loads[domain], queues[domain][0][0]))
            found.append(queues[fullest].popleft()[1])
            loads[fullest] -= 1
            if not queues[fullest]:
                del queues[fullest]
    return found


def _before_domains(machine: MachineFacts) -> tuple[int, int]:
    return (rank(machine), -machine.priority)


def _sort_key(machine: MachineFacts, policy: str, place: int) -> tuple[int, int, float, str, str]:
    age, lot = 0.0, ""
    if policy == DeletePolicy.OLDEST:
        age = machine.created.timestamp()
    elif policy == DeletePolicy.NEWEST:
        age = -machine.created.timestamp()
    else:
        age = float(place)
        lot = sha256(machine.uid.encode()).hexdigest()
    return (*_before_domains(machine), age, lot, machine.key.name)


def removable(machines: Iterable[MachineFacts]) -> list[MachineFacts]:
    """Those that may be chosen to go: not who is protected, and not who goes already."""
    return [machine for machine in machines if not (machine.protected or machine.deleting)]
