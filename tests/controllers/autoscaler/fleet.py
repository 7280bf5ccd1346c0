"""A little cluster in core objects: groups whose Machines become Nodes when told, and a scheduler that packs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from api import names
from api.autoprovision import read_offer
from controllers.autoscaler.buffers import BufferObjects
from controllers.autoscaler.candidates import OfferedClass, made_of, with_candidates
from controllers.autoscaler.cluster_state import ClusterState, GroupObjects, Objects, WorkloadObjects, read_cluster
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.expected_pods import OwnerObjects
from controllers.autoscaler.memory import Memory, read, write
from controllers.autoscaler.options import AutoscalerOptions
from controllers.autoscaler.plan import decide
from controllers.kernel.actions import Action, Create, Delete, Patch, Scale
from controllers.kernel.conditions import format_time
from controllers.kernel.refs import MACHINE_DEPLOYMENT, Key, key_of
from providers.base.contract import Shape

Obj = dict[str, Any]
GANGS = "scheduling.k8s.io/v1alpha2"
ZONE = "topology.kubernetes.io/zone"
START = datetime(2026, 6, 1, tzinfo=UTC)
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
READY = {"type": "Ready", "status": "True", "reason": "Ready"}


@dataclass
class Fleet:
    """``capacity``: what a Node of a group offers. ``memory`` goes through its text, as it would through a restart."""

    options: AutoscalerOptions = field(default_factory=AutoscalerOptions)
    now: datetime = START
    text: str = ""
    deployments: dict[str, Obj] = field(default_factory=dict)
    sets: dict[str, Obj] = field(default_factory=dict)
    machines: dict[str, Obj] = field(default_factory=dict)
    nodes: dict[str, Obj] = field(default_factory=dict)
    pods: dict[str, Obj] = field(default_factory=dict)
    others: dict[str, list[Obj]] = field(default_factory=dict)
    offered: list[OfferedClass] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    pod_groups: dict[str, dict[str, Obj]] = field(default_factory=dict)
    buffers: BufferObjects = field(default_factory=BufferObjects)
    owners: OwnerObjects = field(default_factory=OwnerObjects)
    quotas: list[Obj] = field(default_factory=list)
    made: int = 0

    def group(self, name: str, least: int = 0, most: int = 10, **capacity: str) -> Obj:
        """A MachineDeployment and its MachineSet, with no Machines."""
        offer = {"cpu": "4", "memory": "8Gi", **capacity}
        annotations = {
            names.AUTOSCALER_MIN_ANNOTATION: str(least),
            names.AUTOSCALER_MAX_ANNOTATION: str(most),
            **{f"{names.CAPACITY_PREFIX}{key}": value for key, value in offer.items()},
        }
        meta = {
            "namespace": "ns",
            "name": name,
            "uid": f"md-{name}",
            "resourceVersion": "7",
            "annotations": annotations,
        }
        self.deployments[name] = {"metadata": meta, "spec": {"replicas": 0, "template": {"spec": {}}}}
        self.sets[name] = {
            "metadata": {
                "namespace": "ns",
                "name": name,
                "uid": f"ms-{name}",
                **_owned("MachineDeployment", f"md-{name}"),
            },
            "spec": {"replicas": 0},
        }
        return self.deployments[name]

    def offer(self, name: str, text: str = "true", domains: tuple[str, ...] = (), **capacity: str) -> OfferedClass:
        """A MachineClass of which the autoscaler may make groups."""
        offer = read_offer(text)
        assert offer is not None
        given = {"cpu": "4", "memory": "8Gi", "pods": "110", **capacity}
        shape = Shape(given, {}, (), ZONE if domains else "")
        found = OfferedClass(key=Key("ns", name), offer=offer, shape=shape, domains=domains)
        self.offered.append(found)
        self.texts[name] = text
        return found

    def pod(self, name: str, cpu: str = "1", node: str = "", **spec: Any) -> Obj:
        """Of a ReplicaSet; pending without ``node``."""
        body = {
            "metadata": {"namespace": "default", "name": name, "uid": f"pod-{name}", **_owned("ReplicaSet", "rs")},
            "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}], **spec},
            "status": {"conditions": [] if node else [UNSCHEDULABLE]},
        }
        if node:
            body["spec"]["nodeName"] = node
        self.pods[name] = body
        return body

    def gang(
        self, name: str, count: int, cpu: str = "1", *, least: int | None = None, zone: bool = False, **spec: Any
    ) -> Obj:
        """A PodGroup of Kubernetes 1.36 with its pods."""
        wish = {"schedulingConstraints": {"topology": [{"key": ZONE}]}} if zone else {}
        policy = {"gang": {"minCount": count if least is None else least}}
        created = format_time(START + timedelta(seconds=len(self.pod_groups.get(GANGS, {}))))
        meta = {"namespace": "default", "name": name, "uid": f"pg-{name}", "creationTimestamp": created}
        group = {"metadata": meta, "spec": {"schedulingPolicy": policy, **wish}}
        self.pod_groups.setdefault(GANGS, {})[name] = group
        for index in range(count):
            self.pod(f"{name}-{index}", cpu, schedulingGroup={"podGroupName": name}, **spec)
        return group

    def bound(self, gang: str) -> int:
        return sum(1 for name, pod in self.pods.items() if name.startswith(f"{gang}-") and pod["spec"].get("nodeName"))

    def come(self, count: int, cpu: str) -> None:
        """Pods of names that were never used."""
        for _ in range(count):
            self.pod(f"p-{len(self.pods)}-{self.made}-{self.now:%d%H%M}", cpu)

    def leave(self, count: int) -> None:
        for name in sorted(self.pods)[:count]:
            del self.pods[name]

    def size(self, group: str) -> int:
        replicas: int = self.deployments[group]["spec"]["replicas"]
        return replicas

    def machine(self, group: str, condition: Obj | None = None) -> Obj:
        """One more Machine, without a Node."""
        self.made += 1
        name = f"{group}-{self.made}"
        meta = {
            "namespace": "ns",
            "name": name,
            "uid": name,
            "resourceVersion": "3",
            "creationTimestamp": format_time(self.now),
            "annotations": {},
            **_owned("MachineSet", f"ms-{group}"),
        }
        said = condition or {"type": "Ready", "status": "False", "reason": "WaitingForNode"}
        self.machines[name] = {"metadata": meta, "spec": {}, "status": {"conditions": [said]}}
        return self.machines[name]

    def join(self, machine: Obj) -> Obj:
        """Its Node appears and is Ready."""
        name = machine["metadata"]["name"]
        group = machine["metadata"]["ownerReferences"][0]["uid"].removeprefix("ms-")
        capacity, spec = self._offers(group), self.deployments[group]["spec"]["template"]["spec"]
        labels = (spec.get("metadata") or {}).get("labels") or {}
        zone = {ZONE: spec["failureDomain"]} if spec.get("failureDomain") else {}
        machine["status"] = {"nodeRef": {"name": name}, "conditions": [READY]}
        self.nodes[name] = {
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, **labels, **zone},
                "annotations": {},
                "creationTimestamp": format_time(self.now),
            },
            "spec": {"taints": spec.get("taints") or []},
            "status": {"capacity": capacity, "allocatable": {**capacity, "pods": "110"}, "conditions": [READY]},
        }
        return self.nodes[name]

    def settle(self) -> None:
        """The sets make and delete Machines, hosts join, the scheduler puts pods wherever they fit first."""
        for group, body in self.deployments.items():
            mine = [m for m in self.machines.values() if m["metadata"]["ownerReferences"][0]["uid"] == f"ms-{group}"]
            mine.sort(key=lambda m: not m["metadata"]["annotations"].get(names.DELETE_MACHINE_ANNOTATION))
            for surplus in mine[: max(0, len(mine) - body["spec"]["replicas"])]:
                self._lose(surplus["metadata"]["name"])
            for _ in range(body["spec"]["replicas"] - len(mine)):
                self.machine(group)
        for machine in self.machines.values():
            if not machine["status"].get("nodeRef"):
                self.join(machine)
        self.schedule()

    def schedule(self) -> None:
        """A gang as a whole or not at all, as kube-scheduler does it."""
        for gang in ("", *self.pod_groups.get(GANGS, {})):
            mine = [pod for pod in self.pods.values() if _gang_of(pod) == gang]
            least = self.pod_groups[GANGS][gang]["spec"]["schedulingPolicy"]["gang"]["minCount"] if gang else 0
            new = [pod for pod in mine if not pod["spec"].get("nodeName")]
            for pod in new:
                pod["spec"]["nodeName"] = next((name for name in sorted(self.nodes) if self._fits(pod, name)), "")
            if sum(1 for pod in mine if pod["spec"].get("nodeName")) < least:
                for pod in new:
                    pod["spec"]["nodeName"] = ""
            for pod in new:
                pod["status"]["conditions"] = [] if pod["spec"]["nodeName"] else [UNSCHEDULABLE]

    def observed(self) -> ClusterState:
        objects = Objects(
            groups=GroupObjects(
                machine_deployments=tuple(self.deployments.values()),
                machine_sets=tuple(self.sets.values()),
                machines=tuple(self.machines.values()),
            ),
            workload=WorkloadObjects(
                nodes=tuple(self.nodes.values()),
                pods=tuple(self.pods.values()),
                daemon_sets=tuple(self.others.get("daemon_sets", ())),
                budgets=tuple(self.others.get("budgets", ())),
                pod_groups={name: tuple(groups.values()) for name, groups in self.pod_groups.items()},
            ),
            buffers=self.buffers,
            owners=self.owners,
            quotas=self.quotas,
        )
        memory = read(self.text) if self.text else Memory()
        cluster = read_cluster(objects, now=self.now, options=self.options, memory=memory)
        if not self.options.growth.own_groups:
            return cluster
        bodies = self.deployments.values()
        made = {body["metadata"]["uid"]: key for body in bodies if (key := made_of(body)) is not None}
        taken = {key_of(body) for body in bodies}
        return with_candidates(cluster, self.offered, made=made, taken=taken)

    def decide(self) -> Decision:
        return decide(self.observed())

    def round(self, steps: int = 9, after: timedelta = timedelta(seconds=10)) -> Decision:
        """Decide, keep the memory, carry out the first ``steps`` steps; then time passes."""
        decision = self.decide()
        self.text = write(decision.memory)
        for step in decision.steps[:steps]:
            for action in step:
                self._carry_out(action)
        self.now += after
        return decision

    def _carry_out(self, action: Action) -> None:
        if isinstance(action, Scale):
            self.deployments[action.target.key.name]["spec"]["replicas"] = action.replicas
        elif isinstance(action, Create) and action.kind == MACHINE_DEPLOYMENT:
            self._create(dict(action.body))
        elif isinstance(action, Delete):
            name = action.target.key.name
            assert not self.deployments[name]["spec"]["replicas"], "a group with Machines was deleted"
            del self.deployments[name], self.sets[name]
        elif isinstance(action, Patch) and action.target.kind == MACHINE_DEPLOYMENT:
            self._patch_group(self.deployments[action.target.key.name], action.patch)
        elif isinstance(action, Patch):
            machine = self.machines[action.target.key.name] = {**self.machines[action.target.key.name]}
            changed = {**machine["metadata"]["annotations"], **action.patch["metadata"]["annotations"]}
            kept = {key: value for key, value in changed.items() if value is not None}
            machine["metadata"] = {**machine["metadata"], "annotations": kept}

    def _patch_group(self, body: Obj, patch: Mapping[str, Any]) -> None:
        changed = {**body["metadata"]["annotations"], **(patch.get("metadata") or {}).get("annotations", {})}
        body["metadata"]["annotations"] = {key: value for key, value in changed.items() if value is not None}
        body["spec"].update(patch.get("spec") or {})

    def _create(self, body: Obj) -> None:
        name = body["metadata"]["name"]
        if name in self.deployments:
            return  # AlreadyExists
        body["metadata"] = {**body["metadata"], "uid": f"md-{name}", "resourceVersion": "7"}
        self.deployments[name] = body
        meta = {"namespace": "ns", "name": name, "uid": f"ms-{name}", **_owned("MachineDeployment", f"md-{name}")}
        self.sets[name] = {"metadata": meta, "spec": {"replicas": 0}}

    def _offers(self, group: str) -> dict[str, str]:
        annotations = self.deployments[group]["metadata"]["annotations"]
        made = made_of(self.deployments[group])
        shapes = {each.key: each.shape for each in self.offered}
        shape = shapes.get(made) if made is not None else None
        if shape is not None:
            return dict(shape.capacity)
        return {key: annotations[f"{names.CAPACITY_PREFIX}{key}"] for key in ("cpu", "memory")}

    def _lose(self, name: str) -> None:
        del self.machines[name]
        self.nodes.pop(name, None)
        for pod in self.pods.values():
            if pod["spec"].get("nodeName") == name:
                pod["spec"]["nodeName"] = ""

    def _fits(self, pod: Obj, node: str) -> bool:
        used = sum(_cpu(other) for other in self.pods.values() if other["spec"].get("nodeName") == node)
        selector = pod["spec"].get("nodeSelector") or {}
        if not selector.items() <= self.nodes[node]["metadata"]["labels"].items():
            return False
        return used + _cpu(pod) <= float(self.nodes[node]["status"]["allocatable"]["cpu"])


def _gang_of(pod: Obj) -> str:
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName", ""))


def _cpu(pod: Obj) -> float:
    return float(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def _owned(kind: str, uid: str) -> Obj:
    return {"ownerReferences": [{"kind": kind, "name": uid, "uid": uid, "controller": True}]}
