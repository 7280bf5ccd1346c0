"""New Nodes for the 1000 pods of 30 Deployments of Karpenter's own suite: what they cost, all at once and in waves.

A second look before any Node has joined should add none.

The pods, the instance types and their prices are those of ``make bench-race``; here it is the decision alone, so that
a change of it is measured in seconds: no API server, no Karpenter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from api import names
from controllers.autoscaler.cluster_state import ClusterState, GroupObjects, Objects, WorkloadObjects, read_cluster
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.expanders import Choosing
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions
from controllers.autoscaler.plan import decide
from controllers.autoscaler.prices import PriceTable
from hack.bench.autoscaler import NOW, meta_of, timed
from hack.bench.figures import Figure
from hack.race.workloads import HOSTNAME, ZONE, Workload, wide

ZONES = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
TYPE = "node.kubernetes.io/instance-type"
KARPENTER_COST = 87.66
"""Of an hour of the Nodes that Karpenter v1.14 made for these pods (docs/performance.md)."""
WAVE = 200
RESERVED = "cpu=100m,memory=10Mi"
"""As Karpenter's simulated instances keep it."""
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def types() -> dict[str, tuple[int, int, float]]:
    """Cores, GiB and price of an hour of the instance types below 32 cores of Karpenter's list (kwok, v1.14)."""
    sizes = [(letter, cores, cores * share) for cores in (1, 2, 4, 8, 16) for letter, share in _SHARES.items()]
    return {f"{letter}-{n}x": (n, gib, 0.025 * n + 0.001 * gib * 1024**3 / 1e9) for letter, n, gib in sizes}


_SHARES = {"c": 2, "s": 4, "m": 8}


def mixed() -> list[Figure]:
    """The cost of an hour of all Nodes, with one decision on all pods and with one for every 200 that come."""
    seconds, whole = timed(lambda: played([wide()]))
    waves = played(_waves(wide()))
    goal = "Karpenter's Nodes"
    return [
        Figure("mixed_1000_cost", whole.cost, "an hour", "lower", goal, KARPENTER_COST),
        Figure("mixed_1000_nodes", float(whole.nodes), "Nodes", "lower"),
        Figure("mixed_1000_seconds", seconds, "s", "lower"),
        Figure("mixed_1000_second_look_nodes", _nodes(looked_at_again(wide())), "Nodes", "lower"),
        Figure("mixed_1000_in_waves_cost", waves.cost, "an hour", "lower"),
        Figure("mixed_1000_in_waves_nodes", float(waves.nodes), "Nodes", "lower"),
        Figure("mixed_1000_least_waste_cost", played([wide()], ["least-waste"]).cost, "an hour", "lower"),
    ]


def _nodes(decision: Decision) -> float:
    return float(sum(decision.scale_up.added.values()))


@dataclass(slots=True)
class Made:
    """``added``: group → Nodes; ``cost`` of an hour."""

    added: Counter[str] = field(default_factory=Counter)
    cost: float = 0.0

    @property
    def nodes(self) -> int:
        return sum(self.added.values())


def played(waves: Sequence[Sequence[Workload]], expanders: Sequence[str] = ("price",)) -> Made:
    """One decision for each wave, each on pods of its own. Raises RuntimeError if a pod gets no Node."""
    offered = types()
    made = Made()
    for wave in waves:
        decision = decided(wave, expanders)
        if decision.scale_up.left:
            raise RuntimeError("not all pods got a Node: a figure for that is worth nothing")
        for name, nodes in decision.scale_up.added.items():
            made.added[name] += nodes
            made.cost += nodes * offered[_type_in(name)][2]
    return made


def _type_in(group: str) -> str:
    return group.rpartition("/")[2].partition(".")[0]


def _waves(workloads: Sequence[Workload]) -> list[list[Workload]]:
    """Deployments one after the other, until 200 pods are together."""
    found: list[list[Workload]] = [[]]
    for each in workloads:
        if sum(one.replicas for one in found[-1]) >= WAVE:
            found.append([])
        found[-1].append(each)
    return found


def decided(
    workloads: Sequence[Workload], expanders: Sequence[str] = ("price",), *, least_allocated: bool = False
) -> Decision:
    """One look at these pods in a cluster without Nodes."""
    cluster = _cluster(workloads, expanders)
    growth = replace(cluster.options.growth, least_allocated=least_allocated)
    return decide(replace(cluster, options=replace(cluster.options, growth=growth)))


def looked_at_again(
    workloads: Sequence[Workload], expanders: Sequence[str] = ("price",), *, forgetful: bool = False
) -> Decision:
    """The second look, with all Nodes of the first one on their way. ``forgetful``: not knowing what they are for."""
    first = decided(workloads, expanders)
    sizes = {name.rpartition("/")[2]: nodes for name, nodes in first.scale_up.added.items()}
    memory = replace(first.memory, planned=()) if forgetful else first.memory
    return decide(replace(_cluster(workloads, expanders, sizes), memory=memory))


def _cluster(
    workloads: Sequence[Workload], expanders: Sequence[str], sizes: Mapping[str, int] | None = None
) -> ClusterState:
    """``sizes``: group → Nodes on their way."""
    offered, sizes = types(), sizes or {}
    places = [(name, zone, sizes.get(f"{name}.{zone}", 0)) for name in offered for zone in ZONES]
    groups = GroupObjects(
        machine_deployments=[_deployment(name, zone, size) for name, zone, size in places],
        machine_sets=[_set(name, zone, size) for name, zone, size in places],
    )
    pods = [_pod(each, number) for each in workloads for number in range(each.replicas)]
    prices = PriceTable({name: price for name, (_, _, price) in offered.items()})
    choosing = Choosing(tuple(expanders), prices=prices)
    options = AutoscalerOptions(GrowthOptions(choosing=choosing, nodes_per_scale_up=2000))
    objects = Objects(groups=groups, workload=WorkloadObjects(pods=pods))
    return read_cluster(objects, now=NOW, options=options, memory=Memory())


def _pod(workload: Workload, number: int) -> dict[str, Any]:
    template = workload.body()["spec"]["template"]
    name = f"{workload.name}-{number}"
    meta = {**template["metadata"], "name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}
    owner = {"kind": "ReplicaSet", "name": workload.name, "uid": workload.name, "controller": True}
    return {
        "metadata": {**meta, "ownerReferences": [{"apiVersion": "apps/v1", **owner}]},
        "spec": template["spec"],
        "status": {"phase": "Pending", "conditions": [UNSCHEDULABLE]},
    }


def _deployment(name: str, zone: str, size: int) -> dict[str, Any]:
    cores, gib, _ = types()[name]
    annotations = {
        names.AUTOSCALER_MIN_ANNOTATION: "0",
        names.AUTOSCALER_MAX_ANNOTATION: "2000",
        names.CAPACITY_CPU_ANNOTATION: str(cores),
        names.CAPACITY_MEMORY_ANNOTATION: f"{gib}Gi",
        names.CAPACITY_MAX_PODS_ANNOTATION: str(16 * cores),
        names.CAPACITY_LABELS_ANNOTATION: f"{TYPE}={name},{ZONE}={zone},{HOSTNAME}=any",
        names.KUBE_RESERVED_ANNOTATION: RESERVED,
    }
    meta = meta_of(f"{name}.{zone}", annotations=annotations)
    return {"metadata": meta, "spec": {"replicas": size, "template": {"spec": {}}}}


def _set(name: str, zone: str, size: int) -> dict[str, Any]:
    owner = ("MachineDeployment", f"{name}.{zone}")
    return {"metadata": meta_of(f"set-{name}.{zone}", owner), "spec": {"replicas": size}}
