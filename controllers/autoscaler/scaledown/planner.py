"""Which Machines go: the ways to save Nodes, one after the other, and since when each Node has been unneeded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from api.durations import format_duration
from controllers.autoscaler.cluster_state import ClusterState
from controllers.autoscaler.gang_rollback import Returned
from controllers.autoscaler.health import abandoned, unprovisionable
from controllers.autoscaler.projected import ProjectedCluster
from controllers.autoscaler.scaledown import budgets
from controllers.autoscaler.scaledown.eligibility import (
    AS_USUAL,
    Consolidating,
    Context,
    Needed,
    Staying,
    context_of,
    eligible,
    first,
    in_whole_groups,
)
from controllers.kernel.conditions import counted
from controllers.kernel.machine_facts import MachineFacts
from controllers.scheduling.drainability import DrainRules
from controllers.scheduling.removal import Candidate, Move, RemovalPlan, RemovalQuestion, Removed, plan_removal


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """A Machine that goes. ``node`` "" if it never became one; ``moves``: where its pods find room."""

    group: str
    machine: MachineFacts
    why: str
    node: str = ""
    moves: tuple[Move, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDown:
    """``unmarked``: Machines whose mark is taken back. ``unneeded``: Node → since when, to be remembered.

    ``staying``: Node → why it does not go. ``cooldown``: why none goes now, whichever it is.
    """

    victims: tuple[Victim, ...] = ()
    unmarked: tuple[MachineFacts, ...] = ()
    unneeded: Mapping[str, datetime] = field(default_factory=dict)
    staying: Mapping[str, Staying] = field(default_factory=dict)
    cooldown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """``grows``: this plan adds Nodes, so none goes; Machines that will never be Nodes are given up all the same."""

    cluster: ClusterState
    projected: ProjectedCluster
    grows: bool
    returned: Sequence[Returned] = ()
    consolidating: Consolidating = AS_USUAL


def plan_scale_down(
    cluster: ClusterState,
    projected: ProjectedCluster,
    *,
    grows: bool,
    returned: Sequence[Returned] = (),
    consolidating: Consolidating = AS_USUAL,
) -> ScaleDown:
    """``returned``: Machines that were made for a gang or a consolidation that comes to nothing."""
    question, found = (
        Question(cluster=cluster, projected=projected, grows=grows, returned=returned, consolidating=consolidating),
        ScaleDown(),
    )
    for method in METHODS:
        found = method(question, found)
    taken = {victim.machine.key for victim in found.victims}
    settled = (state for state in cluster.groups if not state.surplus)
    return replace(found, unmarked=tuple(m for state in settled for m in state.marked if m.key not in taken))


def _given_up(question: Question, found: ScaleDown) -> ScaleDown:
    """Machines that nobody should wait for, as far as the minimum allows; group by group."""
    cluster = question.cluster
    victims = list(found.victims)
    for state in cluster.groups:
        if state.is_whole:
            why = abandoned(state, cluster)
            machines = [(machine, why, machine.node_name) for machine in state.machines] if why else []
        else:
            lost = [] if state.unsettled else unprovisionable(state, cluster)
            machines = [(machine, why, "") for machine, why in lost if not machine.protected][: state.group.spare]
        victims += [Victim(group=state.id, machine=m, why=why, node=node) for m, why, node in machines]
    return replace(found, victims=tuple(victims))


def _returned(question: Question, found: ScaleDown) -> ScaleDown:
    """What was made for a gang that can't get the rest: nothing runs there."""
    taken = {victim.machine.key for victim in found.victims}
    more = (each for each in question.returned if each.machine.key not in taken)
    victims = [
        Victim(group=each.group, machine=each.machine, why=each.why, node=each.machine.node_name) for each in more
    ]
    return replace(found, victims=(*found.victims, *victims))


def _unneeded(question: Question, found: ScaleDown) -> ScaleDown:
    """Nodes that could go together with all others that could, once they have been so for long enough."""
    cluster = question.cluster
    context = context_of(
        cluster,
        question.projected,
        given_up={victim.machine.key: victim.why for victim in found.victims},
        consolidating=question.consolidating,
    )
    names, staying = eligible(context)
    possible = _simulate(context, [_candidate(context, name) for name in names])
    staying |= _kept(possible)
    before, now = cluster.memory.unneeded, cluster.now
    unneeded = {removed.node: before.get(removed.node, now) for removed in possible.removed}
    marked = {m.node_name for state in cluster.groups for m in state.marked if not state.surplus}
    marked |= question.consolidating.going
    cooldown = cooldown_of(cluster, grows=question.grows)
    if cooldown:
        due: Collection[str] = marked & unneeded.keys()
    else:
        due, young = _long_enough(context, unneeded, marked=marked)
        staying |= young
    due, incomplete = in_whole_groups(context, due)
    staying |= incomplete
    victims = found.victims
    if due and not question.grows:
        going, over = _within_budgets(context, due)
        staying |= over
        victims += tuple(going)
    return replace(found, victims=victims, unneeded=unneeded, staying=staying, cooldown=cooldown)


METHODS: tuple[Callable[[Question, ScaleDown], ScaleDown], ...] = (
    # Machines that will never be Nodes, and whole groups that lack one. Nothing runs there, so they go also while Nodes
    # are added and in a cooldown; and before all else, since they use up what the minimum of their group lets go.
    _given_up,
    # Machines of a gang that gets no further, for the same reasons and as far as the minimum still lets them go.
    _returned,
    # Nodes whose pods all fit elsewhere: empty ones first, then by how little of them is asked for. Those that were
    # marked by a reconcile that did not come to its end go on without waiting again, and so do those in whose place a
    # new Node has come.
    _unneeded,
)
"""The ways to save Nodes, in their order. Each sees what those before it have taken."""


def cooldown_of(cluster: ClusterState, *, grows: bool) -> str:
    """Why no Node goes now, whichever it is."""
    memory, options, now = cluster.memory, cluster.options.shrink, cluster.now
    if not options.enabled:
        return "scale-down is off"
    if grows:
        return "Nodes are added"

    for moment, delay, what in (
        (memory.grown_at, options.delay_after_add, "Nodes were added"),
        (memory.shrunk_at, options.delay_after_delete, "a Node was removed"),
        (memory.failed_at, options.delay_after_failure, "a group failed to grow"),
    ):
        if moment is not None and now - moment < delay:
            return f"{what} less than {format_duration(delay)} ago"
    return ""


def _candidate(context: Context, name: str, *, group: str = "") -> Candidate:
    """Nodes in whose place another has come go first, or others would take its room."""
    going = context.consolidating.going
    return Candidate(name, group, first=name in going, atomic_group=context.atomic_group(name))


def _simulate(context: Context, candidates: list[Candidate], *, most: int | None = None) -> RemovalPlan:
    """Which candidates can go together. Room that pending pods will take is taken, and Nodes that start take none."""
    question = question_of(context, candidates, most=most)
    return plan_removal(question, context.projected.snapshot, context.pods_by_node)


def question_of(context: Context, candidates: Sequence[Candidate], *, most: int | None = None) -> RemovalQuestion:
    """Asked of the Nodes that take pods now, by the rules and budgets that hold for the cluster."""
    cluster, options = context.cluster, context.cluster.options.shrink
    return RemovalQuestion(
        nodes=[node for node in cluster.workload.nodes if node.name not in cluster.workload.starting],
        pods=cluster.workload.pods,
        candidates=candidates,
        rules=DrainRules(
            now=cluster.now,
            system_pods_block=options.system_pods_block,
            local_storage_blocks=options.local_storage_blocks,
            custom_controllers_block=options.custom_controllers_block,
        ),
        budgets=cluster.workload.budgets,
        namespaces=cluster.workload.namespaces,
        most=most,
        most_of={name: limit.spare for name, limit in context.limits.items()},
    )


def _kept(found: RemovalPlan) -> dict[str, Staying]:
    return {kept.node: Staying(kept.reason, kept.why) for kept in found.kept}


def _long_enough(
    context: Context, unneeded: Mapping[str, datetime], *, marked: Collection[str]
) -> tuple[set[str], dict[str, Staying]]:
    """Nodes that have been unneeded for their time, or that an earlier reconcile has marked."""
    cluster = context.cluster
    due: set[str] = set()
    staying: dict[str, Staying] = {}
    for name, since in unneeded.items():
        time = first(context.group_of(name).options.unneeded_time, cluster.options.shrink.unneeded_time)
        if name in marked or cluster.now - since >= time:
            due.add(name)
        else:
            so_far = format_duration(timedelta(seconds=int((cluster.now - since).total_seconds())))
            why = f"nobody has needed it for {so_far} of {format_duration(time)}"
            staying[name] = Staying(Needed.NOT_LONG_ENOUGH, why)
    return due, staying


def _within_budgets(context: Context, names: Iterable[str]) -> tuple[list[Victim], dict[str, Staying]]:
    """As many as may go at a time. Asked once more which can go together: with fewer candidates more pods stay put."""
    limits = budgets.budgets_of(context)
    chosen, staying = budgets.at_once(context, names, budgets=limits)
    candidates = [_candidate(context, name, group=context.group_of(name).id) for name in chosen]
    possible = _simulate(context, candidates, most=limits.nodes)
    staying |= _kept(possible)
    units, over = budgets.crop(context, possible.removed, budgets=limits)
    return [_victim(context, removed) for unit in units for removed in unit], {**staying, **over}


def _victim(context: Context, removed: Removed) -> Victim:
    state, machine = context.owners[removed.node]
    why = (
        f"Node {removed.node} is not needed: {counted(len(removed.pods), 'pod')} of it move"
        if removed.pods
        else f"Node {removed.node} is empty"
    )
    return Victim(group=state.id, machine=machine, why=why, node=removed.node, moves=removed.moves)
