"""What a line of `nodewright get clusters` says of one Cluster: decided from objects alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.conditions import ClusterCondition
from controllers.kernel.conditions import find, parse_time
from controllers.kernel.node_policy import endpoint_of
from controllers.kernel.ownership import cluster_name_of, controller_uid
from controllers.kernel.refs import (
    CLUSTER,
    CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    Key,
    Kind,
    Obj,
    is_deleting,
    key_of,
    mapping,
    objects,
    runs_control_plane,
    spec_of,
    status_of,
    uid_of,
)
from controllers.kernel.version import Version, dotted, parse

KINDS = (CLUSTER, CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE)

World = Mapping[Kind, Iterable[Obj]]


@dataclass(frozen=True, slots=True)
class Count:
    """Machines that are Ready, of so many that are asked for."""

    ready: int = 0
    wanted: int = 0

    def __str__(self) -> str:
        return f"{self.ready}/{self.wanted}" if self.wanted or self.ready else "-"


@dataclass(frozen=True, slots=True)
class Row:
    """``endpoint``: "" if its Nodes are in the management cluster. ``version``: of the kubelets of its control plane,
    else of its workers; a range if there are several, "" if none is known. ``condition``: one word.
    """

    cluster: Key
    endpoint: str
    version: str
    control_plane: Count
    workers: Count
    condition: str
    message: str
    created: datetime | None


def rows(world: World) -> list[Row]:
    """A row for each Cluster, by namespace and name."""
    members: dict[Key, list[tuple[Kind, Obj]]] = {}
    for kind in KINDS[1:]:
        for obj in world.get(kind, ()):
            members.setdefault(Key(key_of(obj).namespace, cluster_name_of(obj)), []).append((kind, obj))
    clusters = sorted(world.get(CLUSTER, ()), key=key_of)
    return [_row(cluster, members.get(key_of(cluster), [])) for cluster in clusters]


def _row(cluster: Obj, members: list[tuple[Kind, Obj]]) -> Row:
    machines = [obj for kind, obj in members if kind == MACHINE]
    wanted = list(_wanted(members))

    def count(role: bool) -> Count:
        ready = sum(1 for each in machines if runs_control_plane(each) is role and _is_ready(each))
        return Count(ready, sum(count for has_role, count in wanted if has_role is role))

    condition, message = _condition(cluster)
    created = parse_time(cluster["metadata"].get("creationTimestamp"))
    version = _versions(machines)
    return Row(key_of(cluster), _endpoint(cluster), version, count(True), count(False), condition, message, created)


def _wanted(members: Iterable[tuple[Kind, Obj]]) -> Iterator[tuple[bool, int]]:
    """Whether it is of the control plane, and how many: of all that nothing else here controls."""
    listed = list(members)
    owners = {uid_of(obj) for _, obj in listed}
    for kind, obj in listed:
        if controller_uid(obj) in owners:
            continue
        if kind == MACHINE:
            yield runs_control_plane(obj), 0 if is_deleting(obj) else 1
            continue
        replicas = spec_of(obj).get("replicas", 1)
        template = {"spec": mapping(mapping(spec_of(obj).get("template")).get("spec"))}
        count = replicas if isinstance(replicas, int) and not is_deleting(obj) else 0
        yield kind == CONTROL_PLANE or runs_control_plane(template), count


def _is_ready(machine: Obj) -> bool:
    ready = find(status_of(machine).get("conditions"), "Ready") or {}
    return ready.get("status") == "True" and not is_deleting(machine)


def _endpoint(cluster: Obj) -> str:
    if asked := endpoint_of(cluster):
        return asked
    seen = objects(status_of(cluster).get("apiEndpoints"))
    return endpoint_of({"spec": {"controlPlaneEndpoint": seen[0]}}) if seen else ""


def _versions(machines: Iterable[Obj]) -> str:
    found: dict[bool, set[Version]] = {True: set(), False: set()}
    for machine in machines:
        version = parse(_kubelet(machine))
        if version is not None:
            found[runs_control_plane(machine)].add(version)
    of = sorted(found[True] or found[False])
    return " to ".join(dotted(each) for each in dict.fromkeys((of[0], of[-1]))) if of else ""


def _kubelet(machine: Obj) -> str:
    return str(mapping(status_of(machine).get("versions")).get("kubelet") or "")


def _condition(cluster: Obj) -> tuple[str, str]:
    """``Ready``, else why not, and in which words."""
    status = status_of(cluster)
    if is_deleting(cluster):
        return "Deleting", _message(status, ClusterCondition.DELETING)
    paused = mapping(find(status.get("conditions"), ClusterCondition.PAUSED))
    if paused.get("status") == "True":
        return "Paused", ""
    ready = mapping(find(status.get("conditions"), ClusterCondition.READY))
    if ready.get("status") == "True":
        return "Ready", ""
    return str(ready.get("reason") or "NotSeen"), str(ready.get("message") or "")


def _message(status: Mapping[str, Any], type_: str) -> str:
    return str(mapping(find(status.get("conditions"), type_)).get("message") or "")
