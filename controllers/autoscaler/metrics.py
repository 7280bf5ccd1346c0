"""What a running autoscaler shows beside its status: numbers of a loop, its options, its last decisions.

The numbers of a loop, under the names that the Cluster Autoscaler gives them.

What a running autoscaler tells of itself beside its status: the options it decides by, and its last decisions.

Both are texts of the status ConfigMap, bounded in size, and written when they say something new. Those who ask why
nothing happens (``nodewright autoscaler explain``) read them, so users need not repeat the options.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from controllers.autoscaler.candidates import to_create, to_delete
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.expanders import checked
from controllers.autoscaler.health import count, count_all
from controllers.autoscaler.observe import Observed
from controllers.autoscaler.options import AutoscalerOptions
from controllers.autoscaler.resource_limits import MILLI
from controllers.kernel.conditions import counted, format_time, parse_time
from controllers.kernel.plan import Metric, Sample
from controllers.kernel.refs import Key
from controllers.scaling.node_group import Bounds, Discovery
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


OPTIONS, DECISIONS = "options", "decisions"
"""Keys of the ConfigMap's data."""
LONGEST_OPTIONS = 65_536
"""Characters: some 700 groups of ``--nodes``. A ConfigMap holds 1 MiB, most of which is the status."""
MOST_DECISIONS = 20
LONGEST_DECISION = 300
_READABLE = 4 * LONGEST_OPTIONS
_ELSEWHERE: Final = ("priorities", "prices", "seed")
"""Of ``Choosing``: read from ConfigMaps of their own at every look."""

_adapter: TypeAdapter[AutoscalerOptions] = TypeAdapter(AutoscalerOptions)


@dataclass(frozen=True, slots=True)
class Made:
    """One decision of the past."""

    at: datetime
    text: str


def options_text(options: AutoscalerOptions) -> str:
    """Same options, same text; "" if it would be too long."""
    found = _adapter.dump_python(replace(options, discovery=replace(options.discovery, given={})), mode="json")
    for name in _ELSEWHERE:
        del found["growth"]["choosing"][name]
    found["discovery"]["given"] = [
        {"group": str(key), "min": bounds.min_size, "max": bounds.max_size}
        for key, bounds in sorted(options.discovery.given.items())
    ]
    text = json.dumps(found, sort_keys=True)
    return text if len(text) <= LONGEST_OPTIONS else ""


def read_options(text: str) -> AutoscalerOptions | None:
    """None for what can't be read: another version wrote it, or somebody else. Total over any text."""
    if not text or len(text) > _READABLE:
        return None
    try:
        found = json.loads(text)
        discovery = found["discovery"]
        given = {_key(each["group"]): Bounds(int(each["min"]), int(each["max"])) for each in discovery["given"]}
        options = _adapter.validate_python({**found, "discovery": {**discovery, "given": {}}})
        checked(options.growth.choosing.names)
        if not 0 < options.consolidation.least_gain <= 1:
            raise ValueError("consolidation.least_gain")
    except (ValueError, TypeError, KeyError, RecursionError, ValidationError):
        return None
    return replace(options, discovery=Discovery(given, options.discovery.filters))


def _key(text: str) -> Key:
    namespace, _, name = text.partition("/")
    return Key(namespace, name)


def decisions_text(before: str, decision: Decision, now: datetime) -> str:
    """Those of ``before`` and what is decided now, the latest last; a repeated one keeps its time."""
    made = read_decisions(before)
    latest = made[-1].text if made else ""
    made += [
        Made(now, text)
        for text in (sentences[:LONGEST_DECISION] for sentences in _sentences(decision))
        if text != latest
    ]
    if not made:
        return ""
    return json.dumps([{"at": format_time(each.at), "text": each.text} for each in made[-MOST_DECISIONS:]])


def read_decisions(text: str) -> list[Made]:
    """Oldest first; what can't be read is left out. Total over any text."""
    try:
        found: Any = json.loads(text) if text and len(text) <= _READABLE else []
    except (ValueError, RecursionError):
        return []
    made = []
    for each in found if isinstance(found, list) else ():
        at = parse_time(each.get("at")) if isinstance(each, Mapping) else None
        sentence = each.get("text") if isinstance(each, Mapping) else None
        if at is not None and isinstance(sentence, str):
            made.append(Made(at, sentence[:LONGEST_DECISION]))
    return made[-MOST_DECISIONS:]


def _sentences(decision: Decision) -> Iterator[str]:
    """One sentence for a reconcile: a burst of groups is one decision."""
    parts = [f"{group}: {counted(nodes, 'Node')} more" for group, nodes in decision.scale_up.added.items()]
    if decision.consolidation.begins is not None:
        parts.append(decision.consolidation.why)
    parts += [victim.why for victim in decision.scale_down.victims]
    if decision.frozen:
        parts.append(f"nothing is scaled: {decision.frozen}")
    if parts:
        yield "; ".join(parts)
