"""The numbers of a loop, under the names that the Cluster Autoscaler gives them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from controllers.autoscaler.candidates import to_create, to_delete
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.health import count, count_all
from controllers.autoscaler.observe import Observed
from controllers.autoscaler.resource_limits import MILLI
from controllers.kernel.plan import Metric, Sample
from controllers.scheduling.shapes import CPU, MEMORY

_PREFIX, _OWN = "cluster_autoscaler_", "autoprovisioned"
METRICS: list[Metric] = []


def _metric(name: str, meaning: str, *labels: str, total: bool = False) -> Metric:
    found = Metric(f"{_PREFIX}{name}", meaning, labels, total)
    METRICS.append(found)
    return found


_CHUNKS = _metric(
    "capacity_buffer_chunks_count",
    "Chunks of all CapacityBuffers: that fit, for which Nodes are added, or that fit nowhere.",
    "state",
)
_SAFE = _metric("cluster_safe_to_autoscale", "1 while Nodes may be added and removed.")
_NODES = _metric("nodes_count", "Nodes by state.", "state")
_GROUPS = _metric("node_groups_count", "Node groups.", "node_group_type")
_PENDING = _metric("unschedulable_pods_count", "Pods that wait for a Node that is not there or on its way.", "type")
_MAX_NODES = _metric("max_nodes_count", "Nodes that the cluster may have.")
_CORES = _metric("cluster_cpu_current_cores", "Cores that all Nodes offer to pods.")
_CORE_LIMITS = _metric("cpu_limits_cores", "Cores that the cluster must have, and may have.", "direction")
_MEMORY = _metric("cluster_memory_current_bytes", "Memory that all Nodes offer to pods.")
_MEMORY_LIMITS = _metric("memory_limits_bytes", "Memory that the cluster must have, and may have.", "direction")
_ACTIVITY = _metric("last_activity", "When something was last done (Unix time).", "activity")
_UNNEEDED = _metric("unneeded_nodes_count", "Nodes that nobody needs.")
_STAYING = _metric("unremovable_nodes_count", "Nodes that stay, by why.", "reason")
_COOLDOWN = _metric("scale_down_in_cooldown", "1 while no Node may go, whichever it is.")
_LEAST = _metric("node_group_min_count", "Minimum of a group.", "node_group")
_MOST = _metric("node_group_max_count", "Maximum of a group.", "node_group")
_TARGET = _metric("node_group_target_count", "Nodes that a group is to have.", "node_group")
_RESTING = _metric("node_group_backoff_status", "1 while a group rests because it failed to grow.", "node_group")
_ADDED = _metric("scaled_up_nodes_total", "Nodes added.", total=True)
_REMOVED = _metric("scaled_down_nodes_total", "Nodes removed: empty, or underutilized.", "reason", total=True)
_MADE = _metric("created_node_groups_total", "Groups that the autoscaler made.", "group_type", total=True)
_UNMADE = _metric("deleted_node_groups_total", "Groups of its own that it deleted.", "group_type", total=True)
_FAILED = _metric("failed_scale_ups_total", "Times that a group began to rest, by why.", "reason", total=True)


def samples(observed: Observed, decision: Decision) -> tuple[Sample, ...]:
    return (
        *_of_cluster(observed, decision),
        *_of_groups(observed, decision),
        *_of_changes(observed, decision),
        *(_of_buffers(decision) if observed.cluster.options.growth.buffers else ()),
    )


def asleep() -> tuple[Sample, ...]:
    """While nothing is decided at all."""
    return (Sample(_SAFE, 0),)


def _of_cluster(observed: Observed, decision: Decision) -> Iterator[Sample]:
    cluster, memory = observed.cluster, decision.memory
    growth = cluster.options.growth
    counts = count_all(cluster, (count(state, cluster) for state in cluster.groups))
    yield Sample(_SAFE, not decision.frozen)
    yield Sample(_NODES, counts.ready, ("ready",))
    yield Sample(_NODES, counts.unready, ("unready",))
    yield Sample(_NODES, counts.not_started, ("notStarted",))
    yield Sample(_NODES, counts.unregistered, ("unregistered",))
    yield Sample(_NODES, counts.long_unregistered, ("longUnregistered",))
    yield Sample(_PENDING, sum(len(left.pods) for left in decision.scale_up.left), ("unschedulable",))
    yield Sample(_MAX_NODES, growth.max_nodes)
    yield Sample(_CORES, sum(node.amount(CPU) for node in cluster.workload.nodes) / MILLI)
    yield Sample(_MEMORY, sum(node.amount(MEMORY) for node in cluster.workload.nodes))
    for metric, limits in ((_CORE_LIMITS, growth.cores), (_MEMORY_LIMITS, growth.memory)):
        yield Sample(metric, limits.least, ("minimum",))
        yield Sample(metric, limits.most, ("maximum",))
    yield Sample(_UNNEEDED, len(decision.scale_down.unneeded))
    for reason, nodes in Counter(stays.reason for stays in decision.scale_down.staying.values()).items():
        yield Sample(_STAYING, nodes, (str(reason),))
    yield Sample(_COOLDOWN, bool(decision.scale_down.cooldown))
    moments = {"main": cluster.now, "scaleUp": memory.grown_at, "scaleDown": memory.shrunk_at}
    for activity, moment in moments.items():
        if moment is not None:
            yield Sample(_ACTIVITY, moment.timestamp(), (activity,))


def _of_buffers(decision: Decision) -> Iterator[Sample]:
    """Of all buffers together: anybody may make one."""
    fit = sum(each.placed for each in decision.buffers)
    short = sum(each.short for each in decision.buffers)
    yield Sample(_CHUNKS, fit, ("fit",))
    yield Sample(_CHUNKS, short, ("short",))
    asked = sum(each.buffer.count for each in decision.buffers if each.buffer.chunk is not None)
    yield Sample(_CHUNKS, asked - fit - short, ("added",))


def _of_groups(observed: Observed, decision: Decision) -> Iterator[Sample]:
    own = sum(1 for state in observed.cluster.groups if state.making is not None)
    yield Sample(_GROUPS, len(observed.cluster.groups) - own, ("autoscaled",))
    if observed.cluster.options.growth.own_groups:
        yield Sample(_GROUPS, own, (_OWN,))
    for state in observed.cluster.groups:
        rest = decision.memory.backoffs.get(state.id)
        yield Sample(_LEAST, state.group.bounds.min_size, (state.id,))
        yield Sample(_MOST, state.group.bounds.max_size, (state.id,))
        yield Sample(_TARGET, state.group.replicas + decision.changes.get(state.id, 0), (state.id,))
        yield Sample(_RESTING, rest is not None and rest.is_on(observed.cluster.now), (state.id,))


def _of_changes(observed: Observed, decision: Decision) -> Iterator[Sample]:
    """What is added to the totals if all of it succeeds."""
    consolidation = decision.consolidation
    added = sum(decision.scale_up.added.values()) + (consolidation.begins is not None)
    if added:
        yield Sample(_ADDED, added)
    gone = Counter(
        "underutilized" if victim.moves else "empty" for victim in decision.scale_down.victims if victim.node
    )
    for reason, nodes in gone.items():
        yield Sample(_REMOVED, nodes, (reason,))
    if observed.cluster.options.growth.own_groups:
        created = len(to_create(observed.cluster, decision.scale_up.added)) + len(consolidation.created())
        yield Sample(_MADE, created, (_OWN,))
        yield Sample(_UNMADE, len(to_delete(observed.cluster, decision.changes)), (_OWN,))
    before = observed.cluster.memory.backoffs
    for name, rest in decision.memory.backoffs.items():
        if name not in before or before[name].until != rest.until:
            yield Sample(_FAILED, 1, (rest.why.partition(":")[0],))
