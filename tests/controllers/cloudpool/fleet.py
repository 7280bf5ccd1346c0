"""Small pools and clusters as objects, for tests of what goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from controllers.cloudpool.messages import MachineState, Membership, PoolMachine, PoolSize
from controllers.cloudpool.scaledown import Forward, NotMember, Observed, Refused, Rules, Shrink, Victim, plan_terminate
from controllers.cloudpool.scaledown import plan_size as plan
from controllers.cloudpool.world import Objects, observe

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
LONG_AGO = "2026-11-01T00:00:00Z"
READY = [{"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}]
UNREADY = [{"type": "Ready", "status": "Unknown", "lastTransitionTime": LONG_AGO}]


def node(name: str, cpu: str = "4", ready: bool = True, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "labels": {"kubernetes.io/hostname": name}}
    meta["labels"] = {**meta["labels"], **more.pop("labels", {})}  # type: ignore[dict-item]
    if "annotations" in more:
        meta["annotations"] = more.pop("annotations")
    offer = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    status = {"allocatable": offer, "capacity": offer, "conditions": READY if ready else UNREADY}
    status["addresses"] = more.pop("addresses", [])
    spec = {"providerID": f"cloud:///zone/{name}", **more}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}


def pod(name: str, on: str, cpu: str = "100m", **more: Any) -> dict[str, Any]:
    """Of a ReplicaSet, unless ``owners`` says otherwise."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "uid-rs", "controller": True}
    meta = {
        "name": name,
        "namespace": more.pop("namespace", "default"),
        "uid": f"uid-{name}",
        "labels": more.pop("labels", {"app": "web"}),
        "annotations": more.pop("annotations", {}),
        "creationTimestamp": LONG_AGO,
        "ownerReferences": more.pop("owners", [owner]),
    }
    status = {"phase": more.pop("phase", "Running"), "conditions": READY}
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, **more.pop("requests", {})}}}
    container["ports"] = more.pop("ports", [])
    spec = {"nodeName": on, "containers": [container], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def budget(name: str, allowed: int, labels: dict[str, str] | None, namespace: str = "default") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels} if labels else {}},
        "status": {"disruptionsAllowed": allowed},
    }


def machine(id_: str, state: str = "RUNNING", active: bool = True, evictable: bool = True, **more: Any) -> PoolMachine:
    return PoolMachine(id_, MachineState(state), Membership(active, evictable), **more)


@dataclass
class Fleet:
    """A pool of one machine a Node, unless ``machines`` says otherwise; ``desired`` None: as many as are active."""

    nodes: Sequence[dict[str, Any]] = ()
    pods: Sequence[dict[str, Any]] = ()
    budgets: Sequence[dict[str, Any]] = ()
    machines: Sequence[PoolMachine] | None = None
    desired: int | None = None
    rules: Rules = field(default_factory=Rules)
    gone: frozenset[str] = frozenset()
    more: Objects = field(default_factory=Objects)

    def observed(self) -> Observed:
        machines = self.machines
        if machines is None:
            machines = [machine(body["metadata"]["name"]) for body in self.nodes]
        objects = replace(self.more, nodes=self.nodes, pods=self.pods, budgets=self.budgets)
        return Observed(tuple(machines), observe(objects, NOW), self.rules, self.gone)

    def to(self, desired: int) -> Forward | Shrink | Refused:
        observed = self.observed()
        active = len([each for each in observed.machines if each.active])
        wanted = active if self.desired is None else self.desired
        return plan(observed, PoolSize(wanted, active, active), desired)

    def without(self, machine_id: str) -> Victim | NotMember | Refused:
        return plan_terminate(self.observed(), machine_id)


def victims(found: Forward | Shrink | Refused) -> list[str]:
    """Ids of those that go, in order."""
    assert isinstance(found, Shrink), found
    return [victim.machine.id for victim in found.victims]


def refusal(found: object) -> str:
    assert isinstance(found, Refused), found
    return found.why
