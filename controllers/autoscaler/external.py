"""Groups of a provider outside: what it tells → ClusterState, and a Decision → what it is asked.

The second kind of node group beside MachineDeployments and MachineSets. Each instance is shown as a Machine of a
MachineSet, so that all else decides about them alike; none of these objects is ever written anywhere.

Rules of the protocol: kubernetes/autoscaler, cluster-autoscaler/cloudprovider/cloud_provider.go (NodeGroup).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from api import names
from controllers.autoscaler.cluster_state import (
    ClusterState,
    GroupObjects,
    NodeHealth,
    Objects,
    WorkloadObjects,
    read_cluster,
)
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.options import AutoscalerOptions, ConsolidationOptions
from controllers.kernel.conditions import format_time
from controllers.kernel.node_policy import owner_uid
from controllers.kernel.refs import MACHINE_SET, Obj, annotations_of, spec_of
from controllers.scaling.node_group import Discovery
from providers.base.contract import Shape
from providers.base.errors import ErrorClass

_MIRROR = "kubernetes.io/config.mirror"
_FINISHED = ("Succeeded", "Failed")


class InstanceState(StrEnum):
    UNKNOWN = "Unknown"
    RUNNING = "Running"
    CREATING = "Creating"
    DELETING = "Deleting"


@dataclass(frozen=True, slots=True)
class Instance:
    """``id`` is its Node's ``spec.providerID``, byte for byte. ``error``: why it will never be a Node; "" if it may.

    ``out_of_resources``: the provider has no room for it now.
    """

    id: str
    state: InstanceState = InstanceState.UNKNOWN
    error: str = ""
    out_of_resources: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalGroup:
    """``template`` None: ``problem`` says why. ``options``: key of an ``autoscaling-options-…`` annotation → text."""

    id: str
    min_size: int
    max_size: int
    target: int
    instances: tuple[Instance, ...] = ()
    template: Shape | None = None
    problem: str = "its provider does not tell what its Nodes would be like"
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """All that one look depends on. ``seen``: instance → since when it is known.

    ``short_since``: group → since when its provider tells of fewer instances than its size.
    """

    now: datetime
    groups: Sequence[ExternalGroup]
    workload: WorkloadObjects
    options: AutoscalerOptions = field(default_factory=AutoscalerOptions)
    memory: Memory = field(default_factory=Memory)
    health: NodeHealth = field(default_factory=NodeHealth)
    seen: Mapping[str, datetime] = field(default_factory=dict)
    short_since: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """``increase`` and ``decrease``: group → by how many, never 0. ``delete``: group → instances, with the name of the
    Node or "". ``drain``: names of Nodes that are to be emptied first, with why. ``broken``: instances that can
    not be made.
    """

    increase: Mapping[str, int] = field(default_factory=dict)
    decrease: Mapping[str, int] = field(default_factory=dict)
    delete: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    drain: Mapping[str, str] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()


def is_leaving(node: Obj) -> bool:
    """It has the taint of a Node that is drained and then given back."""
    return any(each.get("key") == names.TO_BE_DELETED_TAINT for each in spec_of(node).get("taints") or ())


def cluster_of(looked: Looked) -> ClusterState:
    """A group's size counts without the Nodes that are being drained: their replacement may be asked for already.

    With a size and a maximum of 5, and one Node that is drained: size 4, maximum 4.
    """
    by_id = {str(spec_of(node).get("providerID") or ""): node for node in looked.workload.nodes}
    sets, machines, shapes, known = [], [], {}, {}
    for group in looked.groups:
        bodies = [_machine(group, instance, by_id.get(instance.id), looked) for instance in group.instances]
        draining = sum(
            1 for each in group.instances if each.state is not InstanceState.DELETING and _leaves(by_id.get(each.id))
        )
        body = _set(group, draining)
        sets.append(body)
        machines += bodies
        name = f"{MACHINE_SET.name}/{group.id}"
        known[name] = group
        if group.template is not None:
            shapes[name] = group.template
    decided_by = replace(looked.options, consolidation=ConsolidationOptions())
    options = replace(decided_by, discovery=Discovery())
    cluster = read_cluster(
        Objects(groups=GroupObjects(machine_sets=sets, machines=machines, shapes=shapes), workload=looked.workload),
        now=looked.now,
        options=options,
        memory=looked.memory,
        health=looked.health,
    )
    states = []
    for state in cluster.groups:
        group = known[state.id]
        problem = group.problem if state.template is None and group.template is None else state.problem
        states.append(replace(state, group=replace(state.group, name=group.id), problem=problem))
    return replace(cluster, options=decided_by, groups=tuple(states))


def calls_of(looked: Looked, decision: Decision) -> Calls:
    """What the provider is asked, and what has to happen to Nodes before."""
    by_id = {str(spec_of(node).get("providerID") or ""): node for node in looked.workload.nodes}
    delete: dict[str, list[tuple[str, str]]] = {}
    drain: dict[str, str] = {}
    for victim in decision.scale_down.victims:
        if victim.node:
            drain[victim.node] = victim.why
        else:
            delete.setdefault(victim.group, []).append((victim.machine.key.name, ""))
    busy = Counter(str(spec_of(pod).get("nodeName") or "") for pod in looked.workload.pods if holds_up(pod))
    for group in looked.groups:
        for instance in group.instances:
            node = by_id.get(instance.id)
            if node is None or instance.state is InstanceState.DELETING or not _leaves(node):
                continue
            name = node["metadata"]["name"]
            if not busy[name]:
                delete.setdefault(group.id, []).append((instance.id, name))
    return Calls(
        increase={name: count for name, count in decision.scale_up.added.items() if count > 0},
        decrease=_never_made(looked, decision),
        delete={name: tuple(found) for name, found in delete.items()},
        drain=drain,
        broken=frozenset(each.id for group in looked.groups for each in group.instances if each.error),
    )


def holds_up(pod: Obj) -> bool:
    """Whether its Node is not empty because of it: no pod of a DaemonSet, no static one, and none that has ended."""
    if _MIRROR in annotations_of(pod) or (pod.get("status") or {}).get("phase") in _FINISHED:
        return False
    owners = pod["metadata"].get("ownerReferences") or ()
    return not any(owner.get("controller") and owner.get("kind") == "DaemonSet" for owner in owners)


def _leaves(node: Obj | None) -> bool:
    return node is not None and is_leaving(node)


def _never_made(looked: Looked, decision: Decision) -> dict[str, int]:
    """Groups whose provider has not begun to make all of their instances in the time for which one is waited."""
    found = {}
    for group in looked.groups:
        short = group.target - sum(1 for each in group.instances if each.state is not InstanceState.DELETING)
        since = looked.short_since.get(group.id)
        if short <= 0 or since is None or looked.now - since < looked.options.growth.provision_time:
            continue
        if group.id not in decision.scale_up.added:
            fewer = min(short, group.target - group.min_size)
            if fewer > 0:
                found[group.id] = fewer
    return found


def _set(group: ExternalGroup, draining: int) -> Obj:
    options = {f"{names.AUTOSCALING_OPTIONS_PREFIX}{key}": text for key, text in group.options.items()}
    most = max(0, group.max_size - draining)
    return {
        "metadata": {
            "name": group.id,
            "uid": f"group:{group.id}",
            "annotations": {
                names.AUTOSCALER_MIN_ANNOTATION: str(min(group.min_size, most)),
                names.AUTOSCALER_MAX_ANNOTATION: str(most),
                **options,
            },
        },
        "spec": {"replicas": max(0, group.target - draining), "template": {"spec": {}}},
    }


def _machine(group: ExternalGroup, instance: Instance, node: Obj | None, looked: Looked) -> Obj:
    going = instance.state is InstanceState.DELETING or _leaves(node)
    created = looked.seen.get(instance.id, looked.now)
    meta = {
        "name": instance.id,
        # A Node may say by itself which Machine it is of: then it is believed of this instance.
        "uid": (owner_uid(node) if node is not None else "") or f"instance:{instance.id}",
        "creationTimestamp": node["metadata"].get("creationTimestamp") if node is not None else format_time(created),
        "ownerReferences": [
            {"kind": MACHINE_SET.name, "name": group.id, "uid": f"group:{group.id}", "controller": True}
        ],
        **({"deletionTimestamp": format_time(looked.now)} if going else {}),
    }
    status: dict[str, Any] = {
        "conditions": [{"type": "Ready", "status": "False", "reason": "WaitingForNode", "message": ""}]
    }
    if node is not None:
        status["nodeRef"] = {"name": node["metadata"]["name"]}
        status["conditions"] = [{"type": "Ready", "status": "True", "reason": "Ready"}]
    elif instance.error:
        short = instance.out_of_resources
        reason = ErrorClass.STOCK_OUT.value if short else "CreateError"
        status["conditions"] = [{"type": "Ready", "status": "False", "reason": reason, "message": instance.error}]
        if not short:
            status |= {"phase": "Failed", "errorReason": "CreateError", "errorMessage": instance.error}
    return {"metadata": meta, "spec": {"providerID": instance.id}, "status": status}


def remembered(
    groups: Iterable[ExternalGroup], now: datetime, *, seen: Mapping[str, datetime], short: Mapping[str, datetime]
) -> tuple[dict[str, datetime], dict[str, datetime]]:
    """``Looked.seen`` and ``Looked.short_since`` for this look, of what is still there."""
    found = list(groups)
    first = {each.id: seen.get(each.id, now) for group in found for each in group.instances}
    lacking = {
        group.id: short.get(group.id, now)
        for group in found
        if group.target > sum(1 for each in group.instances if each.state is not InstanceState.DELETING)
    }
    return first, lacking
