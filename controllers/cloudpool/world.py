"""The cluster that a pool's machines are Nodes of, read for one decision. What can't be read stays, and is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from api import names
from controllers.cloudpool.record import drained_by_another
from controllers.kernel.conditions import is_true
from controllers.kernel.refs import Obj, annotations_of, is_deleting, key_of, labels_of, spec_of
from controllers.scheduling.demand import ShapeError
from controllers.scheduling.drainability import Budget, read_budget
from controllers.scheduling.reading import Reader, read_node
from controllers.scheduling.shapes import NodeInfo, PodInfo
from controllers.scheduling.volumes import VolumeBook

CONTROL_PLANE_LABELS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_API_SERVER = "kube-apiserver"
_FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Objects:
    """Everything of one cluster, as it came from the API."""

    nodes: Sequence[Obj] = ()
    pods: Sequence[Obj] = ()
    budgets: Sequence[Obj] = ()
    namespaces: Sequence[Obj] = ()
    csi_nodes: Sequence[Obj] = ()
    claims: Sequence[Obj] = ()
    volumes: Sequence[Obj] = ()
    storage_classes: Sequence[Obj] = ()


@dataclass(frozen=True, slots=True)
class World:
    """``nodes`` by name; those that take no pods of ours are unschedulable in ``shapes``.

    ``staying``: Node → why it can't go, whatever runs on it. ``unready``: Nodes whose kubelet does not report Ready.
    """

    now: datetime
    nodes: Mapping[str, Obj] = field(default_factory=dict)
    shapes: tuple[NodeInfo, ...] = ()
    pods: tuple[PodInfo, ...] = ()
    budgets: tuple[Budget, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    staying: Mapping[str, str] = field(default_factory=dict)
    unready: frozenset[str] = frozenset()


def observe(objects: Objects, now: datetime) -> World:
    reader = Reader(_book(objects))
    csi_nodes = {node["metadata"]["name"]: node for node in objects.csi_nodes}
    nodes = {str(node["metadata"]["name"]): node for node in objects.nodes}
    pods, unresolved = _pods(objects.pods, reader)
    masters = _control_plane(objects)
    staying = {name: why for name, node in nodes.items() if (why := masters.get(name) or _protection(node))}
    shapes = []
    for name, node in sorted(nodes.items()):
        try:
            shape = read_node(node, csi_nodes.get(name))
        except ShapeError as error:
            staying[name] = f"it can't be read: {error}"
            continue
        takes_pods = name not in masters and name not in unresolved and is_ready(node)
        shapes.append(shape if takes_pods else replace(shape, unschedulable=True))
    staying |= {name: why for name, why in unresolved.items() if name not in staying}
    return World(
        now,
        nodes,
        tuple(shapes),
        pods,
        tuple(read_budget(budget) for budget in objects.budgets),
        {space["metadata"]["name"]: labels_of(space) for space in objects.namespaces},
        staying,
        frozenset(name for name, node in nodes.items() if not is_ready(node)),
    )


def is_ready(node: Obj) -> bool:
    return not is_deleting(node) and is_true((node.get("status") or {}).get("conditions"), "Ready")


def _pods(bodies: Sequence[Obj], reader: Reader) -> tuple[tuple[PodInfo, ...], dict[str, str]]:
    """Those that hold room on a Node, or will by nomination; and Nodes with one that can't be read."""
    seated: list[PodInfo] = []
    unresolved: dict[str, str] = {}
    for body in bodies:
        status, spec = body.get("status") or {}, spec_of(body)
        node = str(spec.get("nodeName") or status.get("nominatedNodeName") or "")
        if not node or status.get("phase") in _FINISHED:
            continue
        try:
            seated.append(reader.pod(body)._replace(node=node))
        except ShapeError as error:
            unresolved[node] = f"its pod {key_of(body)} can't be read: {error}"
    return tuple(seated), unresolved


def _control_plane(objects: Objects) -> dict[str, str]:
    """By its labels, or by the API server that runs there."""
    found = {}
    for node in objects.nodes:
        label = next((label for label in CONTROL_PLANE_LABELS if label in labels_of(node)), "")
        if label:
            found[str(node["metadata"]["name"])] = f"it is a Node of the control plane ({label})"
    for pod in objects.pods:
        key, host = key_of(pod), str(spec_of(pod).get("nodeName") or "")
        is_server = labels_of(pod).get("component") == _API_SERVER or key.name == f"{_API_SERVER}-{host}"
        if host and key.namespace == "kube-system" and is_server:
            found.setdefault(host, f"it is a Node of the control plane (pod {key})")
    return found


def _protection(node: Obj) -> str:
    if annotations_of(node).get(names.SCALE_DOWN_DISABLED_ANNOTATION) == "true":
        return f"it is protected from scale-down via the {names.SCALE_DOWN_DISABLED_ANNOTATION} annotation"
    if is_deleting(node):
        return "it is being deleted"
    other = drained_by_another(node)
    return f"somebody else drains it (for {other})" if other else ""


def _book(objects: Objects) -> VolumeBook:
    claims = {(key_of(claim).namespace, key_of(claim).name): claim for claim in objects.claims}
    volumes = {volume["metadata"]["name"]: volume for volume in objects.volumes}
    return VolumeBook(claims, volumes, {found["metadata"]["name"]: found for found in objects.storage_classes})
