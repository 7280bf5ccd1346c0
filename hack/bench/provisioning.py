"""ProvisioningRequests: one for 600 Nodes, the largest there may be, and a thousand small ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from api import names, provisioning_names
from controllers.autoscaler.cluster_state import GroupObjects, Objects, WorkloadObjects, read_cluster
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.observe import Observed as AutoscalerObserved
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions, Range
from controllers.kernel.actions import Patch, Scale
from controllers.kernel.plan import Plan
from controllers.kernel.refs import PROVISIONING_REQUEST
from controllers.provisioningrequest.observe import Observed
from controllers.provisioningrequest.plan import plan
from controllers.scaling.node_group import Discovery
from controllers.scheduling.reading import Reader
from hack.bench.figures import Figure

NOW = datetime(2026, 6, 1, tzinfo=UTC)
GROUPS, SETS, SMALL = 20, provisioning_names.MAX_POD_SETS, 1000
OPTIONS = AutoscalerOptions(
    GrowthOptions(cores=Range(0, 10**7), memory=Range(0, 10**17), nodes_per_scale_up=10**6),
    discovery=Discovery(),
    provisioning_requests=True,
)
GOAL = "the aim"
Obj = dict[str, Any]
T = TypeVar("T")


def provisioning() -> list[Figure]:
    steps, nodes = _six_hundred()
    largest, asked = _timed(_largest)
    if nodes != 600 or not asked:
        raise RuntimeError("nothing was decided: a figure for that is worth nothing")
    looks = _thousand()
    return [
        Figure("provreq_600_scale_steps", steps, "steps", "lower", "the proposal's own example", 3.0),
        Figure("provreq_largest_plan_seconds", largest, "s", "lower", GOAL, 2.0),
        Figure("provreq_1000_small_seconds", sum(looks), "s", "lower", GOAL, 60.0),
        Figure("provreq_1000_small_longest_look_seconds", max(looks), "s", "lower", "", None),
    ]


def _timed(job: Callable[[], T]) -> tuple[float, T]:
    started = time.process_time()
    answer = job()
    return time.process_time() - started, answer


class _Cluster:
    """Groups without Nodes, and requests; what a plan writes is kept."""

    def __init__(self, cpus: int, most: int) -> None:
        self.groups = [_group(number, cpus, most) for number in range(GROUPS)]
        self.sets = [_set(number) for number in range(GROUPS)]
        self.machines: list[Obj] = []
        self.nodes: list[Obj] = []
        self.templates: list[Obj] = []
        self.requests: list[Obj] = []
        self.cpus = cpus

    def ask(self, name: str, sets: Iterable[tuple[str, int, str]]) -> None:
        wanted = []
        for template, count, cpu in sets:
            container = {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
            spec = {"metadata": {"labels": {"job": template}}, "spec": {"containers": [container]}}
            self.templates.append({"metadata": _meta(template), "template": spec})
            wanted.append({"podTemplateRef": {"name": template}, "count": count})
        spec = {"provisioningClassName": provisioning_names.ATOMIC_SCALE_UP, "podSets": wanted}
        self.requests.append({"metadata": _meta(name), "spec": spec})

    def decide(self, now: datetime = NOW) -> Plan:
        objects = Objects(
            groups=GroupObjects(machine_deployments=self.groups, machine_sets=self.sets, machines=self.machines),
            workload=WorkloadObjects(nodes=self.nodes),
            reader=Reader(),
            requests=self.requests,
            pod_templates=self.templates,
        )
        cluster = read_cluster(objects, now=now, options=OPTIONS, memory=Memory())
        return plan(Observed(autoscaler=AutoscalerObserved(cluster=cluster)))

    def carry_out(self, decided: Plan) -> int:
        """What was written; returns how many steps changed sizes."""
        groups = {group["metadata"]["name"]: group for group in self.groups}
        requests = {request["metadata"]["name"]: request for request in self.requests}
        steps = 0
        for step in decided.steps:
            steps += any(isinstance(action, Scale) for action in step)
            for action in step:
                if isinstance(action, Scale):
                    groups[action.target.key.name]["spec"]["replicas"] = action.replicas
                elif isinstance(action, Patch) and action.target.kind == PROVISIONING_REQUEST:
                    status = requests[action.target.key.name].setdefault("status", {})
                    details = {**status.get("provisioningClassDetails", {})}
                    details |= action.patch["status"].get("provisioningClassDetails", {})
                    kept = {key: text for key, text in details.items() if text is not None}
                    status.update({**action.patch["status"], "provisioningClassDetails": kept})
        return steps

    def join(self, count: int, now: datetime) -> None:
        """So many Nodes more, of those that were asked for."""
        for number, group in enumerate(self.groups):
            there = sum(1 for m in self.machines if m["metadata"]["ownerReferences"][0]["uid"] == f"uid-ms-{number}")
            for index in range(there, group["spec"]["replicas"]):
                if count:
                    count -= 1
                    self.machines.append(_machine(number, index, now))
                    self.nodes.append(_node(f"n-{number}-{index}", self.cpus))

    @property
    def provisioned(self) -> int:
        said = (c for r in self.requests for c in r.get("status", {}).get("conditions", []))
        return sum(1 for c in said if c["type"] == "Provisioned" and c["status"] == "True")


def _six_hundred() -> tuple[int, int]:
    """From nothing until the room is there: steps in which sizes were written, and Nodes."""
    cluster, now, steps = _Cluster(4, 50), NOW, 0
    cluster.ask("job", [("worker", 600, "3")])
    for _ in range(10):
        steps += cluster.carry_out(cluster.decide(now))
        now += timedelta(seconds=10)
        cluster.join(150, now)
        if cluster.provisioned:
            break
    return steps, len(cluster.nodes)


def _largest() -> int:
    """As many pods as a request may ask for: 32 sets of 16384 that differ."""
    cluster = _Cluster(64, 5000)
    cluster.ask(
        "job", [(f"t{number}", provisioning_names.MAX_PODS_OF_SET, f"{250 + 10 * number}m") for number in range(SETS)]
    )
    return sum(action.replicas for action in cluster.decide().actions() if isinstance(action, Scale))


def _thousand() -> list[float]:
    """A thousand requests of two sets each: how long each look takes, until Nodes are asked for for all of them."""
    cluster = _Cluster(8, 5000)
    for number in range(SMALL):
        cpu = f"{500 + number % 50 * 10}m"
        cluster.ask(f"job-{number}", [(f"lead-{number}", 1, "1"), (f"work-{number}", 4, cpu)])
    looks, served = [], 0
    while served < SMALL and len(looks) < SMALL:
        seconds, decided = _timed(cluster.decide)
        cluster.carry_out(decided)
        looks.append(seconds)
        served = sum(
            1 for request in cluster.requests if provisioning_names.PROVISIONING_SINCE_DETAIL in _details(request)
        )
    if served != SMALL:
        raise RuntimeError(f"{served} of {SMALL} requests were served")
    return looks


def _details(request: Obj) -> Obj:
    found: Obj = request.get("status", {}).get("provisioningClassDetails", {})
    return found


def _meta(name: str, owner: tuple[str, str] | None = None, now: datetime = NOW, **more: Any) -> Obj:
    meta = {"namespace": "default", "name": name, "uid": f"uid-{name}", "resourceVersion": "5", **more}
    meta["creationTimestamp"] = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if owner:
        meta["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "uid": f"uid-{owner[1]}", "controller": True}]
    return meta


def _group(number: int, cpus: int, most: int) -> Obj:
    annotations = {
        names.AUTOSCALER_MIN_ANNOTATION: "0",
        names.AUTOSCALER_MAX_ANNOTATION: str(most),
        names.CAPACITY_CPU_ANNOTATION: str(cpus),
        names.CAPACITY_MEMORY_ANNOTATION: f"{4 * cpus}Gi",
        names.CAPACITY_MAX_PODS_ANNOTATION: "250",
        names.CAPACITY_LABELS_ANNOTATION: f"pool=md-{number}",
    }
    return {"metadata": _meta(f"md-{number}", annotations=annotations), "spec": {"replicas": 0, "template": {}}}


def _set(number: int) -> Obj:
    return {"metadata": _meta(f"ms-{number}", ("MachineDeployment", f"md-{number}")), "spec": {"replicas": 0}}


def _machine(group: int, index: int, now: datetime) -> Obj:
    ready = {"type": "Ready", "status": "True", "reason": "Ready"}
    status = {"nodeRef": {"name": f"n-{group}-{index}"}, "conditions": [ready]}
    meta = _meta(f"m-{group}-{index}", ("MachineSet", f"ms-{group}"), now)
    return {"metadata": meta, "spec": {}, "status": status}


def _node(name: str, cpus: int) -> Obj:
    offer = {"cpu": str(cpus), "memory": f"{4 * cpus}Gi", "pods": "250"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    meta = {**_meta(name), "labels": {"kubernetes.io/hostname": name}}
    return {"metadata": meta, "spec": {}, "status": {"allocatable": offer, "conditions": [ready]}}
