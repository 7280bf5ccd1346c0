"""States of a control plane by their parts, and a world in which steps succeed and time passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

from controllers.controlplane.placement import next_domain
from controllers.controlplane.state import (
    Health,
    Init,
    Join,
    Machine,
    Member,
    Phase,
    Policy,
    Release,
    Remove,
    RemoveMember,
    State,
    Step,
    UpgradeInPlace,
    Wait,
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


def after(state: State, step: Step) -> State:
    """The state once the step has succeeded."""
    machines, members = list(state.machines), list(state.members)
    match step:
        case Init():
            machines.append(Machine("cp-0", phase=Phase.JOINING, whole=False, domain=next_domain(state)))
            return replace(state, machines=tuple(machines), init_machine="cp-0")
        case Join():
            number = 1 + max((machine.created for machine in machines), default=0)
            joins = Machine(f"cp-{number}", number, Phase.JOINING, whole=False, domain=next_domain(state))
            machines.append(joins)
        case Remove(machine=name):
            machines = [replace(m, phase=Phase.DRAINING) if m.name == name else m for m in machines]
        case RemoveMember(member=member):
            members = [m for m in members if m.id != member]
        case Release(machine=name):
            machines = [m for m in machines if m.name != name]
        case UpgradeInPlace(machine=name):
            machines = [replace(m, phase=Phase.UPDATING) if m.name == name else m for m in machines]
        case Wait():
            return passed(state)
    return replace(state, machines=tuple(machines), members=tuple(members))


def passed(state: State) -> State:
    """Time passes, and all that may go well does: joins and drains end, health checks and people do their part."""
    machines, members = [], {member.id: member for member in state.members}
    for machine in state.machines:
        own = [member for member in members.values() if member.machine == machine.name]
        moved = _moved(machine, own)
        if moved is not None:
            machines.append(moved)
        if (machine.phase is Phase.JOINING or machine.may_join) and not machine.goes:
            for member in own:
                members[member.id] = replace(member, name=member.name or "n", learner=False, health=Health.HEALTHY)
            if not own:
                number = 1 + max(members, default=0)
                members[number] = Member(number, machine.name, machine.name, health=Health.HEALTHY)
        for member in own:
            if member.health is Health.UNKNOWN and not machine.dead and member.name:
                members[member.id] = replace(member, health=Health.HEALTHY)
    for member in members.values():
        if not member.machine and member.health is Health.UNKNOWN and member.name:
            members[member.id] = replace(member, health=Health.UNHEALTHY)
    return replace(state, machines=tuple(machines), members=tuple(members.values()), initialized=True)


def _moved(machine: Machine, own: list[Member]) -> Machine | None:
    works = any(member.works for member in own)
    machine = replace(machine, had_member=machine.had_member or bool(own))
    match machine.phase:
        case Phase.JOINING if not machine.goes:
            return replace(machine, phase=Phase.RUNNING, whole=True)
        case Phase.UPDATING if not machine.goes:
            return replace(machine, phase=Phase.RUNNING, up_to_date=True, whole=True)
        case Phase.DRAINING:
            return None if machine.dead else replace(machine, phase=Phase.DRAINED)
        case Phase.DRAINED if machine.dead:
            return None
        case Phase.DRAINED:
            return replace(machine, may_join=False)
        case Phase.RUNNING if not machine.whole or not (works or machine.goes):
            return replace(machine, replace=True)
    return machine
