"""New Nodes for 2000 pods that must not share them: by a hard spread over Nodes, by anti-affinity, and by both at once.

Karpenter gives its own scenario of 2000 pods with a spread over Nodes 35 minutes until the last Node
(``test/suites/scale``); here it is the decision alone that is measured.
"""

from __future__ import annotations

from typing import Any

from api import names
from controllers.autoscaler.cluster_state import GroupObjects, Objects, WorkloadObjects, read_cluster
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions
from controllers.autoscaler.plan import decide
from hack.bench.autoscaler import GOAL, NOW, meta_of, pod_of, timed
from hack.bench.figures import Figure

PODS, GROUPS, APP = 2000, 4, 2
GOAL_SECONDS = 5.0
HOSTNAME = "kubernetes.io/hostname"


def spread() -> list[Figure]:
    """2000 pods of one Deployment; 4 groups without Nodes, which may have 3000 each. Apart, they need 2000 Nodes."""
    return [
        Figure("spread_2000_seconds", measured(spread=True), "s", "lower", GOAL, GOAL_SECONDS),
        Figure("anti_affinity_2000_seconds", measured(apart=True), "s", "lower", GOAL, GOAL_SECONDS),
        Figure("spread_and_apart_2000_seconds", measured(spread=True, apart=True), "s", "lower"),
    ]


def measured(*, spread: bool = False, apart: bool = False, count: int = PODS) -> float:
    """Seconds of CPU of one loop, with everything read for the first time."""
    pods = [_pod(number, spread=spread, apart=apart) for number in range(count)]
    deployments = [_deployment(number) for number in range(GROUPS)]
    sets = [_set(number) for number in range(GROUPS)]

    def loop() -> Decision:
        groups = GroupObjects(machine_deployments=deployments, machine_sets=sets)
        objects = Objects(groups=groups, workload=WorkloadObjects(pods=pods))
        options = AutoscalerOptions(GrowthOptions(nodes_per_scale_up=count))
        return decide(read_cluster(objects, now=NOW, options=options, memory=Memory()))

    seconds, decision = timed(loop)
    if sum(len(each.pods) for each in decision.scale_up.helped) != count:
        raise RuntimeError("not all pods got a Node: a figure for that is worth nothing")
    if apart and sum(decision.scale_up.added.values()) < count:
        raise RuntimeError("pods share Nodes that must not: a figure for that is worth nothing")
    return seconds


def _pod(number: int, *, spread: bool, apart: bool) -> dict[str, Any]:
    """20 pods would fit a Node, were they not to be apart."""
    pod = pod_of(APP, number, node="", cpu=750)
    mine = {"matchLabels": {"app": f"app-{APP}"}}
    if spread:
        constraint = {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}
        pod["spec"]["topologySpreadConstraints"] = [{**constraint, "labelSelector": mine}]
    if apart:
        term = {"labelSelector": mine, "topologyKey": HOSTNAME}
        pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod


def _deployment(number: int) -> dict[str, Any]:
    annotations = {
        names.AUTOSCALER_MIN_ANNOTATION: "0",
        names.AUTOSCALER_MAX_ANNOTATION: "3000",
        names.CAPACITY_CPU_ANNOTATION: str(16 + number),
        names.CAPACITY_MEMORY_ANNOTATION: "64Gi",
    }
    meta = meta_of(f"md-{number}", annotations=annotations)
    return {"metadata": meta, "spec": {"replicas": 0, "template": {"spec": {}}}}


def _set(number: int) -> dict[str, Any]:
    return {"metadata": meta_of(f"ms-{number}", ("MachineDeployment", f"md-{number}")), "spec": {"replicas": 0}}
