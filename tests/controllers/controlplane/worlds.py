"""States of a control plane by their parts, and a world in which steps succeed and time passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

from controllers.controlplane.state import (
    Health,
    Machine,
    Member,
    Phase,
    Policy,
    State,
)


@dataclass(frozen=True)
class Slot:
    """A Machine, a member, or both: what one host stands for. Hosts of one kind are alike: their order says nothing."""

    machine: Machine | None = None
    member: Member | None = None

    def numbered(self, number: int) -> Slot:
        name = f"cp-{number}"
        machine = replace(self.machine, name=name, created=number) if self.machine else None
        member = None
        if self.member is not None:
            own = name if self.machine is not None else ""
            member = replace(self.member, id=number + 1, name=f"node-{number}" if self.member.name else "", machine=own)
        return Slot(machine, member)


def _member(health: Health, *, learner: bool = False, started: bool = True) -> Member:
    return Member(0, "x" if started else "", learner=learner, health=health)


HEALTHY, SICK, UNKNOWN = (_member(health) for health in (Health.HEALTHY, Health.UNHEALTHY, Health.UNKNOWN))
LEARNER = _member(Health.HEALTHY, learner=True)
UNSTARTED = _member(Health.UNKNOWN, started=False)
_RUNNING, _OLD = Machine(""), Machine("", up_to_date=False)
_JOINING = Machine("", phase=Phase.JOINING, whole=False)

SLOTS = (
    Slot(_RUNNING, HEALTHY),
    Slot(_OLD, HEALTHY),
    Slot(_RUNNING, SICK),
    Slot(_RUNNING, UNKNOWN),
    Slot(replace(_RUNNING, replace=True), HEALTHY),
    Slot(replace(_RUNNING, dead=True, whole=False), SICK),
    Slot(_JOINING),
    Slot(replace(_RUNNING, phase=Phase.DRAINED), HEALTHY),
    Slot(None, SICK),
    Slot(replace(_OLD, phase=Phase.UPDATING), HEALTHY),
)
"""The kinds of hosts that differ most; with seven hosts there are 19448 states of them."""
MORE_SLOTS = (
    *SLOTS,
    Slot(_JOINING, LEARNER),
    Slot(None, HEALTHY),
    Slot(None, UNSTARTED),
    Slot(replace(_RUNNING, phase=Phase.DRAINING), HEALTHY),
    Slot(replace(_RUNNING, phase=Phase.DRAINING), SICK),
    Slot(replace(_RUNNING, phase=Phase.DRAINED)),
    Slot(replace(_RUNNING, dead=True)),
    Slot(replace(_RUNNING, replace=True, whole=False), UNKNOWN),
    Slot(replace(_RUNNING, whole=False), HEALTHY),
    Slot(replace(_OLD, whole=False), SICK),
    Slot(replace(_OLD, stays="another host"), HEALTHY),
    Slot(replace(_RUNNING, expires="they end soon"), HEALTHY),
    Slot(replace(_JOINING, replace=True), UNSTARTED),
    Slot(replace(_RUNNING, phase=Phase.DRAINED, may_join=True)),
)


def states(
    slots: tuple[Slot, ...], most: int, replicas: tuple[int, ...], policies: tuple[Policy, ...]
) -> Iterator[State]:
    """Every state of up to ``most`` hosts, each choice of kinds once whatever the order."""
    for count in range(most + 1):
        for chosen in combinations_with_replacement(slots, count):
            hosts = [slot.numbered(number) for number, slot in enumerate(chosen)]
            machines = tuple(host.machine for host in hosts if host.machine is not None)
            members = tuple(host.member for host in hosts if host.member is not None)
            for size in replicas:
                for policy in policies:
                    yield State(size, machines, members, policy=policy)
