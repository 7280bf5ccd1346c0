"""Observed → Plan: missing Nodes first, then superfluous ones; what is remembered, written and reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

from api import names
from controllers.autoscaler import memory
from controllers.autoscaler.ample_growth import AmpleGrowth
from controllers.autoscaler.backoff import Backoff
from controllers.autoscaler.buffer_growth import BufferOutcome, added, booked, grow_for_buffers
from controllers.autoscaler.candidates import to_create, to_delete
from controllers.autoscaler.cluster_state import ClusterState, GroupState
from controllers.autoscaler.consolidation import NONE, proposed, under_way
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.gang_growth import grow_with_gangs
from controllers.autoscaler.gang_rollback import GangOutcome, outcome
from controllers.autoscaler.gathering import seconds_for_nodes, seconds_left
from controllers.autoscaler.health import resting, unhealthy, unprovisionable, upcoming
from controllers.autoscaler.memory import Addition, Memory, PlannedNodes, remembered
from controllers.autoscaler.metrics import asleep, samples
from controllers.autoscaler.observe import Observed
from controllers.autoscaler.projected import ProjectedCluster, project
from controllers.autoscaler.scale_up import MOST_EXPLAINED, Growth, ScaleUp
from controllers.autoscaler.scaledown import actuation
from controllers.autoscaler.scaledown.planner import plan_scale_down
from controllers.autoscaler.status import MOST_EVENTS, configured, ref_of_pod, report
from controllers.kernel.actions import Action, Create, Delete, Event
from controllers.kernel.conditions import counted
from controllers.kernel.plan import Plan, Step, Wait, steps
from controllers.kernel.refs import LEASE, MACHINE_CLASS, Ref
from controllers.scaling.resize import Resize, Scaler, Scaling

GATHERING = "pods still come"
ARRIVING = "Nodes that were just added still come"
_SOON = 1.0
"""Seconds after which to look again for something that is just being found out."""
_SETTLED = timedelta(minutes=1)
"""After this Nodes that were added, and pods that have room, are looked at as seldom as all else."""
_PODS_A_SECOND, _NODES_A_SECOND = 500, 1000
"""Of more pods that wait, or more Nodes, a look takes longer."""


def plan(observed: Observed) -> Plan:
    interval = observed.cluster.options.scan_interval.total_seconds()
    pause = why_not(observed)
    if pause:
        wait = Wait(min(_SOON, interval) if observed.scope.unresolved else interval, pause)
        return Plan(steps=steps(_warned(observed)), outcome=wait, notes=(pause,), samples=asleep())
    left, why = _gathering(observed) if observed.arrivals else (0.0, "")
    if left:
        return Plan(steps=(), outcome=Wait(min(left, interval), why), notes=(why,), samples=None)
    decision = decide(observed.cluster)
    return Plan(
        steps=(*_remembered(observed, decision), *decision.steps, *report(observed, decision)),
        outcome=Wait(min(interval, _seconds_of_rest(observed, decision)), "the next scan"),
        notes=(decision.frozen,) if decision.frozen else (),
        samples=samples(observed, decision),
    )


def _seconds_of_rest(observed: Observed, decision: Decision) -> float:
    """Seconds until the next look. After a growth few: kube-scheduler gives room to other pods than was planned, and
    which ones are left is seen only once it has dealt with all.
    """
    if observed.templates.awaiting:
        return _SOON
    grown, now = decision.memory.grown_at, observed.cluster.now
    if decision.settling and grown is not None and now - grown <= _SETTLED:
        return max(2 * _SOON, _pause(observed.cluster))
    return observed.cluster.options.scan_interval.total_seconds()


def _pause(cluster: ClusterState) -> float:
    """Seconds between two looks while something is about to change: so few that a look is a small part of them.

    10 Nodes, 100 pods without one: 1; 1000 Nodes, 2000 such pods: 4; 5000 Nodes, 100 such pods: 5.
    """
    workload = cluster.workload
    return max(_SOON, len(workload.pending) / _PODS_A_SECOND, len(workload.nodes) / _NODES_A_SECOND)


def _gathering(observed: Observed) -> tuple[float, str]:
    """Seconds for which nothing is decided, and why: pods still come, or the Nodes that were just added for them."""
    cluster = observed.cluster
    grown = cluster.memory.grown_at
    growth = cluster.options.growth
    if left := seconds_left(observed.arrivals, now=cluster.now, grown=grown, growth=growth):
        return left, GATHERING
    left = seconds_for_nodes(observed.arrivals, now=cluster.now, grown=grown, growth=growth)
    if left and not (cluster.workload.gangs or cluster.requests or cluster.capacity.buffers) and _all_come(cluster):
        return min(left, _pause(cluster)), ARRIVING
    return 0.0, ""


def _all_come(cluster: ClusterState) -> bool:
    """Nodes are on their way, and no Machine will never be one: another group would be asked at once."""
    if any(unprovisionable(state, cluster) for state in cluster.groups):
        return False
    return any(upcoming(state, cluster) for state in cluster.groups)


def why_not(observed: Observed) -> str:
    """Why nothing may be decided now; "" if it may."""
    if observed.scope.other_autoscaler:
        holder = observed.scope.other_autoscaler
        return f"the Cluster Autoscaler is at work: {holder} holds the Lease {names.AUTOSCALER_LEASE}"
    return observed.scope.unresolved


def decide(cluster: ClusterState) -> Decision:
    """First the Nodes that are missing; where some are added, none is removed."""
    before = cluster.memory
    if trouble := unhealthy(cluster):
        return Decision(
            memory=replace(before, unneeded={}),
            frozen=trouble,
        )
    backoffs = resting(cluster)
    projected = project(cluster)
    scale_up, buffers = _grown(cluster, projected, backoffs=backoffs)
    if buffers:
        projected = replace(projected, buffered=booked(buffers))
    gangs = outcome(cluster, projected, grown=scale_up.for_gangs) if cluster.workload.gangs else GangOutcome()
    grows = bool(scale_up.added)
    consolidates = cluster.options.consolidation.enabled
    consolidation = under_way(cluster, projected) if consolidates else NONE
    returned = (*gangs.returned, *consolidation.returned)
    scale_down = plan_scale_down(
        cluster, projected, grows=grows, returned=returned, consolidating=consolidation.consolidating
    )
    if consolidates:
        growth = Growth(cluster, projected, backoffs)
        consolidation = proposed(consolidation, cluster, projected=projected, scale_down=scale_down, growth=growth)
    left = any(victim.node for victim in scale_down.victims)
    decision = Decision(
        memory=Memory(
            unneeded=scale_down.unneeded,
            backoffs=backoffs,
            grown=_additions(cluster, sum(scale_up.added.values()) + (consolidation.begins is not None)),
            shrunk_at=cluster.now if left else before.shrunk_at,
            gangs=gangs.records,
            consolidation=consolidation.record,
            consolidation_rest=consolidation.rest,
            planned=remembered(before.planned, projected.upcoming, _planned(scale_up)),
        ),
        scale_up=scale_up,
        scale_down=scale_down,
        buffers=buffers,
        consolidation=consolidation,
        settling=bool(projected.awaiting),
    )
    decision = replace(decision, changes=_changes(cluster, decision))
    return replace(decision, steps=_steps(cluster, decision))


def _grown(
    cluster: ClusterState, projected: ProjectedCluster, *, backoffs: Mapping[str, Backoff]
) -> tuple[ScaleUp, tuple[BufferOutcome, ...]]:
    """Gangs and pods first, CapacityBuffers with what is left."""
    buffers = cluster.capacity.buffers
    if not (projected.gangs or projected.unschedulable or buffers):
        return ScaleUp(), ()
    kind = AmpleGrowth if cluster.options.growth.least_allocated else Growth
    growth = kind(cluster, projected, backoffs)
    if projected.gangs:
        grow_with_gangs(growth, cluster, projected)
    else:
        growth.run(projected.unschedulable)
    outcomes = grow_for_buffers(buffers, projected, growth) if buffers else ()
    return growth.result(MOST_EXPLAINED), outcomes


def _additions(cluster: ClusterState, nodes: int) -> tuple[Addition, ...]:
    """What the rate and the delays still look at."""
    reach = max(cluster.options.growth.window, cluster.options.shrink.delay_after_add)
    kept = tuple(each for each in cluster.memory.grown if cluster.now - each.at <= reach)
    return (*kept, Addition(cluster.now, nodes)) if nodes else kept


def _planned(scale_up: ScaleUp) -> Iterator[PlannedNodes]:
    for each in scale_up.helped:
        yield from each.planned
    yield from scale_up.ample.planned


def _changes(cluster: ClusterState, decision: Decision) -> dict[str, int]:
    """2 Nodes more for pods and 3 Machines given up in one group: -1."""
    fewer, begins = actuation.fewer(decision.scale_down), decision.consolidation.begins
    found = {state.id: decision.scale_up.added.get(state.id, 0) - fewer[state.id] for state in cluster.all_groups}
    return found if begins is None else {**found, begins.id: found.get(begins.id, 0) + 1}


def _steps(cluster: ClusterState, decision: Decision) -> tuple[Step, ...]:
    return Scaling(
        scaler=Scaler.AUTOSCALER,
        going=actuation.marked(decision.scale_down),
        staying=actuation.unmarked(decision.scale_down),
        sizes=_sizes(cluster, decision),
        groups=_own_groups(cluster, decision),
    ).steps([*_scale_up_events(cluster, decision), *actuation.events(decision.scale_down)])


def _own_groups(cluster: ClusterState, decision: Decision) -> list[Create | Delete]:
    """MachineDeployments that are made, and those of its own making that are not needed any more."""
    if not cluster.options.growth.own_groups:
        return []
    created = to_create(cluster, decision.scale_up.added)
    return [*created, *decision.consolidation.created(), *to_delete(cluster, decision.changes)]


def _sizes(cluster: ClusterState, decision: Decision) -> list[Resize]:
    """One for each group that gets another size, or whose part in a consolidation begins or ends. Those that get few
    Nodes come first, or all of the first Nodes would be of one large group: kube-scheduler spreads pods over the zones
    of Nodes that are there, and would put all in its zone.
    """
    fewer, consolidation = actuation.fewer(decision.scale_down), decision.consolidation
    for_buffers = added(decision.buffers) if decision.buffers else {}
    found: list[Resize] = []
    for state in sorted(cluster.groups, key=lambda each: decision.scale_up.added.get(each.id, 0)):
        more, less = decision.scale_up.added.get(state.id, 0), fewer[state.id]
        begins = consolidation.begins is not None and consolidation.begins.id == state.id
        record = consolidation.annotations(state) if begins or consolidation.ended else {}
        if more + begins == less and not record:
            continue
        kept = for_buffers.get(state.id, 0)
        sentences = []
        if more > kept:
            found_no_place = f"{counted(more - kept, 'Node')} more for pods that find no place"
            sentences.append(", ".join(filter(None, [found_no_place, decision.scale_up.ample.why(state.id)])))
        sentences += [f"{counted(kept, 'Node')} more for CapacityBuffers"] if kept else []
        sentences += [consolidation.why] if record else []
        sentences += [f"{counted(less, 'Machine')} not needed or without hope"] if less else []
        size = state.group.replicas + more + begins - less
        found.append(Resize(group=state.group, replicas=size, why="; ".join(sentences), record=record))
    return found


def _scale_up_events(cluster: ClusterState, decision: Decision) -> Iterator[Event]:
    scale_up, begins = decision.scale_up, decision.consolidation.begins
    if begins is not None:
        yield from _consolidation_events(begins, decision.consolidation.why)
    groups = {state.id: state.group for state in cluster.all_groups}
    for state in cluster.own.candidates:
        if state.id in scale_up.added and state.making is not None:
            why = f"MachineDeployment {state.group.ref.key} was made of it for pods that find no place"
            yield Event(Ref(MACHINE_CLASS, state.making.machine_class), "Normal", "CreatedNodeGroup", why)
    for name, nodes in scale_up.added.items():
        before = groups[name].replicas
        size = f"{name} goes from {before} to {before + nodes} (maximum {groups[name].bounds.max_size})"
        why = ", ".join(filter(None, [size, scale_up.ample.why(name)]))
        yield Event(groups[name].ref, "Normal", "ScaledUpGroup", why)
    helped = [(each.group, pod) for each in scale_up.helped for pod in each.pods if pod.uid]
    for name, pod in helped[:MOST_EVENTS]:
        yield Event(ref_of_pod(pod), "Normal", "TriggeredScaleUp", f"new Nodes of {name} will take it")


def _consolidation_events(state: GroupState, why: str) -> Iterator[Event]:
    if state.making is not None and state.is_new:
        made = f"MachineDeployment {state.group.ref.key} was made of it: {why}"
        yield Event(Ref(MACHINE_CLASS, state.making.machine_class), "Normal", "CreatedNodeGroup", made)
        return
    before = state.group.replicas
    text = f"{state.id} goes from {before} to {before + 1} (maximum {state.group.bounds.max_size}): {why}"
    yield Event(state.group.ref, "Normal", "ScaledUpGroup", text)


def _warned(observed: Observed) -> list[Action]:
    """On the Lease: the ConfigMaps are the other's."""
    key = observed.cluster.options.lease_key
    if not observed.scope.other_autoscaler:
        return []
    return [Event(Ref(LEASE, key), "Warning", "AnotherAutoscaler", "Nodewright's autoscaler does nothing meanwhile")]


def _remembered(observed: Observed, decision: Decision) -> tuple[Step, ...]:
    """Before all else, or a rate or a delay would be forgotten by dying."""
    before, text = observed.records.memory, memory.write(decision.memory)
    if text == ((before or {}).get("data") or {}).get("memory"):
        return ()
    return steps([configured(observed.cluster.options.memory_key, before, data={"memory": text})])
