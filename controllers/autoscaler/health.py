"""Which Nodes are on their way, which Machines never will be one, which groups rest because of that; counts of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from api.conditions import Reason
from api.durations import format_duration
from controllers.autoscaler.backoff import Backoff, failed
from controllers.autoscaler.cluster_state import ClusterState, GroupState
from controllers.kernel.machine_facts import MachineFacts
from controllers.scheduling.shapes import Keeping, NodeInfo
from providers.base.errors import ErrorClass

OUT_OF_CAPACITY = frozenset({ErrorClass.QUOTA_EXCEEDED.value, ErrorClass.STOCK_OUT.value})
"""Reasons for which another group is asked at once."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Machines with a Node: ``ready``, ``not_started`` (young), ``unready``, ``being_deleted``. Those without one:
    ``unregistered``, ``long_unregistered`` (nobody waits for them any more).
    """

    ready: int = 0
    not_started: int = 0
    unready: int = 0
    being_deleted: int = 0
    unregistered: int = 0
    long_unregistered: int = 0

    @property
    def registered(self) -> int:
        return self.ready + self.not_started + self.unready + self.being_deleted


def unhealthy(cluster: ClusterState) -> str:
    """Why nothing should be scaled; "" if all is well."""
    if cluster.health.unreachable:
        return cluster.health.unreachable
    limits = cluster.options.health
    if cluster.health.unready > max(limits.ok_unready, limits.most_unready * cluster.health.total):
        return f"{cluster.health.unready} of {cluster.health.total} Nodes are not ready"
    return ""


def unprovisionable(state: GroupState, cluster: ClusterState) -> list[tuple[MachineFacts, str]]:
    """Machines of the group that are no Node and that nobody should wait for, with why.

    Not those whose own controller can't see now whether they are: it may reach less than we do.
    """
    found = []
    for machine in state.machines:
        if machine.node_name or state.is_going(machine) or machine.reason == Reason.CONNECTION_DOWN:
            continue
        if machine.failed or machine.reason in OUT_OF_CAPACITY:
            found.append((machine, f"{machine.reason}: {machine.message}" if machine.message else machine.reason))
        elif is_late(machine, state, cluster=cluster):
            found.append((machine, f"no Node after {format_duration(state.patience)}"))
    return found


def abandoned(state: GroupState, cluster: ClusterState) -> str:
    """Why a group that is scaled as a whole goes again: some Machine of it will never be a Node.

    "" where all may yet, where not all of it may go at once, and where somebody may work on the Nodes that came: then
    it is for people to say what goes.
    """
    problems = unprovisionable(state, cluster) if state.is_whole and not state.unsettled else ()
    if not problems or state.group.spare < state.group.replicas or not _may_go_at_once(state, cluster):
        return ""
    machine, why = problems[0]
    return f"{state.id} is scaled as a whole, and its Machine {machine.key.name} is no Node: {why}"


def _may_go_at_once(state: GroupState, cluster: ClusterState) -> bool:
    """All of its Machines are there, none is going, and of those that are Nodes it is seen that nothing works there."""
    if len(state.machines) != state.group.replicas or any(map(state.is_going, state.machines)):
        return False
    if any(machine.protected for machine in state.machines):
        return False
    if any(machine.node_name and machine.node_name not in state.joined for machine in state.machines):
        return False
    return not any(pod.node in state.joined and _is_work(pod.kind.keeping) for pod in cluster.workload.pods)


def upcoming(state: GroupState, cluster: ClusterState) -> int:
    """Nodes that were asked for and will join: all replicas but those that joined, won't, or fell ill.

    It comes from the API alone, so that a restart asks for nothing twice.
    """
    if abandoned(state, cluster):
        return 0
    lost = len(unprovisionable(state, cluster)) + sum(
        1 for machine in state.machines if _is_ill(machine, state, cluster=cluster)
    )
    return max(0, state.group.replicas - len(state.joined) - lost)


def arriving(state: GroupState, cluster: ClusterState) -> list[tuple[NodeInfo, int]]:
    """The ``upcoming`` Nodes of a group with a template: how many are like each, by failure domain if it has turns."""
    number = upcoming(state, cluster)
    if state.template is None or state.zone_order is None:
        return [(state.template, number)] if state.template is not None and number else []
    lost = {machine.key for machine, _ in unprovisionable(state, cluster)}
    domains = [
        machine.failure_domain
        for machine in state.machines
        if machine.node_name not in state.joined
        and not state.is_going(machine)
        and machine.key not in lost
        and not _is_ill(machine, state, cluster=cluster)
    ]
    domains += state.zone_order.after(0, state.unmade)
    return [(state.zone_order.node(state.template, each), count) for each, count in Counter(domains[:number]).items()]


def resting(cluster: ClusterState) -> dict[str, Backoff]:
    """Back-offs as they are now. Groups that are gone and failures long past are forgotten; not those of groups that
    could be made again.
    """
    found: dict[str, Backoff] = {}
    pauses = cluster.options.health.pauses
    for state in cluster.groups:
        before = cluster.memory.backoffs.get(state.id)
        problems = [*(why for _, why in unprovisionable(state, cluster)), *_just_given_up(state, cluster)]
        if problems:
            found[state.id] = failed(before, cluster.now, problems[0], pauses)
        elif before is not None and cluster.now - before.failed_at < pauses.forget_after:
            found[state.id] = before
    for name, rest in cluster.memory.backoffs.items():
        is_own = any(state.id == name for state in cluster.own.candidates)
        if is_own and cluster.now - rest.failed_at < pauses.forget_after:
            found[name] = rest
    return found


def _just_given_up(state: GroupState, cluster: ClusterState) -> list[str]:
    """Nodes that should have started by now, each for as long as the first pause: a Node that stays as it is would
    keep its group from growing for ever.
    """
    first, found = cluster.options.health.pauses.first, []
    for name, node in sorted(state.starting.items()):
        if node.is_late(cluster.now) and cluster.now - node.until < first:
            found.append(f"Node {name} has not started after {format_duration(state.patience)}: {node.why}")
    return found


def is_late(machine: MachineFacts, state: GroupState, *, cluster: ClusterState) -> bool:
    """Whether it should be a Ready Node by now. Where nobody could see that, it has its time from then on."""
    return cluster.now - max(machine.created, cluster.health.followed_since) >= state.patience


def count(state: GroupState, cluster: ClusterState) -> Counts:
    """Each Machine once."""
    lost = {machine.key for machine, _ in unprovisionable(state, cluster)}
    found = dict.fromkeys(Counts.__slots__, 0)
    for machine in state.machines:
        if machine.node_name and state.is_going(machine):
            found["being_deleted"] += 1
        elif machine.node_name in state.joined and machine.node_name:
            found["not_started" if machine.node_name in cluster.workload.starting else "ready"] += 1
        elif machine.node_name:
            found["unready" if is_late(machine, state, cluster=cluster) else "not_started"] += 1
        elif machine.key in lost:
            found["long_unregistered"] += 1
        elif not state.is_going(machine):
            found["unregistered"] += 1
    return Counts(**found)


def count_all(cluster: ClusterState, groups: Iterable[Counts]) -> Counts:
    """All Nodes of the cluster, be they of a group or not."""
    counted, starting = list(groups), len(cluster.workload.starting)
    going = sum(each.being_deleted for each in counted)
    return Counts(
        ready=cluster.health.ready - going - starting,
        not_started=cluster.health.total - cluster.health.ready - cluster.health.unready + starting,
        unready=cluster.health.unready,
        being_deleted=going,
        unregistered=sum(each.unregistered for each in counted),
        long_unregistered=sum(each.long_unregistered for each in counted),
    )


def _is_ill(machine: MachineFacts, state: GroupState, *, cluster: ClusterState) -> bool:
    """It was a Node, and should be a Ready one by now."""
    was_node = bool(machine.node_name) and machine.node_name not in state.joined
    return was_node and not state.is_going(machine) and is_late(machine, state, cluster=cluster)


def _is_work(keeping: Keeping) -> bool:
    """Not what comes with every Node, nor what is done."""
    return not (keeping.mirror or keeping.daemon_set or keeping.finished)
