"""Which Nodes go, because what runs on them fits elsewhere, and which Machines are given up.

A Node is unneeded while it could go together with all others that could; it goes once it has been so for long enough.
It goes by a mark on its Machine and one replica less. If we die between the two, the mark is found by the next
reconcile, which finishes the work or takes the mark back: what is marked is never counted twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from api.durations import format_duration
from controllers.autoscaler.allowance import MILLI
from controllers.autoscaler.health import abandoned, unprovisionable
from controllers.autoscaler.observe import GroupState, Observed
from controllers.autoscaler.projected import ProjectedCluster
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.wording import counted
from controllers.scheduling import removal
from controllers.scheduling.drainability import DrainRules
from controllers.scheduling.pods_by_node import PodsByNode
from controllers.scheduling.removal import (
    Candidate,
    Move,
    RemovalPlan,
    RemovalQuestion,
    Removed,
    plan_removal,
)
from controllers.scheduling.shapes import CPU, MEMORY, NodeShape, gpu_of

T = TypeVar("T")


class Needed(StrEnum):
    """Why a Node stays, beside ``removal.Staying``. Named as in the Cluster Autoscaler."""

    DISABLED = "ScaleDownDisabledAnnotation"
    MIN_SIZE = "NodeGroupMinSizeReached"
    NOT_UNDERUTILIZED = "NotUnderutilized"
    NOT_LONG_ENOUGH = "NotUnneededLongEnough"
    IN_PROGRESS = "CurrentlyBeingDeleted"
    MINIMAL_LIMIT = "MinimalResourceLimitExceeded"
    OTHER = "NotUnneededOtherReason"


@dataclass(frozen=True, slots=True)
class Staying:
    reason: str
    why: str


@dataclass(frozen=True, slots=True)
class Victim:
    """A Machine that goes. ``node`` "" if it never became one; ``moves``: where its pods find room."""

    group: str
    machine: MachineFacts
    why: str
    node: str = ""
    moves: tuple[Move, ...] = ()


@dataclass(frozen=True, slots=True)
class Shrinking:
    """``unmarked``: Machines whose mark is taken back. ``unneeded``: Node → since when, to be remembered."""

    victims: tuple[Victim, ...] = ()
    unmarked: tuple[MachineFacts, ...] = ()
    unneeded: Mapping[str, datetime] = field(default_factory=dict)
    staying: Mapping[str, Staying] = field(default_factory=dict)
    cooldown: str = ""


def plan_shrinking(observed: Observed, projected: ProjectedCluster, grows: bool) -> Shrinking:
    """``grows``: this plan adds Nodes, so none goes; Machines that will never be Nodes are given up all the same."""
    return _Shrinking(observed, projected).decide(grows)


class _Shrinking:
    def __init__(self, observed: Observed, projected: ProjectedCluster) -> None:
        self._observed = observed
        self._options = observed.options.shrink
        self._projected = projected
        self._nodes = {node.name: node for node in observed.nodes}
        self._pods_by_node = PodsByNode(observed.pods)
        self._owner = {
            machine.node_name: (state, machine)
            for state in observed.groups
            for machine in state.machines
            if machine.node_name in self._nodes
        }
        self._staying: dict[str, Staying] = {}
        self._booked = projected.booked()
        self._unsettled = {state.id: state.unsettled for state in observed.groups}
        given_up = [victim for state in observed.groups for victim in _given_up(state, observed)]
        self._given_up = tuple(given_up)
        self._abandoned = {victim.machine.key: victim.why for victim in given_up}
        self._spare = {
            state.id: state.group.spare - sum(1 for victim in given_up if victim.group == state.id)
            for state in observed.groups
        }

    def decide(self, grows: bool) -> Shrinking:
        possible = self._removal([self._candidate(name) for name in self._complete(set(self._candidates()))])
        before, now = self._observed.memory.unneeded, self._observed.now
        unneeded = {removed.node: before.get(removed.node, now) for removed in possible.removed}
        marked = {m.node_name for state in self._observed.groups for m in state.marked if not state.surplus}
        cooldown = self._cooldown(grows)
        eligible = self._complete(self._eligible(unneeded, marked) if not cooldown else marked & unneeded.keys())
        going = self._going(eligible) if eligible and not grows else ()
        victims = (*self._given_up, *going)
        taken = {victim.machine.key for victim in victims}
        unmarked = tuple(
            machine
            for state in self._observed.groups
            if not state.surplus
            for machine in state.marked
            if machine.key not in taken
        )
        return Shrinking(victims, unmarked, unneeded, self._staying, cooldown)

    def _candidates(self) -> Iterable[str]:
        """Nodes that may go as far as they themselves are concerned."""
        for name, (state, machine) in sorted(self._owner.items()):
            stays = self._hindrance(name, state, machine)
            if stays is None:
                yield name
            else:
                self._staying[name] = stays

    def _candidate(self, name: str, group: str = "") -> Candidate:
        return Candidate(name, group, atomic_group=self._atomic_group(name))

    def _atomic_group(self, name: str) -> str:
        """The group, if its Nodes go together."""
        state = self._owner[name][0]
        return state.id if state.is_whole else ""

    def _complete(self, candidates: set[str]) -> list[str]:
        """Without the Nodes of groups that are scaled as a whole and of which some other is no candidate."""
        found = Counter(self._owner[name][0].id for name in candidates)
        kept = []
        for name in sorted(candidates):
            state = self._owner[name][0]
            if state.is_whole and found[state.id] < state.group.replicas:
                why = f"{state.id} is scaled as a whole, and not all of its {state.group.replicas} Machines may go"
                self._staying[name] = Staying(removal.Staying.TOGETHER, why)
            else:
                kept.append(name)
        return kept

    def _hindrance(self, name: str, state: GroupState, machine: MachineFacts) -> Staying | None:
        if state.is_going(machine):
            return Staying(Needed.IN_PROGRESS, f"its Machine {machine.key} is going")
        if machine.key in self._abandoned:
            return Staying(Needed.IN_PROGRESS, self._abandoned[machine.key])
        if self._unsettled[state.id]:
            return Staying(Needed.OTHER, self._unsettled[state.id])
        if machine.protected:
            why = f"the membership status of its Machine {machine.key} protects it (evictable: false)"
            return Staying(Needed.DISABLED, why)
        if name in self._observed.protected:
            return Staying(Needed.DISABLED, self._observed.protected[name])
        if self._spare[state.id] <= 0:
            return Staying(Needed.MIN_SIZE, f"{state.id} has its minimum of {state.group.bounds.min_size} Nodes")
        if name in self._booked:
            return Staying(Needed.OTHER, f"{self._booked[name]} holds room on it")
        if name in self._projected.awaiting:
            return Staying(removal.Staying.RECEIVES_PODS, "pending pods are about to find room on it")
        return self._use(self._nodes[name], state)

    def _use(self, node: NodeShape, state: GroupState) -> Staying | None:
        """Too much of it is asked for; of a Node with GPUs, of those."""
        own, whole = state.options, self._options
        gpu = gpu_of(node)
        if gpu:
            most = _first(own.gpu_utilization_threshold, whole.gpu_utilization_threshold)
            used, what = self._pods_by_node.share(node, (gpu,)), f"its {gpu}"
        else:
            most = _first(own.utilization_threshold, whole.utilization_threshold)
            ignoring = _first(own.ignore_daemon_sets, whole.ignore_daemon_sets)
            used = self._pods_by_node.share(node, (CPU, MEMORY), True) if ignoring else self._pods_by_node.load(node)
            what = "it"
        if used <= most:
            return None
        return Staying(Needed.NOT_UNDERUTILIZED, f"{used:.0%} of {what} is asked for, more than {most:.0%}")

    def _removal(self, candidates: list[Candidate], most: int | None = None) -> RemovalPlan:
        """The second time with groups and a limit; room that pending pods will take is taken."""
        found = plan_removal(
            RemovalQuestion(
                self._observed.nodes,
                self._observed.pods,
                candidates,
                DrainRules(
                    self._observed.now,
                    self._options.system_pods_block,
                    self._options.local_storage_blocks,
                    self._options.custom_controllers_block,
                ),
                self._observed.budgets,
                self._observed.namespaces,
                most,
                self._spare,
            ),
            self._projected.snapshot,
            self._pods_by_node,
        )
        for kept in found.kept:
            self._staying[kept.node] = Staying(kept.reason, kept.why)
        return found

    def _eligible(self, unneeded: Mapping[str, datetime], marked: set[str]) -> set[str]:
        eligible: set[str] = set()
        for name, since in unneeded.items():
            time = _first(self._owner[name][0].options.unneeded_time, self._options.unneeded_time)
            if name in marked or self._observed.now - since >= time:
                eligible.add(name)
            else:
                so_far = timedelta(seconds=int((self._observed.now - since).total_seconds()))
                needed = format_duration(time)
                why = f"nobody has needed it for {format_duration(so_far)} of {needed}"
                self._staying[name] = Staying(Needed.NOT_LONG_ENOUGH, why)
        return eligible

    def _cooldown(self, grows: bool) -> str:
        """Why no Node goes now, whichever it is."""
        memory, options, now = self._observed.memory, self._options, self._observed.now
        if not options.enabled:
            return "scale-down is off"
        if grows:
            return "Nodes are added"

        def since(moment: datetime | None, delay: timedelta, what: str) -> str:
            return (
                f"{what} less than {format_duration(delay)} ago" if moment is not None and now - moment < delay else ""
            )

        return (
            since(memory.grown_at, options.delay_after_add, "Nodes were added")
            or since(memory.shrunk_at, options.delay_after_delete, "a Node was removed")
            or since(memory.failed_at, options.delay_after_failure, "a group failed to grow")
        )

    def _going(self, eligible: Iterable[str]) -> tuple[Victim, ...]:
        """As many as may go at a time, those that are on their way included."""
        leaving = sum(1 for state in self._observed.groups for m in state.machines if m.node_name and state.is_going(m))
        most = max(0, self._options.parallel - leaving)
        candidates = [self._candidate(name, self._owner[name][0].id) for name in eligible]
        sizes = Counter(candidate.atomic_group for candidate in candidates if candidate.atomic_group)
        waits = {name for name, size in sizes.items() if leaving and size > most}
        for candidate in candidates:
            if candidate.atomic_group in waits:
                why = f"{sizes[candidate.atomic_group]} Nodes go at once, when the {leaving} that are going have gone"
                self._staying[candidate.name] = Staying(Needed.OTHER, why)
        found = self._removal(
            [candidate for candidate in candidates if candidate.atomic_group not in waits], most
        ).removed
        drains = self._options.parallel_drains - leaving
        victims: list[Victim] = []
        for unit in self._above_the_least(self._units(found)):
            drained = sum(1 for removed in unit if removed.pods)
            if drained > drains and (len(unit) == 1 or drains < self._options.parallel_drains):
                why = f"{counted(self._options.parallel_drains, 'Node is', 'Nodes are')} drained at a time"
                self._stay(unit, Staying(Needed.OTHER, why))
                continue
            drains -= drained
            victims += map(self._victim, unit)
        return tuple(victims)

    def _units(self, found: Iterable[Removed]) -> list[Sequence[Removed]]:
        """What goes together; in the order in which it goes."""
        units: dict[str, list[Removed]] = {}
        for removed in found:
            units.setdefault(self._atomic_group(removed.node) or f"Node {removed.node}", []).append(removed)
        return list(units.values())

    def _stay(self, unit: Iterable[Removed], staying: Staying) -> None:
        self._staying.update({removed.node: staying for removed in unit})

    def _above_the_least(self, units: Iterable[Sequence[Removed]]) -> Iterable[Sequence[Removed]]:
        """Leave as many cores and as much memory as the cluster must have."""
        limits = self._observed.options.growth
        cores = sum(node.amount(CPU) for node in self._nodes.values()) - limits.cores.least * MILLI
        memory = sum(node.amount(MEMORY) for node in self._nodes.values()) - limits.memory.least
        for unit in units:
            nodes = [self._nodes[removed.node] for removed in unit]
            of_cores, of_memory = (sum(node.amount(what) for node in nodes) for what in (CPU, MEMORY))
            if of_cores > cores or of_memory > memory:
                why = "the cluster would have less cores or memory than it must have"
                self._stay(unit, Staying(Needed.MINIMAL_LIMIT, why))
                continue
            cores -= of_cores
            memory -= of_memory
            yield unit

    def _victim(self, removed: Removed) -> Victim:
        state, machine = self._owner[removed.node]
        pods = counted(len(removed.pods), "pod")
        why = (
            f"Node {removed.node} is not needed: {pods} of it move" if removed.pods else f"Node {removed.node} is empty"
        )
        return Victim(state.id, machine, why, removed.node, removed.moves)


def _first(own: T | None, whole: T) -> T:
    """What the group wants, else what holds for all."""
    return whole if own is None else own


def _given_up(state: GroupState, observed: Observed) -> list[Victim]:
    """Machines that nobody should wait for, as far as the minimum allows."""
    if state.is_whole:
        why = abandoned(state, observed)
        return [Victim(state.id, machine, why, machine.node_name) for machine in state.machines] if why else []
    if state.unsettled:
        return []
    lost = unprovisionable(state, observed)
    found = [Victim(state.id, machine, why) for machine, why in lost if not machine.protected]
    return found[: state.group.spare]
