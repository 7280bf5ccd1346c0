"""What was made for a gang goes again when a part of it can't be had, and the gang is tried anew after a pause.

Which groups grew for a gang is remembered before they grow. As long as the gang fits on what is there and on its way,
or grows further, all of that stays. When it does neither, the Machines that were made since and that nobody else needs
are given up, as far as the group's minimum allows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from controllers.autoscaler.backoff import Backoff, failed
from controllers.autoscaler.cluster_state import ClusterState, GroupState
from controllers.autoscaler.gangs import Gang
from controllers.autoscaler.health import unprovisionable
from controllers.autoscaler.memory import GangRecord
from controllers.autoscaler.projected import ProjectedCluster
from controllers.kernel.machine_facts import MachineFacts

_CLOCKS_DIFFER = timedelta(minutes=1)
"""The API server's clock says when a Machine was made, ours when it was asked for."""


@dataclass(frozen=True, slots=True)
class Returned:
    """A Machine that was made for a gang and goes again."""

    group: str
    machine: MachineFacts
    why: str


@dataclass(frozen=True, slots=True)
class GangOutcome:
    """``records``: what is to be remembered, by gang."""

    records: Mapping[str, GangRecord] = field(default_factory=dict)
    returned: tuple[Returned, ...] = ()


def resting(cluster: ClusterState) -> dict[str, Backoff]:
    """Gangs for which no group grows now, by id."""
    found = {}
    for gang in cluster.workload.gangs:
        record = cluster.memory.gangs.get(gang.id)
        rest = record.rest if record is not None and record.uid == gang.uid else None
        if rest is not None and rest.is_on(cluster.now):
            found[gang.id] = rest
    return found


def outcome(
    cluster: ClusterState, projected: ProjectedCluster, *, grown: Mapping[str, Mapping[str, int]]
) -> GangOutcome:
    """``grown``: gang → groups that grow for it in this plan, by how many Nodes."""
    records: dict[str, GangRecord] = {}
    returned: list[Returned] = []
    waiting = {gang.id for gang in projected.gangs}
    taken: set[object] = set()
    for gang in cluster.workload.gangs:
        before = cluster.memory.gangs.get(gang.id)
        record = before if before is not None and before.uid == gang.uid else GangRecord(gang.uid)
        if grown.get(gang.id):
            record = _with(record, grown[gang.id], cluster.now)
        elif gang.id in waiting and record.groups and not gang.missing:
            record, going = _roll_back(gang, record, cluster, projected, taken)
            returned += going
            taken.update(each.machine.key for each in going)
        if record.groups or _matters(record.rest, cluster):
            records[gang.id] = record
    return GangOutcome(records, tuple(returned))


def _matters(rest: Backoff | None, cluster: ClusterState) -> bool:
    return rest is not None and cluster.now - rest.failed_at < cluster.options.health.pauses.forget_after


def _with(record: GangRecord, added: Mapping[str, int], now: datetime) -> GangRecord:
    names = {*record.groups, *added}
    groups = {name: record.groups.get(name, 0) + added.get(name, 0) for name in sorted(names)}
    return replace(record, groups=groups, since=record.since if record.groups and record.since else now)


def _roll_back(
    gang: Gang,
    record: GangRecord,
    cluster: ClusterState,
    projected: ProjectedCluster,
    taken: Collection[object],
) -> tuple[GangRecord, list[Returned]]:
    """Nothing while nobody can say what is on its way; then it is forgotten once none of it is there any more."""
    states = {state.id: state for state in cluster.groups}
    recorded = [states[name] for name in record.groups if name in states]
    if any(state.template is None for state in recorded):
        return record, []
    rest = record.rest
    if rest is None or not rest.is_on(cluster.now):
        rest = failed(rest, cluster.now, f"{gang.id} could not get all of its Nodes", cluster.options.health.pauses)
    going = [each for state in recorded for each in _of_group(gang, record, state, cluster, projected)
             if each.machine.key not in taken]  # fmt: skip
    still = {each.group for each in going} | {state.id for state in recorded if _is_moving(state)}
    groups = {name: count for name, count in record.groups.items() if name in still}
    return replace(record, rest=rest, groups=groups, since=record.since if groups else None), going


def _is_moving(state: GroupState) -> bool:
    """Machines that are asked for and not made yet, or that go already: it is looked at again."""
    return bool(state.unsettled or state.unmade or state.surplus)


def _of_group(
    gang: Gang, record: GangRecord, state: GroupState, cluster: ClusterState, projected: ProjectedCluster
) -> Iterable[Returned]:
    """The youngest first; those that will never be a Node are given up anyhow."""
    if state.unsettled or state.is_whole:
        return []
    lost = {machine.key for machine, _ in unprovisionable(state, cluster)}
    busy = {pod.node for pod in cluster.workload.pods if not (pod.kind.keeping.daemon_set or pod.kind.keeping.mirror)}
    kept = busy | projected.awaiting | cluster.workload.protected.keys()
    since = (record.since or cluster.now) - _CLOCKS_DIFFER
    young = [m for m in state.live if m.created > since and m.key not in lost and not m.protected]
    coming = [m for m in young if not m.node_name]
    idle = [m for m in young if m.node_name and m.node_name not in kept]
    coming.sort(key=lambda machine: (machine.created, machine.key), reverse=True)
    free = coming[: max(0, len(coming) - projected.promised.get(state.id, 0))]
    most = max(0, min(record.groups[state.id], state.group.spare - len(lost)))
    why = f"made for {gang.id}, which can't get all of its Nodes"
    return [Returned(state.id, machine, why) for machine in (*free, *idle)[:most]]
