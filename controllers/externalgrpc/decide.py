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
from controllers.kernel.actions import Event
from controllers.kernel.conditions import counted, some_of
from controllers.kernel.deletions import removable
from controllers.kernel.machine_facts import WAY_OUT, MachineFacts
from controllers.kernel.plan import Plan
from controllers.kernel.refs import Key, Obj, annotations_of, generation_of, resource_version_of, spec_of
from controllers.scaling.node_group import NodeGroup, Obstacle, ScaledGroup, is_rolling
from controllers.scaling.resize import ByName, Resize, Scaler, Scaling

MARK = Scaler.EXTERNAL_GRPC


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
class GroupFacts(ScaledGroup):
    """``machines``: all but those that their owner does without. ``removed``: names for which the size was lowered.

    ``applied``: the controllers have acted on the size as it is.
    """

    removed: frozenset[str] = frozenset()
    applied: bool = True

    @property
    def leaving(self) -> tuple[MachineFacts, ...]:
        """The size is lower for them, and they are not seen going yet.

        Where the controllers have acted and there are no more Machines than asked for, somebody scaled up before
        they went: they stay.
        """
        listed = tuple(machine for machine in self.live if machine.key.name in self.removed)
        return () if self.applied and len(self.live) <= self.group.replicas else listed


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


def facts_of(
    group: NodeGroup, machines: tuple[MachineFacts, ...], *, body: Obj, machine_sets: Sequence[Obj]
) -> GroupFacts:
    """``body``: the group's object. ``machine_sets``: those that make its Machines; itself if it is one."""
    listed = annotations_of(body).get(names.REMOVED_MACHINES_ANNOTATION, "")
    sizes = sum(_replicas(found) for found in machine_sets)
    return GroupFacts(
        group,
        machines,
        is_rolling(machine_sets),
        frozenset(name for name in listed.split(",") if name),
        applied=all(map(_is_observed, (body, *machine_sets))) and sizes == group.replicas,
    )


def _replicas(machine_set: Obj) -> int:
    count = spec_of(machine_set).get("replicas")
    return count if isinstance(count, int) else 0


def _is_observed(body: Obj) -> bool:
    seen = (body.get("status") or {}).get("observedGeneration")
    return isinstance(seen, int) and seen >= generation_of(body)


def increase(facts: GroupFacts, delta: int) -> Decision:
    group = facts.group
    if delta <= 0:
        return _invalid("size increase must be positive")
    size = group.replicas + delta
    if size > group.bounds.max_size:
        return _impossible(f"size increase too large - desired:{size} max:{group.bounds.max_size}")
    if facts.leaving:
        return NotNow(f"{_names(facts.leaving)} of {group.id} are yet to go: a larger size would keep them")
    return _edit(facts, size, going=(), why=f"{counted(delta, 'Node')} more asked for over gRPC")


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
        return _below_minimum(group, len(going), replicas=group.replicas)
    return _removal(facts, going, size=size, why="not needed, says a caller over gRPC")


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
            answers[position] = _below_minimum(group, len(wanted), replicas=group.replicas - len(going))
        else:
            members.append(position)
            going |= wanted
    together = [each for position in members for each in requests[position]]
    return Joint(answers=answers, members=tuple(members), decision=delete(facts, together) if members else None)


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
    return _removal(facts, waiting[:needed], size=size, why="given up over gRPC before it was a Node")


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


def _removal(facts: GroupFacts, going: Sequence[MachineFacts], *, size: int, why: str) -> Decision:
    """Down to ``size``, with exactly these Machines gone."""
    group = facts.group
    chosen = {machine.key for machine in (*going, *facts.leaving)}
    obstacles = facts.obstacles(MARK, besides=chosen)
    if going and Obstacle.ROLLOUT in obstacles:
        return _impossible(f"{obstacles[Obstacle.ROLLOUT]}: which Machines go is its business until then")
    if facts.leaving and going:
        # A mark more, and the controllers might take it in place of one for which the size is lower already.
        return NotNow(f"{_names(facts.leaving)} of {group.id} are yet to go")
    if Obstacle.MARKED_BY_ANOTHER in obstacles:
        first = facts.marked_by_another(MARK, besides=chosen)
        return _impossible(f"{_names(first)} of {group.id} are marked to go first, by somebody else")
    if facts.balance > len(facts.leaving):
        return NotNow(f"{group.id} has yet to let {facts.balance} Machines go")
    if facts.balance < len(facts.leaving) and going:
        return NotNow(f"{group.id} has yet to make {len(facts.leaving) - facts.balance} Machines")
    return _edit(facts, size, going=going, why=why)


def _edit(facts: GroupFacts, size: int, *, going: Sequence[MachineFacts], why: str) -> Edit:
    """Marks first; marks of requests that were never finished are taken back, or they would choose the victim."""
    group = facts.group
    removed = ",".join(sorted(machine.key.name for machine in (*going, *facts.leaving)))
    record = {names.REMOVED_MACHINES_ANNOTATION: removed or None}
    scaling = Scaling(
        scaler=MARK,
        going=[ByName(machine, why) for machine in going],
        staying=_unfinished(facts, going),
        sizes=[Resize(group=group, replicas=size, why=why, record=record)],
    )
    event = Event(group.ref, "Normal", "Scaled", f"from {group.replicas} to {size}: {why}")
    return Edit(plan=Plan(scaling.steps([event])), group=group, replicas=size, removed=removed)


def given_up(facts: GroupFacts) -> Plan:
    """After a request that was refused once some of its Machines were marked: none of them is to go first."""
    return Plan(Scaling(scaler=MARK, staying=_unfinished(facts, ())).steps())


def _unfinished(facts: GroupFacts, going: Sequence[MachineFacts]) -> list[ByName]:
    """Machines with a mark of this gateway for which no size was lowered."""
    kept = {machine.key for machine in (*going, *facts.leaving)}
    unwanted = (machine for machine in facts.marked_by(MARK) if machine.key not in kept)
    return [ByName(machine, "that removal was not finished") for machine in unwanted]


def was_done(body: Obj, edit: Edit) -> bool | None:
    """Whether a write whose answer was lost has happened; None: nobody can say. ``body``: the group as it is now."""
    size = spec_of(body).get("replicas")
    if (size, annotations_of(body).get(names.REMOVED_MACHINES_ANNOTATION, "")) == (edit.replicas, edit.removed):
        return True
    if resource_version_of(body) == edit.group.resource_version or size == edit.group.replicas:
        return False
    return None


def _least_promising(machine: MachineFacts) -> tuple[bool, float, str]:
    """Failed ones first, then the youngest: the one that has waited longest is the nearest to being a Node."""
    return (not machine.failed, -machine.created.timestamp(), machine.key.name)


def _names(machines: Sequence[MachineFacts]) -> str:
    return f"Machines {some_of([machine.key.name for machine in machines], 3)}"


def _below_minimum(group: NodeGroup, count: int, *, replicas: int) -> Refusal:
    text = f"unable to delete {count} machines in {group.id}, machine replicas are {replicas}"
    return _impossible(f"{text}, minSize is {group.bounds.min_size}: min size reached, nodes will not be deleted")


def _invalid(why: str) -> Refusal:
    return Refusal(Refused.INVALID_ARGUMENT, why)


def _impossible(why: str) -> Refusal:
    return Refusal(Refused.FAILED_PRECONDITION, why)
