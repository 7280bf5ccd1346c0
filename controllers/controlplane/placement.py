"""Over which failure domains the Machines of a control plane go: where the next one joins, and from where one leaves.

Only a choice among steps that the quorum allows: whether one is made at all is decided in ``planner``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from controllers.controlplane.state import InPlace, Machine, State
from controllers.kernel.failure_domains import choose


def next_domain(state: State) -> str:
    """Where a Machine that joins now has its host, "" if the provider is to choose.

    Machines of an earlier template that are replaced count last: with one of them in each of a, b and c, replacements
    go to a, b and c, though a holds none of the new ones and is empty again by the time of the second.
    """
    open_ = [domain for domain in state.domains if domain not in state.exhausted] or state.domains
    stay, total = _loads([m for m in _counted(state) if _stays_there(m, state)]), loads(state)
    fewest = min((stay[domain] for domain in open_), default=0)
    return next(iter(choose([domain for domain in open_ if stay[domain] == fewest], total, 1)), "")


def crowding(state: State, machine: Machine) -> tuple[bool, int]:
    """Of Machines that are equally good otherwise, the one goes first for which this is the least: one in a domain
    that is not listed (any more), then one in the fullest."""
    if not state.domains:
        return (True, 0)
    return (machine.domain in state.domains, -loads(state)[machine.domain])


def loads(state: State) -> Counter[str]:
    """Machines of each domain, without those that go."""
    return _loads(_counted(state))


def _loads(machines: Sequence[Machine]) -> Counter[str]:
    return Counter(machine.domain for machine in machines)


def _counted(state: State) -> list[Machine]:
    return [machine for machine in state.machines if not machine.deleting and not machine.goes]


def _stays_there(machine: Machine, state: State) -> bool:
    """It has the present template, or gets it on its host."""
    return machine.up_to_date or (state.policy.in_place is not InPlace.NEVER and not machine.stays)
