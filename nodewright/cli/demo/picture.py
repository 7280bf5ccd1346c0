"""What there is at one moment, small enough to compare with the moment before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from controllers.kernel.conditions import find
from controllers.kernel.ownership import controller_of
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, NODE, Kind, Obj
from nodewright.cli.cluster.snapshot import objects_of
from nodewright.runtime.cache.cache import Cache


@dataclass(frozen=True, slots=True)
class MachineRow:
    """One Machine. ``kubelet`` is what runs on its Node ("" if nothing does); ``wants`` what is asked for."""

    name: str
    owner: str
    phase: str
    ready: bool
    reason: str
    node: str
    kubelet: str
    wants: str
    host: str
    deleting: bool

    @property
    def state(self) -> str:
        if self.deleting:
            return "Deleting"
        if self.ready and self.kubelet == self.wants:
            return "Ready"
        return self.phase or "Pending"


@dataclass(frozen=True, slots=True)
class DeploymentRow:
    name: str
    replicas: int
    updated: int
    ready: int
    settled: bool
    """Its status speaks of the present spec."""


@dataclass(frozen=True, slots=True)
class Picture:
    machines: tuple[MachineRow, ...] = ()
    deployments: tuple[DeploymentRow, ...] = ()
    sets: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()

    @property
    def ready(self) -> int:
        return sum(1 for machine in self.machines if machine.state == "Ready")

    @property
    def empty(self) -> bool:
        return not (self.machines or self.deployments or self.sets or self.nodes or self.clusters)

    def machine(self, name: str) -> MachineRow | None:
        return next((m for m in self.machines if m.name == name), None)


def take(cache: Cache) -> Picture:
    """The picture of a cluster as it was read."""
    return Picture(
        machines=tuple(sorted((_machine(m) for m in objects_of(cache, MACHINE)), key=lambda m: (m.owner, m.name))),
        deployments=tuple(_deployment(d) for d in objects_of(cache, MACHINE_DEPLOYMENT)),
        sets=_names(cache, MACHINE_SET),
        nodes=_names(cache, NODE),
        clusters=_names(cache, CLUSTER),
    )


def changes(before: Picture, after: Picture) -> Iterator[str]:
    """What a person would say has happened between two pictures."""
    known = {m.name: m for m in before.machines}
    for machine in after.machines:
        old = known.pop(machine.name, None)
        if old is None:
            yield f"Machine {machine.name} is there: {_in_words(machine)}"
        elif old.state != machine.state:
            yield f"Machine {machine.name}: {_in_words(machine)}"
        elif old.host and machine.host and old.host != machine.host:
            yield f"Machine {machine.name}: new host {machine.host}"
    for name in known:
        yield f"Machine {name} is gone"
    for name in sorted(set(before.nodes) - set(after.nodes)):
        yield f"Node {name} is gone"


def _in_words(machine: MachineRow) -> str:
    if machine.state == "Ready":
        return f"Ready, Node {machine.node} runs kubelet {machine.kubelet}"
    why = f" ({machine.reason})" if machine.reason and machine.reason != machine.state else ""
    return f"{machine.state}{why}"


def _machine(machine: Obj) -> MachineRow:
    spec, status = machine.get("spec") or {}, machine.get("status") or {}
    ready = find(status.get("conditions"), "Ready") or {}
    owner = controller_of(machine) or {}
    return MachineRow(
        name=machine["metadata"]["name"],
        owner=str(owner.get("name", "")),
        phase=str(status.get("phase") or ""),
        ready=ready.get("status") == "True",
        reason=str(ready.get("reason", "")) if ready.get("status") != "True" else "",
        node=str((status.get("nodeRef") or {}).get("name", "")),
        kubelet=_version((status.get("versions") or {}).get("kubelet")),
        wants=_version((spec.get("versions") or {}).get("kubelet")),
        host=str(spec.get("providerID") or ""),
        deleting=bool(machine["metadata"].get("deletionTimestamp")),
    )


def _deployment(deployment: Obj) -> DeploymentRow:
    spec, status = deployment.get("spec") or {}, deployment.get("status") or {}
    want = int(spec.get("replicas", 1))
    present = status.get("observedGeneration") == deployment["metadata"].get("generation")
    counts = [status.get(name) or 0 for name in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")]
    return DeploymentRow(
        name=deployment["metadata"]["name"],
        replicas=want,
        updated=_count(status, "updatedReplicas"),
        ready=_count(status, "readyReplicas"),
        settled=present and counts == [want] * 4,
    )


def _count(status: Mapping[str, Any], name: str) -> int:
    return int(status.get(name) or 0)


def _version(text: object) -> str:
    return str(text or "").lstrip("v")


def _names(cache: Cache, kind: Kind) -> tuple[str, ...]:
    return tuple(sorted(str(obj["metadata"]["name"]) for obj in objects_of(cache, kind)))
