"""The course of a control plane: every change that is still to come, in its order, if each one succeeds.

The planner is asked again and again about a world in which its steps work and time passes. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from controllers.controlplane import saving
from controllers.controlplane.observe import Observed
from controllers.controlplane.placement import next_domain
from controllers.controlplane.planner import decide
from controllers.controlplane.state import (
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
from controllers.controlplane.together import followers
from controllers.controlplane.waiting import newer_workers
from controllers.kernel.control_planes import oldest_of
from controllers.kernel.names import machine_name
from controllers.kernel.refs import key_of
from controllers.kernel.version import parse
from controllers.kernel.view import View

MOST_STEPS = 300
"""Seven Machines need about ten steps each."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One change. ``what``: of which Machine or set; ``how``: what is done for it, in this order."""

    what: str
    how: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Course:
    """``stages`` as far as they are known; ``held``: why it does not begin, or not go on after them, "" if it does."""

    stages: tuple[Stage, ...] = ()
    held: str = ""


def course_of(observed: Observed, view: View) -> Course:
    """What is still to come, () if all is as desired. Total, as the planner is."""
    if observed.hold or observed.paused:
        return Course(held=observed.hold or observed.paused)
    taken, held = _taken(observed)
    stages = [*_stages(observed, taken)]
    if not held:
        stages += _workers(observed, view, changes=bool(taken))
    return Course(tuple(stages), held)


def as_if_working(observed: Observed) -> Observed:
    """Where nobody reads etcd: each Machine that has joined works, and has the member that it should have."""
    if observed.hold:
        return observed
    state = observed.state
    machines = tuple(m if m.phase is Phase.JOINING else replace(m, whole=not m.dead) for m in state.machines)
    joined = [m for m in machines if m.phase is not Phase.JOINING and not m.dead]
    members = tuple(Member(n, m.name, m.name, health=Health.HEALTHY) for n, m in enumerate(joined, 1))
    initialized = state.initialized or bool(members)
    assumed = replace(state, machines=machines, members=members, etcd_unknown="", initialized=initialized)
    return replace(observed, state=assumed)


def _taken(observed: Observed) -> tuple[list[tuple[State, Step, str]], str]:
    """Each change with the state before it and the name of a Machine that it makes; and why there are no more."""
    state, ordinal = observed.state, observed.next_ordinal
    taken: list[tuple[State, Step, str]] = []
    for _ in range(MOST_STEPS):
        decision = decide(state)
        step, name = decision.step, ""
        match step:
            case Wait(settled=True):
                return taken, ""
            case Wait(stuck=True):
                return taken, step.why
            case Init():
                name = observed.first_name
            case Join():
                name, ordinal = machine_name(observed.prefix, ordinal), ordinal + 1
        later = after(state, step, name)
        if later == state:
            return taken, "; ".join((step.why, *decision.refusals))
        if not isinstance(step, Wait):
            taken.append((state, step, name))
        state = later
    return taken, f"more than {MOST_STEPS} steps are not looked at"


def _stages(observed: Observed, taken: list[tuple[State, Step, str]]) -> Iterator[Stage]:
    version, uploaded = observed.spec.version or "", any(_has(m, observed) for m in observed.state.machines)
    for state, step, name in taken:
        domain = next_domain(state)
        where = f" in failure domain {domain}" if domain else ""
        match step:
            case Init():
                uploaded = True
                yield Stage(f"Machine {name} is made{where}", (f"kubeadm init, {version}",))
            case Join():
                raised = () if uploaded else (f"kubeadm's configuration in the cluster is raised to {version}",)
                uploaded = True
                works = "its etcd member and its static pods have to work before anything else"
                saved = _saved(observed, state, step)
                yield Stage(f"Machine {name} joins{where}", (*saved, *raised, f"kubeadm join, {version}", works))
            case Remove(machine=name):
                saved = _saved(observed, state, step) if not observed.state.policy.surge else ()
                goes = ("its Node is drained", "its etcd member is removed, then its host")
                yield Stage(f"Machine {name} goes", (*saved, *goes))
            case RemoveMember(member=member, machine=name) if not _deleted_before(taken, name):
                title = next(each.title for each in state.members if each.id == member)
                yield Stage(f"{title} is removed")
            case UpgradeInPlace(machine=name) if _expires(state, name):
                what = f"the certificates of Machine {name} are renewed in place"
                yield Stage(what, (_expires(state, name), "kubeadm certs renew all, and its static pods restart"))
            case UpgradeInPlace(machine=name):
                how = (*_saved(observed, state, step), *_upgrade(observed, first=not uploaded))
                yield Stage(f"Machine {name} is updated in place", how)
                uploaded = True


def _saved(observed: Observed, state: State, step: Step) -> tuple[str, ...]:
    """The Machine that goes for one that has joined needs no snapshot of its own."""
    if not saving.is_asked_for(observed) or not saving.is_risky(step, state):
        return ()
    bucket = saving.bucket_of(observed)
    if bucket is not None:
        return (f"etcd is saved in the bucket of Secret {bucket.secret.name}",)
    path = observed.spec.etcd.snapshot.path
    return () if isinstance(step, UpgradeInPlace) else (f"etcd is saved in {path} of a host that works",)


def _expires(state: State, name: str) -> str:
    """Of a Machine of the present template, of which nothing else is to be changed; "" of others."""
    return next((m.expires for m in state.machines if m.name == name and m.up_to_date), "")


def _has(machine: Machine, observed: Observed) -> bool:
    return machine.up_to_date or parse(machine.version) == parse(observed.spec.version or "")


def _deleted_before(taken: list[tuple[State, Step, str]], machine: str) -> bool:
    return any(isinstance(step, Remove) and step.machine == machine for _, step, _ in taken)


def _upgrade(observed: Observed, *, first: bool) -> tuple[str, ...]:
    """kubeadm's order, as the steps of an upgrade have it."""
    snapshot, version = observed.spec.etcd.snapshot, observed.spec.version or ""
    prefer = observed.state.policy.in_place is InPlace.PREFER
    return (
        *((f"etcd is saved in {snapshot.path}",) if snapshot.path else ()),
        f"kubeadm upgrade apply v{version.removeprefix('v')}"
        + (", for the whole cluster's settings too" if first else ""),
        f"its kubelet becomes {version}, and is restarted",
        *(("if its provider can't: another Machine joins, then it goes",) if prefer else ()),
    )


def _workers(observed: Observed, view: View, *, changes: bool) -> Iterator[Stage]:
    version = parse(observed.spec.version or "")
    cluster = f"{key_of(observed.body).namespace}/{observed.spec.cluster_name}"
    if version is None:
        return
    if changes:
        oldest = oldest_of(cluster, view)
        for title, wanted in sorted(newer_workers(cluster, oldest.version if oldest else version, view)):
            if wanted[:2] <= version[:2]:
                yield Stage(f"{title} goes on", (f"it waits for control plane {wanted[0]}.{wanted[1]} until then",))
    for name in followers(observed.spec, cluster, view):
        yield Stage(
            f"MachineDeployment {name} gets {observed.spec.version}", ("the next one follows once it is rolled out",)
        )


# -- a world in which all goes well


def after(state: State, step: Step, name: str = "") -> State:
    """The state once the step has succeeded. ``name``: of a Machine that it makes."""
    machines, members = list(state.machines), list(state.members)
    match step:
        case Init():
            first = name or "cp-0"
            machines.append(Machine(first, phase=Phase.JOINING, whole=False, domain=next_domain(state)))
            return replace(state, machines=tuple(machines), init_machine=first)
        case Join():
            number = 1 + max((machine.created for machine in machines), default=0)
            joins = Machine(name or f"cp-{number}", number, Phase.JOINING, whole=False, domain=next_domain(state))
            machines.append(joins)
        case Remove(machine=gone):
            machines = [replace(m, phase=Phase.DRAINING) if m.name == gone else m for m in machines]
        case RemoveMember(member=member):
            members = [m for m in members if m.id != member]
        case Release(machine=gone):
            machines = [m for m in machines if m.name != gone]
        case UpgradeInPlace(machine=updated):
            machines = [replace(m, phase=Phase.UPDATING) if m.name == updated else m for m in machines]
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
            return replace(machine, phase=Phase.RUNNING, up_to_date=True, whole=True, expires="")
        case Phase.DRAINING:
            return None if machine.dead else replace(machine, phase=Phase.DRAINED)
        case Phase.DRAINED if machine.dead:
            return None
        case Phase.DRAINED:
            return replace(machine, may_join=False)
        case Phase.RUNNING if not machine.whole or not (works or machine.goes):
            return replace(machine, replace=True)
    return machine
