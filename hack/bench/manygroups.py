"""One loop of the autoscaler with very many node groups, and with very many pods that wait.

Groups have a pool of their own each, by label, as upstream's users have them (autoscaler#6784: more than 40 minutes for
500 groups); pods ask for a pool, a zone, Nodes of their own, or nothing but room.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass, replace
from typing import Any

import orjson

from api import names
from controllers.autoscaler.cluster_state import GroupObjects, Objects, WorkloadObjects, read_cluster
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.options import AutoscalerOptions
from controllers.autoscaler.plan import decide
from controllers.kernel.refs import POD
from controllers.scheduling.reading import Reader
from hack.bench.autoscaler import GOAL, NOW, meta_of, pod_of, timed
from hack.bench.figures import Figure
from nodewright.cli.longevity import settle_in
from nodewright.runtime.cache.store import Store

ZONE, POOL, TYPE = "topology.kubernetes.io/zone", "example.org/pool", "node.kubernetes.io/instance-type"
ZONES = 3
CORES = (4, 8, 16, 32)
"""Of the Nodes of a group, by turns; 4 GiB for each core."""
LOOPS = 3


@dataclass(frozen=True, slots=True)
class Size:
    """``waiting`` pods of ``apps`` Deployments, beside the pods that are on Nodes; no group helps ``unhelped`` apps."""

    groups: int
    nodes_per_group: int
    pods_per_node: int
    waiting: int
    apps: int
    unhelped: int = 0


MANY_GROUPS = Size(groups=500, nodes_per_group=2, pods_per_node=20, waiting=5000, apps=250)
MANY_PODS = Size(groups=40, nodes_per_group=5, pods_per_node=20, waiting=40_000, apps=2000)


def groups() -> list[Figure]:
    """500 groups of 1000 Nodes with 20,000 pods; 5000 more of 250 Deployments wait. Once more where each group is asked
    why it does not help 30 of these Deployments.
    """
    helped, _ = measured(MANY_GROUPS)
    explained, _ = measured(replace(MANY_GROUPS, unhelped=30))
    return [
        Figure("groups_500_loop_seconds", helped, "s", "lower", GOAL, 1.0),
        Figure("groups_500_explained_loop_seconds", explained, "s", "lower"),
    ]


def pending() -> list[Figure]:
    """40,000 pods of 2000 Deployments wait; 40 groups of 200 Nodes."""
    seconds, mebibytes = measured(MANY_PODS)
    return [
        Figure("pods_40000_decided_seconds", seconds, "s", "lower", GOAL, 10.0),
        Figure("pods_40000_decided_rss_mib", mebibytes, "MiB", "lower", GOAL, 1024.0),
    ]


def measured(size: Size) -> tuple[float, float]:
    """Seconds of CPU of the best loop once all pods have been read, and the largest resident memory in MiB."""
    town = Town(size)
    settle_in()  # as the process does once all is read
    seconds = []
    for _ in range(LOOPS):
        spent, decision = timed(town.decide)
        seconds.append(spent)
        scale_up = decision.scale_up
        decided = sum(len(each.pods) for each in (*scale_up.helped, *scale_up.left))
        if decided < size.waiting // 2 or not scale_up.helped or bool(size.unhelped) > bool(scale_up.left):
            raise RuntimeError("a wrong answer: a figure for that is worth nothing")
    return min(seconds[1:]), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Town:
    """The objects as the caches hold them."""

    def __init__(self, size: Size) -> None:
        numbers = range(size.groups * size.nodes_per_group)
        self.size = size
        self.deployments = [_deployment(number, size) for number in range(size.groups)]
        self.sets = [_set(number, size) for number in range(size.groups)]
        self.machines = [_machine(number, size) for number in numbers]
        self.nodes = [_node(number, size) for number in numbers]
        self.pods = Store(POD)
        seated = (_seated(number, size) for number in range(len(numbers) * size.pods_per_node))
        waiting = (_waiting(number, size) for number in range(size.waiting))
        self.pods.replace((orjson.loads(orjson.dumps(pod)) for pod in (*seated, *waiting)), "1")
        self.reader = Reader()

    def decide(self) -> Decision:
        objects = Objects(
            groups=GroupObjects(machine_deployments=self.deployments, machine_sets=self.sets, machines=self.machines),
            workload=WorkloadObjects(nodes=self.nodes, pods=tuple(self.pods)),
            reader=self.reader,
        )
        return decide(read_cluster(objects, now=NOW, options=AutoscalerOptions(), memory=Memory()))


def _deployment(number: int, size: Size) -> dict[str, Any]:
    least, most = names.AUTOSCALER_MIN_ANNOTATION, names.AUTOSCALER_MAX_ANNOTATION
    meta = meta_of(f"md-{number}", annotations={least: "1", most: str(100 + number % 7)})
    return {"metadata": meta, "spec": {"replicas": size.nodes_per_group, "template": {"spec": {}}}}


def _set(number: int, size: Size) -> dict[str, Any]:
    meta = meta_of(f"ms-{number}", ("MachineDeployment", f"md-{number}"))
    return {"metadata": meta, "spec": {"replicas": size.nodes_per_group}}


def _machine(number: int, size: Size) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True", "reason": "Ready"}
    return {
        "metadata": meta_of(f"m-{number}", ("MachineSet", f"ms-{number % size.groups}")),
        "spec": {},
        "status": {"nodeRef": {"name": f"n-{number}"}, "conditions": [ready]},
    }


def _node(number: int, size: Size) -> dict[str, Any]:
    pool = number % size.groups
    cores = CORES[pool % len(CORES)]
    offer = {"cpu": str(cores), "memory": f"{4 * cores}Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": f"n-{number}", ZONE: f"zone-{pool % ZONES}", POOL: f"pool-{pool}"}
    labels[TYPE] = f"m{cores}"
    spec: dict[str, Any] = {"providerID": f"simulated:///{number}"}
    if pool % 10 == 9:
        spec["taints"] = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    meta = {**meta_of(f"n-{number}"), "labels": labels}
    return {"metadata": meta, "spec": spec, "status": {"capacity": offer, "allocatable": offer, "conditions": [ready]}}


def _seated(number: int, size: Size) -> dict[str, Any]:
    """20 pods fill nine tenths of a Node."""
    node = number % (size.groups * size.nodes_per_group)
    cores = CORES[node % size.groups % len(CORES)]
    app = (number + number // 1000 * 37) % size.apps
    return pod_of(app, number, node=f"n-{node}", cpu=cores * 900 // size.pods_per_node)


def _waiting(number: int, size: Size) -> dict[str, Any]:
    """One app in five asks for a pool; of ten one is spread over zones and one wants Nodes of its own (``pod_of``).
    Some find room on Nodes that are there.
    """
    app = number % size.apps
    pod = pod_of(app, 10_000_000 + number, node="", cpu=300 + app % 11 * 70)
    if app % 5 == 2:
        pool = app % size.groups
        pod["spec"]["nodeSelector"] = {POOL: f"pool-{pool}"}
        pod["spec"]["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if app < size.unhelped:
        pod["spec"]["nodeSelector"] = {POOL: "none"}
    return pod
