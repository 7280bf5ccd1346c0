"""Nodes that one cheaper or smaller Node takes the place of: from the first look at it until the old ones are gone.

1. It is *seen*: remembered, and judged anew at each look for as long as a Node has to be unneeded before it goes.
2. It *begins*: the record is kept, then the group gets one Node more and an annotation with the record's id, in one
   write. So after a death it is known whether the group has that Node already.
3. Once the new Node is Ready, the old ones are handed to the scale-down, which drains them within its budgets.
4. It *ends* when they are gone, or when it took too long; then the annotation goes. Nothing having gone by then, the
   new Machine goes again, in the write that takes the annotation away.

What is written on a group proves nothing: which Machines go stands in the autoscaler's own ConfigMap, and each is
judged anew before it goes. Switched off, one that is under way is forgotten, and its new Node is one like any other;
nothing is written on groups then, since the right to do so may be gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from api import names
from api.durations import format_duration
from api.schedules import ScheduleError, last_stretch
from controllers.autoscaler import replacements
from controllers.autoscaler.backoff import Backoff, failed
from controllers.autoscaler.cluster_state import ClusterState, GroupState
from controllers.autoscaler.gang_rollback import Returned
from controllers.autoscaler.memory import ConsolidationRecord
from controllers.autoscaler.options import Window
from controllers.autoscaler.projected import ProjectedCluster
from controllers.autoscaler.replacements import Replacement
from controllers.autoscaler.scale_up import Growth
from controllers.autoscaler.scaledown.eligibility import AS_USUAL, Consolidating, Context, Owner, context_of, first
from controllers.autoscaler.scaledown.planner import ScaleDown
from controllers.kernel.actions import Create
from controllers.kernel.conditions import counted, format_time
from controllers.kernel.machine_facts import MachineFacts
from controllers.scaling.creation import make

_SEEN_BY_THEN = timedelta(minutes=1)
"""The cache shows a write of ours by then, if it succeeded; and clocks differ by less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidation:
    """``record``: to be remembered, with ``rest``. ``begins``: the group that gets a Node more now. ``ended``: groups
    whose annotation goes. ``returned``: the new Machine, if it goes again. ``why``: how it stands, for people.
    """

    record: ConsolidationRecord | None = None
    rest: Backoff | None = None
    consolidating: Consolidating = AS_USUAL
    begins: GroupState | None = None
    ended: frozenset[str] = frozenset()
    returned: tuple[Returned, ...] = ()
    why: str = ""

    def annotations(self, state: GroupState) -> Mapping[str, str | None]:
        """What is written on the group with its size."""
        if self.begins is not None and self.begins.id == state.id and self.record is not None:
            return {names.CONSOLIDATION_ANNOTATION: self.record.id}
        return {names.CONSOLIDATION_ANNOTATION: None} if state.id in self.ended else {}

    def created(self) -> list[Create]:
        """The MachineDeployment that is made for it, with its Node and the annotation."""
        state = self.begins
        if state is None or state.making is None or state.making.body is None:
            return []
        body = state.making.body
        meta = {**body["metadata"]}
        meta["annotations"] = {**meta["annotations"], **self.annotations(state)}
        return [make(state.group, {**body, "metadata": meta}, 1, why=self.why)]


NONE = Consolidation()


def why_closed(cluster: ClusterState) -> str:
    """Why no Node may go for a consolidation now; "" if some may."""
    options = cluster.options
    if not options.shrink.enabled:
        return "scale-down is off"
    windows = options.consolidation.windows
    if windows and not any(_is_open(window, cluster) for window in windows):
        return "no window for consolidation is open"
    return ""


def _is_open(window: Window, cluster: ClusterState) -> bool:
    """One that can't be read is never open."""
    try:
        last = last_stretch(window.schedule, window.duration, cluster.now)
    except ScheduleError:
        return False
    return last is not None and last.holds(cluster.now)


# -- one that is under way -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Course:
    """``old``: Machines that have yet to go, those that are going included. ``new``: of the group, made since."""

    record: ConsolidationRecord
    state: GroupState
    old: tuple[Owner, ...] = ()
    new: tuple[MachineFacts, ...] = field(default=())

    @property
    def going(self) -> bool:
        return any(state.is_going(machine) for state, machine in self.old)

    @property
    def untouched(self) -> bool:
        """No old Node has gone, nor is going."""
        return len(self.old) == len(self.record.machines) and not self.going


def under_way(cluster: ClusterState, projected: ProjectedCluster) -> Consolidation:
    """How the one that began stands, before it is decided which Nodes go."""
    record, closed = cluster.memory.consolidation, why_closed(cluster)
    rest = _still(cluster.memory.consolidation_rest, cluster)
    base = Consolidation(record=record, rest=rest, consolidating=Consolidating(any_use=not closed), why=closed)
    unmatched = frozenset(
        state.id
        for state in cluster.groups
        if state.group.consolidation and (record is None or not _is_for(record, state))
    )
    base = replace(base, ended=unmatched)
    if record is None or record.begun is None:
        return base
    state = next((each for each in cluster.groups if _is_for(record, each)), None)
    if state is None:
        is_fresh = cluster.now - record.begun < _SEEN_BY_THEN
        return replace(base, record=record if is_fresh else None, why=f"{record.group} is about to grow for it")
    course = _course(record, state, cluster=cluster)
    over = _over(course, cluster, closed=closed)
    if over:
        return _ended(base, course, cluster=cluster, projected=projected, why=over)
    return _goes_on(base, course, cluster=cluster, projected=projected)


def _is_for(record: ConsolidationRecord, state: GroupState) -> bool:
    return record.begun is not None and state.id == record.group and state.group.consolidation == record.id


def _course(record: ConsolidationRecord, state: GroupState, *, cluster: ClusterState) -> _Course:
    assert record.begun is not None
    since = record.begun - _SEEN_BY_THEN
    old = (Owner(each, m) for each in cluster.groups for m in each.machines if m.uid in record.machines)
    new = tuple(m for m in state.live if m.created > since and m.uid not in record.machines)
    return _Course(record=record, state=state, old=tuple(old), new=new)


def _over(course: _Course, cluster: ClusterState, *, closed: str) -> str:
    """Why it ends; "" while it goes on. A Node that is being drained is waited for."""
    if not course.old:
        return "all of the old Nodes are gone"
    if course.going:
        return ""
    if closed:
        return closed
    assert course.record.begun is not None
    most = 2 * course.state.patience
    if cluster.now - course.record.begun >= most:
        return f"the old Nodes have not gone after {format_duration(most)}"
    if not course.new and not course.state.unmade:
        return "the new Machine is gone"
    return ""


def _ended(
    base: Consolidation, course: _Course, *, cluster: ClusterState, projected: ProjectedCluster, why: str
) -> Consolidation:
    """The record stays until the annotation is seen to be gone."""
    returned: tuple[Returned, ...] = ()
    rest = base.rest
    if course.old and course.untouched:
        returned = _given_back(course, cluster, projected=projected, why=why)
        rest = failed(base.rest, cluster.now, why, cluster.options.health.pauses)
    ended = base.ended | {course.state.id}
    return replace(base, ended=ended, returned=returned, rest=rest, why=f"it ends: {why}")


def _given_back(
    course: _Course, cluster: ClusterState, *, projected: ProjectedCluster, why: str
) -> tuple[Returned, ...]:
    """One of the new Machines on which nothing runs, nor is about to; if they are several, the youngest."""
    state = course.state
    if state.unsettled or not state.group.spare:
        return ()
    busy = {pod.node for pod in cluster.workload.pods if not (pod.kind.keeping.daemon_set or pod.kind.keeping.mirror)}
    kept = busy | projected.awaiting | cluster.workload.protected.keys() | projected.booked().keys()
    free = [m for m in course.new if not m.protected and m.node_name not in kept]
    free.sort(key=lambda machine: (not machine.node_name, machine.created, machine.key), reverse=True)
    text = f"it was to take the place of others: {why}"
    return tuple(Returned(state.id, machine, text) for machine in free[:1])


def _goes_on(
    base: Consolidation, course: _Course, *, cluster: ClusterState, projected: ProjectedCluster
) -> Consolidation:
    joined = [m.node_name for m in course.new if m.node_name in course.state.joined]
    ready = [name for name in joined if name not in cluster.workload.starting]
    consolidating = replace(base.consolidating, new=frozenset(joined))
    base = replace(base, consolidating=consolidating)
    if not ready:
        return replace(base, why="the new Node is not Ready yet")
    there = {owner.name for owner in course.old if owner.name and not owner.state.is_going(owner.machine)}
    left = sorted(there & {node.name for node in cluster.workload.nodes})
    context = context_of(cluster, projected, given_up={}, consolidating=consolidating)
    why = replacements.why_not_now(context, course.state, names=left) if left and course.untouched else ""
    if why:
        return replace(base, why=f"the new Node is Ready, and {why}")
    text = f"the new Node is Ready, and {counted(len(course.old), 'Node')} have yet to go"
    return replace(base, consolidating=replace(consolidating, going=frozenset(left)), why=text)


# -- one that may begin --------------------------------------------------------------------------------------------


def proposed(
    base: Consolidation,
    cluster: ClusterState,
    *,
    projected: ProjectedCluster,
    scale_down: ScaleDown,
    growth: Growth,
) -> Consolidation:
    """After it was decided which Nodes go: what could be consolidated next. One at a time."""
    if base.record is not None and base.record.begun is not None:
        return base
    why = base.why or _why_busy(base, cluster, projected=projected, scale_down=scale_down)
    if why:
        return replace(base, record=None, why=why)
    context = context_of(cluster, projected, given_up={}, consolidating=base.consolidating)
    found = _known(base.record, context, growth) if base.record is not None else None
    since = base.record.since if base.record is not None and found is not None else cluster.now
    if found is None:
        best = replacements.best(context, growth)
        if isinstance(best, str):
            return replace(base, record=None, why=best)
        found = best
    record = ConsolidationRecord(found.state.id, _machines(context, found), since)
    wait = max(
        first(context.group_of(name).options.unneeded_time, cluster.options.shrink.unneeded_time)
        for name in found.nodes
    )
    if cluster.now - since < wait:
        so_far = format_duration(timedelta(seconds=int((cluster.now - since).total_seconds())))
        return replace(base, record=record, why=f"{sentence(found)}; so for {so_far} of {format_duration(wait)}")
    return replace(base, record=replace(record, begun=cluster.now), begins=found.state, why=sentence(found))


def _why_busy(base: Consolidation, cluster: ClusterState, *, projected: ProjectedCluster, scale_down: ScaleDown) -> str:
    if base.rest is not None and base.rest.is_on(cluster.now):
        return f"it rests until {format_time(base.rest.until)}: {base.rest.why}"
    if scale_down.cooldown:
        return scale_down.cooldown
    if scale_down.victims or scale_down.unmarked or any(state.surplus for state in cluster.groups):
        return "Nodes are going"
    if scale_down.unneeded:
        return f"{counted(len(scale_down.unneeded), 'Node')} that nobody needs go first"
    return "Nodes are on their way" if projected.upcoming or cluster.workload.starting else ""


def _known(record: ConsolidationRecord, context: Context, growth: Growth) -> Replacement | None:
    """The one that is remembered, if it is as good as it was."""
    groups = (*context.cluster.groups, *context.cluster.own.in_place)
    state = next((each for each in groups if each.id == record.group), None)
    found = {owner.machine.uid: name for name, owner in context.owners.items()}
    nodes = [found[uid] for uid in record.machines if uid in found]
    if state is None or len(nodes) < len(record.machines):
        return None
    judged = replacements.judged(context, growth, state=state, names=nodes)
    return judged if isinstance(judged, Replacement) else None


def _machines(context: Context, found: Replacement) -> dict[str, str]:
    machines = (context.owners[name].machine for name in found.nodes)
    return {machine.uid: str(machine.key) for machine in machines}


def sentence(found: Replacement) -> str:
    """``1 Node of MachineDeployment/ns/small in place of Nodes a and b: 40% cheaper``."""
    last = found.nodes[-1]
    several = f"Nodes {', '.join(found.nodes[:-1])} and {last}" if len(found.nodes) > 1 else f"Node {last}"
    return f"1 Node of {found.state.id} in place of {several}: {found.gain}"


def _still(rest: Backoff | None, cluster: ClusterState) -> Backoff | None:
    forget = cluster.options.health.pauses.forget_after
    return rest if rest is not None and cluster.now - rest.failed_at < forget else None


def names_of(consolidation: Consolidation, cluster: ClusterState) -> Iterator[str]:
    """Old Nodes of the one that is seen or under way."""
    machines = consolidation.record.machines if consolidation.record is not None else {}
    return (m.node_name for state in cluster.groups for m in state.machines if m.uid in machines and m.node_name)
