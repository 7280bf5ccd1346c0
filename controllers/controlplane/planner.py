"""State → Decision: the one change that is to be made now, or why there is none.

The rule (facts of etcd, not of taste): no step leaves fewer healthy voters than a quorum after one more loss, unless
that is so already and the step is on the way out of it. With *margin* = healthy voters - quorum:

| step | allowed if |
|---|---|
| remove a member that does not work | margin >= 0 now: etcd has to agree. It never falls by it: 2 of 3 → 2 of 2 |
| remove a working one | margin >= 1 after it: 4 of 4 → 3 of 3 |
| the same, margin 0 after it | all voters work, and one is desired, or the hosts are fixed, or it was 0 before |
| join | all voters work and nobody is a learner: etcd refuses or hangs else, and 2 of 4 would be no quorum |
| upgrade in place | margin >= 1 now, since the member is away for a while; or it is the only one |

The last healthy voter is never removed. ``kubeadm init`` runs once: never while there is any trace of a cluster.
A member of a dead host goes before its replacement comes: a join beside it hangs (``etcdserver: unhealthy cluster``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from controllers.controlplane.placement import crowding
from controllers.controlplane.quorum import Votes, quorum, votes_of
from controllers.controlplane.state import (
    MAX_REPLICAS,
    Decision,
    Health,
    Init,
    InPlace,
    Join,
    Machine,
    Member,
    Phase,
    Release,
    Remove,
    RemoveMember,
    State,
    Step,
    UpgradeInPlace,
    Wait,
)


def decide(state: State) -> Decision:
    """Total: any state has a decision, and it holds at most one change."""
    if state.replicas < 1 or state.replicas > MAX_REPLICAS or state.replicas % 2 == 0:
        why = f"spec.replicas: {state.replicas} is not an odd number from 1 to {MAX_REPLICAS}"
        return Decision(Wait(f"{why}: an even number bears no more losses than one less", stuck=True))
    return _Planner(state).decide()


class _Planner:
    """One decision. Each rule returns a step, or None if it has nothing to do; what it would not do it refuses."""

    def __init__(self, state: State) -> None:
        self.refusals: list[str] = []
        self.state = state = self._as_it_counts(state)
        self.votes = votes_of(state.members)
        self.staying = [machine for machine in state.machines if not machine.deleting and not machine.goes]

    def _as_it_counts(self, state: State) -> State:
        """A member of a dead host does not work, whatever was seen last. One that may not be replaced stays."""
        dead = {machine.name for machine in state.machines if machine.dead}
        members = tuple(replace(m, health=Health.UNHEALTHY) if m.machine in dead else m for m in state.members)
        machines = state.machines
        if state.policy.remediates:
            kept = [machine for machine in machines if machine.goes and not machine.deleting]
            self.refusals += [f"Machine {machine.name} is not replaced: {state.policy.remediates}" for machine in kept]
            machines = tuple(replace(m, dead=False, replace=False, whole=False) if m in kept else m for m in machines)
        return replace(state, members=members, machines=machines)

    def decide(self) -> Decision:
        rules: tuple[Callable[[], Step | None], ...] = (
            self._begin,
            self._release,
            self._needs_etcd,
            self._clean,
            self._bury,
            self._let_go,
            self._busy,
            self._grow,
            self._shrink,
            self._renew,
            self._settled,
        )
        for rule in rules:
            step = rule()
            if step is not None:
                return Decision(step, tuple(self.refusals))
        return Decision(Wait("nothing is to be done", settled=True), tuple(self.refusals))

    # -- before there is a cluster

    def _begin(self) -> Step | None:
        """The first Machine. It is made under one name for ever, so that two can't be."""
        state = self.state
        if state.initialized:
            return None
        if state.blocked:
            return Wait(state.blocked, stuck=True)
        if state.members:
            return Wait("etcd has members, though nothing says that the cluster was initialized: not initialized again")
        others = [machine.name for machine in state.machines if machine.name != state.init_machine]
        if others:
            self.refusals.append(f"no kubeadm init: {_listed(others)} may carry a cluster already")
            return Wait(f"Machine {others[0]} is there, and it is not the one that initializes the cluster", stuck=True)
        first = next(iter(state.machines), None)
        if first is None:
            return Init(state.init_machine, "the control plane is initialized on its first Machine")
        if first.deleting:
            return self._release() or Wait(f"Machine {first.name} goes before the cluster is initialized once more")
        if first.goes:
            return Remove(first.name, f"Machine {first.name} did not initialize the cluster")
        return Wait(f"Machine {first.name} initializes the cluster")

    # -- Machines that go, and what is left of others

    def _release(self) -> Step | None:
        """A host without a member may go. While etcd's list is not known, nobody knows that it has none.

        One that joins just now is let finish: it would take its vote along, and 1 of 2 is no quorum.
        """
        if self.state.etcd_unknown and self.state.initialized:
            return None
        for machine in self.state.machines:
            if machine.phase is not Phase.DRAINED or not machine.held or self._members_of(machine):
                continue
            if machine.may_join and not machine.dead:
                self.refusals.append(
                    f"Machine {machine.name} keeps its host: it may be joining, and get a vote, right now"
                )
            else:
                return Release(machine.name, f"Machine {machine.name} has no etcd member")
        return None

    def _needs_etcd(self) -> Step | None:
        if self.state.etcd_unknown:
            return self._mend() or Wait(f"etcd's members are not known: {self.state.etcd_unknown}")
        if not self.votes.voters:
            return Wait("etcd lists no voter", stuck=True)
        if self.votes.have_quorum:
            return None
        unknown = sum(member.health is Health.UNKNOWN and member.is_voter for member in self.state.members)
        if self.votes.healthy + unknown >= quorum(self.votes.voters):
            return self._mend() or Wait(f"{self.votes}: of {unknown} nothing is known")
        message = f"{self.votes}: etcd can't change its members; repair their hosts, or restore a snapshot"
        return self._mend() or Wait(message, stuck=True)

    def _mend(self) -> Step | None:
        """The only Machine does not work, and a template that may cure it waits: no voter is lost by it."""
        policy, machine = self.state.policy, next(iter(self.state.machines), None)
        alone = machine is not None and len(self.state.machines) == 1 and len(self.state.members) <= 1
        if not alone or machine is None or machine.whole or machine.up_to_date or self._works(machine):
            return None
        if machine.phase is not Phase.RUNNING or machine.goes or machine.stays or policy.in_place is InPlace.NEVER:
            return None
        if policy.paused or self.state.blocked:
            self.refusals.append(f"Machine {machine.name} is not updated: {policy.paused or self.state.blocked}")
            return None
        return UpgradeInPlace(machine.name, f"Machine {machine.name} does not work and gets the present template")

    def _clean(self) -> Step | None:
        """Members that no Machine has: a failed join left them, or the Machine went without us (Cluster API 13221)."""
        coming = [machine for machine in self.state.machines if self._may_come(machine)]
        for member in self.state.members:
            if member.machine:
                continue
            if member.works and member.is_voter:
                self.refusals.append(f"{member.title} is healthy and has no Machine: remove it by hand, if it is to go")
            elif coming:
                self.refusals.append(f"{member.title} has no Machine: it may be that of {coming[0].name}, which joins")
            elif member.health is Health.UNKNOWN and member.is_voter and member.name:
                self.refusals.append(f"{member.title} has no Machine, and nobody knows whether it works")
            else:
                return RemoveMember(member.id, "", f"{member.title} has no Machine")
        return None

    def _may_come(self, machine: Machine) -> bool:
        """It may get a member. kubeadm starts the kubelet before etcd, so a Node says nothing of that."""
        if machine.dead or machine.had_member or self._members_of(machine):
            return False
        return machine.may_join or not (machine.deleting or machine.replace)

    def _bury(self) -> Step | None:
        """Members that don't work of Machines that go: the margin can only grow by it.

        The Machine is deleted before, so that nobody takes that back: a member that was removed never works again. The
        API server on such a host has no etcd, so its kubelet could report no drain anyway.
        """
        for machine in self._going():
            for member in self._members_of(machine):
                waits = not machine.deleting or (machine.phase is Phase.DRAINING and member.health is Health.UNKNOWN)
                if not waits and not (member.works and member.is_voter) and not self._is_drained_of(machine, member):
                    why = f"{member.title} does not work and Machine {machine.name} goes"
                    return RemoveMember(member.id, machine.name, why)
        return None

    def _is_drained_of(self, machine: Machine, member: Member) -> bool:
        """A working learner of a Machine that is still being drained: it stays until then."""
        return member.learner and member.works and machine.phase is Phase.DRAINING

    def _let_go(self) -> Step | None:
        """Machines that go and have a working member, or none any more: one after the other."""
        for machine in self._going():
            working = self._members_of(machine)
            if machine.phase is Phase.DRAINING or (machine.phase is Phase.DRAINED and not working):
                continue
            others = [m.name for m in self._going() if m.deleting and m is not machine and self._members_of(m)]
            why = self._why_not_without(machine)
            if not why and others and self._works(machine) and not machine.deleting:
                why = f"Machine {others[0]} goes first"
            if why:
                self.refusals.append(f"Machine {machine.name} does not go: {why}")
            elif machine.phase is Phase.DRAINED:
                return RemoveMember(working[0].id, machine.name, f"Machine {machine.name} is drained and goes")
            else:
                return Remove(machine.name, f"Machine {machine.name} is to be replaced")
        return None

    def _busy(self) -> Step | None:
        """One change at a time: the one before has to be over."""
        for machine in self.state.machines:
            if machine.may_join and not machine.dead and not self._members_of(machine):
                return Wait(f"Machine {machine.name} goes once it has joined, or can't join any more")
            if machine.goes:
                continue
            if machine.phase is Phase.JOINING:
                return Wait(f"Machine {machine.name} joins")
            if machine.went_back and machine.phase is Phase.UPDATING:
                why = f"Machine {machine.name} could not be updated: {machine.went_back}"
                return Wait(f"{why}; no other is touched until another version or template is asked for", stuck=True)
            if machine.phase is Phase.UPDATING:
                return Wait(f"Machine {machine.name} is being updated in place")
        return None

    # -- the number of Machines

    def _grow(self) -> Step | None:
        short = self.state.replicas - len(self.staying)
        if short <= 0:
            return None
        free = self.state.replicas + self.state.policy.surge - len(self.state.machines)
        if free <= 0:
            most = f"maxSurge {self.state.policy.surge} allows {len(self.state.machines) + free} Machines"
            self.refusals.append(f"no Machine joins: {most}, another one goes first")
            return None
        return self._join(f"{len(self.staying)} of {self.state.replicas} Machines are there")

    def _join(self, reason: str) -> Step | None:
        why = self._why_no_join()
        if why:
            self.refusals.append(f"no Machine joins: {why}")
            return None
        return Join(reason)

    def _shrink(self) -> Step | None:
        """One too many goes: after a surge, or since fewer are desired.

        A new one has a Node before its control plane works. Until then none goes: it would be the new one, and a next
        one would join for ever.
        """
        if len(self.staying) <= self.state.replicas or self._is_going():
            return None
        young = [machine for machine in self.staying if machine.renewed and not self._is_whole(machine)]
        if young and any(not machine.renewed for machine in self.staying):
            return Wait(f"Machine {young[0].name} has to work before one of an earlier template goes")
        return self._take(self.staying, f"{self.state.replicas} Machines are desired, {len(self.staying)} are there")

    # -- Machines of an earlier template, or whose certificates end

    def _renew(self) -> Step | None:
        policy = self.state.policy
        outdated = [machine for machine in self.staying if not machine.renewed]
        if not outdated or len(self.staying) != self.state.replicas or self._is_going():
            return None
        if self.state.blocked or policy.paused:
            return Wait(self.state.blocked or policy.paused, stuck=True)
        broken = [machine for machine in self.staying if not self._is_whole(machine)]
        if any(machine.renewed for machine in broken):
            titles = _listed([machine.name for machine in broken if machine.renewed])
            self.refusals.append(f"no Machine of the earlier template is touched: {titles} does not work")
            return None
        movable = [machine for machine in outdated if not machine.stays]
        if policy.in_place is InPlace.REQUIRE and not movable:
            return Wait(f"Machine {outdated[0].name} can't be updated in place: {outdated[0].stays}", stuck=True)
        if policy.in_place is not InPlace.NEVER and movable:
            return self._update(movable)
        if policy.surge:
            return self._join(f"a replacement of Machine {self._victims(outdated)[0].name} joins before it goes")
        if self.state.replicas == 1:
            why = "the only Machine can't go before its replacement (maxSurge: 0): allow inPlace or maxSurge: 1"
            return Wait(why, stuck=True)
        return self._take(outdated, "it is of an earlier template, or its certificates end")

    def _update(self, outdated: list[Machine]) -> Step | None:
        machine = self._victims(outdated)[0]
        why = self._why_no_update(machine)
        if why:
            self.refusals.append(f"Machine {machine.name} is not updated in place: {why}")
            return None
        if machine.up_to_date:
            return UpgradeInPlace(machine.name, f"Machine {machine.name} renews its certificates: {machine.expires}")
        return UpgradeInPlace(machine.name, f"Machine {machine.name} gets the present template")

    def _settled(self) -> Step | None:
        """Nothing can be done, or nothing has to."""
        missing = [machine.name for machine in self.staying if not self._works(machine)]
        sick = [machine.name for machine in self.staying if not machine.whole]
        if self.refusals or missing or sick or self._is_going() or len(self.staying) != self.state.replicas:
            if missing:
                return Wait(f"Machine {missing[0]} has no healthy etcd member")
            if sick:
                return Wait(f"the control plane of Machine {sick[0]} is not ready")
            return Wait(self.refusals[-1] if self.refusals else "Machines are being deleted")
        return Wait("as desired", settled=True)

    # -- whether a step is safe

    def _why_not_without(self, machine: Machine) -> str:
        """Why the members of ``machine`` may not go, "" if they may."""
        votes, workers = self.votes, [member for member in self._members_of(machine) if member.is_voter]
        changing = [m.name for m in self.state.machines if m.phase in (Phase.JOINING, Phase.UPDATING) and not m.goes]
        if changing and any(member.works for member in workers):
            return f"Machine {changing[0]} is being changed, and one change is made at a time"
        for member in workers:
            if member.works and votes.healthy <= 1:
                return f"{member.title} is the last healthy voter"
            why = self._why_not(votes, votes.without(member), member)
            if why:
                return why
            votes = votes.without(member)
        return ""

    def _why_not(self, before: Votes, after: Votes, member: Member) -> str:
        if not member.works or after.margin >= 1:
            return ""
        all_work = before.healthy == before.voters and not self._learners()
        fixed = self.state.policy.surge == 0 and after.voters >= self.state.replicas - 1
        bears_it = self.state.replicas == 1 or fixed or after.margin >= before.margin
        if after.margin >= 0 and all_work and bears_it:
            return ""
        return f"without {member.title} {after}, and no further loss could be borne"

    def _why_no_join(self) -> str:
        if self.state.blocked:
            return self.state.blocked
        if len(self.state.members) >= MAX_REPLICAS + 1:
            return f"etcd has {len(self.state.members)} members"
        lame = [member for member in self.state.members if not member.works]
        if lame:
            return f"{lame[0].title} does not work, so etcd would not take another member"
        learners = self._learners()
        if learners:
            return f"{learners[0].title} is still a learner"
        sick = [m.name for m in self.staying if not self._is_whole(m)]
        if sick:
            return f"Machine {sick[0]} has to work first"
        return ""

    def _why_no_update(self, machine: Machine) -> str:
        if self.votes.voters == 1 or not self._works(machine):
            return ""
        if self.votes.margin >= 1:
            return ""
        return f"{self.votes}: while {machine.name} is away no quorum would be left, or none after one more loss"

    # -- who is who

    def _take(self, candidates: list[Machine], reason: str) -> Step | None:
        for machine in self._victims(candidates):
            why = self._why_not_without(machine)
            if not why:
                return Remove(machine.name, f"Machine {machine.name} goes: {reason}")
            self.refusals.append(f"Machine {machine.name} does not go: {why}")
        return None

    def _victims(self, candidates: list[Machine]) -> list[Machine]:
        """Order of deletion: Machines whose member or control plane does not work, marked ones, outdated ones, those in
        the fullest failure domain, the oldest.
        """
        return sorted(
            candidates,
            key=lambda m: (
                *(self._works(m), m.whole, not m.first, m.renewed, not m.went_back),
                *(*crowding(self.state, m), m.created, m.name),
            ),
        )

    def _going(self) -> list[Machine]:
        """Machines that go, the dead first."""
        found = [machine for machine in self.state.machines if machine.deleting or machine.goes]
        return sorted(found, key=lambda m: (not m.dead, not m.deleting, m.created, m.name))

    def _is_going(self) -> bool:
        return any(machine.deleting or machine.goes for machine in self.state.machines)

    def _members_of(self, machine: Machine) -> list[Member]:
        return [member for member in self.state.members if member.machine == machine.name]

    def _works(self, machine: Machine) -> bool:
        return any(member.works and member.is_voter for member in self._members_of(machine))

    def _is_whole(self, machine: Machine) -> bool:
        return machine.whole and self._works(machine)

    def _learners(self) -> list[Member]:
        return [member for member in self.state.members if member.learner]


def _listed(names: list[str]) -> str:
    return ("Machine " if len(names) == 1 else "Machines ") + ", ".join(sorted(names)[:5])
