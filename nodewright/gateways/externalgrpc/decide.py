"""What a request to change a group's size comes to: an edit of its replicas and of marks, or a refusal with its text.

Pure. A Machine is marked (``cluster.k8s.io/delete-machine``) before the size is lowered, so that no other one goes, and
its name is written down with the lower size (``nodewright.dev/removed-machines``) in one patch. So whoever asks again,
also after a crash between any two writes, lowers nothing twice, and nothing is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from api import names
from controllers.autoscaler.groups import NodeGroup
from controllers.kernel.actions import Action, Event, Patch
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.plan import Plan, steps
from controllers.kernel.protection import WAY_OUT
from controllers.kernel.refs import Key, annotations_of
from controllers.kernel.victims import removable
from controllers.kernel.wording import counted

MARK = "nodewright-externalgrpc"
"""Value of the annotation ``cluster.k8s.io/delete-machine`` where this gateway sets it."""


class Refused(StrEnum):
    """Names of gRPC status codes."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    NOT_FOUND = "NOT_FOUND"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Asking again will not help as long as nothing else changes."""

    code: Refused
    why: str


@dataclass(frozen=True, slots=True)
class NotNow:
    """The controllers have yet to act on the last size; they take a moment, unless they are down."""

    why: str


@dataclass(frozen=True, slots=True)
class Done:
    """It is so already."""


@dataclass(frozen=True, slots=True)
class Edit:
    """``plan`` carries it out on ``group`` as it was; ``replicas`` and ``removed`` are what it will say afterwards."""

    plan: Plan
    group: NodeGroup
    replicas: int
    removed: str


Decision = Edit | Done | NotNow | Refusal


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """``machines``: all but those that their owner does without. ``removed``: names for which the size was lowered.

    ``applied``: the controllers have acted on the size as it is. ``rolling``: several MachineSets have Machines.
    """

    group: NodeGroup
    machines: tuple[MachineFacts, ...] = ()
    removed: frozenset[str] = frozenset()
    applied: bool = True
    rolling: bool = False

    @property
    def live(self) -> tuple[MachineFacts, ...]:
        return tuple(machine for machine in self.machines if not machine.deleting)

    @property
    def leaving(self) -> tuple[MachineFacts, ...]:
        """The size is lower for them, and they are not seen going yet.

        Where the controllers have acted and there are no more Machines than asked for, somebody scaled up before
        they went: they stay.
        """
        listed = tuple(machine for machine in self.live if machine.key.name in self.removed)
        return () if self.applied and len(self.live) <= self.group.replicas else listed

    @property
    def surplus(self) -> int:
        """Machines more than asked for; below zero: some are yet to be made."""
        return len(self.live) - self.group.replicas


@dataclass(frozen=True, slots=True)
class Asked:
    """One node of a request. ``machine`` None: nobody's. ``group``: id of the group that it belongs to.

    ``unregistered``: the autoscaler speaks of an instance that is no Node to it.
    """

    id: str
    machine: MachineFacts | None
    group: str = ""
    unregistered: bool = False


@dataclass(frozen=True, slots=True)
class Joint:
    """What several requests to delete nodes of one group come to together.

    ``answers``: by position, those that need no write. ``members``: positions of the others; ``decision`` is for all
    of them: an Edit that removes their Machines in one write, NotNow, or a Refusal that has to do with the group. None
    without members.
    """

    answers: Mapping[int, Done | Refusal]
    members: tuple[int, ...] = ()
    decision: Decision | None = None


def increase(facts: GroupFacts, delta: int) -> Decision:
    group = facts.group
    if delta <= 0:
        return _invalid("size increase must be positive")
    size = group.replicas + delta
    if size > group.bounds.max_size:
        return _impossible(f"size increase too large - desired:{size} max:{group.bounds.max_size}")
    if facts.leaving:
        return NotNow(f"{_names(facts.leaving)} of {group.id} are yet to go: a larger size would keep them")
    return _edit(facts, size, (), f"{counted(delta, 'Node')} more asked for over gRPC")


def delete(facts: GroupFacts, asked: Sequence[Asked]) -> Decision:
    group = facts.group
    if wrong := _wrong(group.id, asked):
        return wrong
    gone = {machine.key for machine in facts.leaving}
    wanted = {each.machine.key: each.machine for each in asked if each.machine is not None}
    going = [machine for key, machine in wanted.items() if not machine.deleting and key not in gone]
    if not going:
        return Done()
    size = group.replicas - len(going)
    if size < group.bounds.min_size:
        return _below_minimum(group, len(going), group.replicas)
    return _removal(facts, going, size, "not needed, says a caller over gRPC")


def delete_jointly(facts: GroupFacts, requests: Sequence[Sequence[Asked]]) -> Joint:
    """Each request is carried out whole or not at all. Where the minimum allows only some, earlier ones go first."""
    group, leaving = facts.group, {machine.key for machine in facts.leaving}
    answers: dict[int, Done | Refusal] = {}
    members: list[int] = []
    going: set[Key] = set()
    for position, asked in enumerate(requests):
        named = {each.machine.key for each in asked if each.machine is not None and not each.machine.deleting}
        wanted = named - leaving
        if wrong := _wrong(group.id, asked):
            answers[position] = wrong
        elif not wanted:
            answers[position] = Done()
        elif group.replicas - len(going | wanted) < group.bounds.min_size:
            answers[position] = _below_minimum(group, len(wanted), group.replicas - len(going))
        else:
            members.append(position)
            going |= wanted
    together = [each for position in members for each in requests[position]]
    return Joint(answers, tuple(members), delete(facts, together) if members else None)


def decrease(facts: GroupFacts, delta: int) -> Decision:
    """Give up Nodes that are not there yet; never one that is."""
    group = facts.group
    if delta >= 0:
        return _invalid("size decrease must be negative")
    size = group.replicas + delta
    if size < group.bounds.min_size:
        return _impossible(f"size decrease too large - desired:{size} min:{group.bounds.min_size}")
    staying = [machine for machine in facts.live if machine not in facts.leaving]
    unmade = max(0, group.replicas - len(staying))
    if unmade and not facts.applied:
        return NotNow(f"{group.id} has yet to make {unmade} Machines")
    waiting = sorted((m for m in removable(staying) if not m.node_name), key=_least_promising)
    needed = max(0, -delta - unmade)
    if needed > len(waiting):
        existing = len(staying) - len(waiting)
        text = f"attempt to delete existing nodes targetSize:{group.replicas} delta:{delta} existingNodes: {existing}"
        return _impossible(text)
    return _removal(facts, waiting[:needed], size, "given up over gRPC before it was a Node")


def _wrong(group_id: str, asked: Sequence[Asked]) -> Refusal | None:
    if not asked:
        return _invalid("no nodes are named")
    for each in asked:
        if each.machine is None:
            return Refusal(Refused.NOT_FOUND, f"no Machine of {group_id} has the providerID {each.id!r}")
        if each.group != group_id:
            return _invalid(f"node group {group_id} does not contain {each.id!r}, {each.group or 'none'} does")
        if each.machine.protected and not each.machine.deleting:
            protected = "is protected by its membership status (evictable: false)"
            return _impossible(f"Machine {each.machine.key.name} of {group_id} {protected}; {WAY_OUT}")
        if each.unregistered and each.machine.ready:
            return _impossible(f"{each.id!r} has become the Node {each.machine.node_name}, which is Ready")
    return None


def _removal(facts: GroupFacts, going: Sequence[MachineFacts], size: int, why: str) -> Decision:
    """Down to ``size``, with exactly these Machines gone."""
    group = facts.group
    if facts.rolling and going:
        return _impossible(f"a rollout of {group.id} is under way: which Machines go is its business until then")
    if facts.leaving and going:
        # A mark more, and the controllers might take it in place of one for which the size is lower already.
        return NotNow(f"{_names(facts.leaving)} of {group.id} are yet to go")
    chosen = {machine.key for machine in (*going, *facts.leaving)}
    first = [m for m in facts.live if m.annotated and not is_marked(m) and m.key not in chosen]
    if first:
        return _impossible(f"{_names(first)} of {group.id} are marked to go first, by somebody else")
    if facts.surplus > len(facts.leaving):
        return NotNow(f"{group.id} has yet to let {facts.surplus} Machines go")
    if facts.surplus < len(facts.leaving) and going:
        return NotNow(f"{group.id} has yet to make {len(facts.leaving) - facts.surplus} Machines")
    return _edit(facts, size, going, why)


def _edit(facts: GroupFacts, size: int, going: Sequence[MachineFacts], why: str) -> Edit:
    """Marks first; marks of requests that were never finished are taken back, or they would choose the victim."""
    group = facts.group
    kept = {machine.key for machine in (*going, *facts.leaving)}
    marks: list[Action] = [_mark(machine, MARK, why) for machine in going if not machine.annotated]
    marks += [
        _mark(machine, None, "that removal was not finished")
        for machine in facts.live
        if is_marked(machine) and machine.key not in kept
    ]
    removed = ",".join(sorted(machine.key.name for machine in (*going, *facts.leaving)))
    annotations = {names.REMOVED_MACHINES_ANNOTATION: removed or None} if removed or facts.removed else {}
    patch = {"metadata": {"annotations": annotations}, "spec": {"replicas": size}}
    told: list[Action] = [Event(group.ref, "Normal", "Scaled", f"from {group.replicas} to {size}: {why}")]
    resized: list[Action] = [Patch(group.ref, patch, why, resource_version=group.resource_version)]
    return Edit(Plan(steps(marks, resized, told)), group, size, removed)


def is_marked(machine: MachineFacts) -> bool:
    """By this gateway."""
    return annotations_of(machine.body).get(names.DELETE_MACHINE_ANNOTATION) == MARK


def _mark(machine: MachineFacts, value: str | None, why: str) -> Patch:
    return Patch(machine.ref, {"metadata": {"annotations": {names.DELETE_MACHINE_ANNOTATION: value}}}, why)


def _least_promising(machine: MachineFacts) -> tuple[bool, float, str]:
    """Failed ones first, then the youngest: the one that has waited longest is the nearest to being a Node."""
    return (not machine.failed, -machine.created.timestamp(), machine.key.name)


def _names(machines: Sequence[MachineFacts]) -> str:
    shown = ", ".join(machine.key.name for machine in machines[:3])
    more = len(machines) - 3
    return f"Machines {shown}" + (f" and {more} more" if more > 0 else "")


def _below_minimum(group: NodeGroup, count: int, replicas: int) -> Refusal:
    text = f"unable to delete {count} machines in {group.id}, machine replicas are {replicas}"
    return _impossible(f"{text}, minSize is {group.bounds.min_size}: min size reached, nodes will not be deleted")


def _invalid(why: str) -> Refusal:
    return Refusal(Refused.INVALID_ARGUMENT, why)


def _impossible(why: str) -> Refusal:
    return Refusal(Refused.FAILED_PRECONDITION, why)
