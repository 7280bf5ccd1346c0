"""Objects → Observed: Nodes that take pods, pods that are on them, pods that wait, and what was said of those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from controllers.binder.decisions import Reported
from controllers.kernel.conditions import find, is_true
from controllers.kernel.refs import POD, Obj, Ref, is_deleting, labels_of, ref_of, spec_of, uid_of
from controllers.scheduling.demand import ShapeError
from controllers.scheduling.reading import Reader, read_node
from controllers.scheduling.shapes import NodeInfo, PodInfo, Taint

DEFAULT_SCHEDULER = "default-scheduler"
NOT_READY = Taint("node.kubernetes.io/not-ready", "", "NoSchedule")
"""What the node lifecycle controller, which does not run there either, would put on a Node that is not Ready."""
_FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Objects:
    """Everything of one cluster, as it came from the API. ``bound``: uid → Node of pods that were bound just now."""

    nodes: Iterable[Obj] = ()
    pods: Iterable[Obj] = ()
    namespaces: Iterable[Obj] = ()
    bound: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Observed:
    """``pending`` in the order in which they get their turn. ``unreadable``: pods that wait, and what is wrong."""

    nodes: tuple[NodeInfo, ...] = ()
    pods: tuple[PodInfo, ...] = ()
    pending: tuple[PodInfo, ...] = ()
    unreadable: tuple[tuple[Ref, str], ...] = ()
    reported: Mapping[str, Reported] = field(default_factory=dict)
    """By uid."""
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def waits(pod: Obj) -> bool:
    """Whether it looks for a Node: not bound, not gated, not going, and not another scheduler's."""
    spec = spec_of(pod)
    if spec.get("nodeName") or spec.get("schedulingGates") or is_deleting(pod) or _is_finished(pod):
        return False
    return spec.get("schedulerName") in (None, "", DEFAULT_SCHEDULER)


def observe(objects: Objects, reader: Reader) -> Observed:
    """``reader`` may be kept from one look to the next."""
    seated: list[PodInfo] = []
    pending: list[PodInfo] = []
    unreadable: list[tuple[Ref, str]] = []
    reported: dict[str, Reported] = {}
    unresolved: set[str] = set()
    for body in objects.pods:
        uid = uid_of(body)
        on = objects.bound.get(uid) or str(spec_of(body).get("nodeName") or "")
        if _is_finished(body) or not (on or waits(body)):
            continue
        try:
            shape = reader.pod(body)
        except ShapeError as error:
            unresolved.add(on)
            if not on:
                unreadable.append((ref_of(POD, body), str(error)))
        else:
            (seated if on else pending).append(shape if shape.node == on else shape._replace(node=on))
        if not on:
            reported[uid] = _reported(body)
    pending.sort(key=lambda pod: (-pod.kind.priority, pod.created, pod.namespace, pod.name))
    return Observed(
        tuple(sorted(_nodes(objects.nodes, unresolved), key=lambda node: node.name)),
        tuple(seated),
        tuple(pending),
        tuple(unreadable),
        reported,
        {namespace["metadata"]["name"]: labels_of(namespace) for namespace in objects.namespaces},
    )


def _nodes(nodes: Iterable[Obj], unresolved: set[str]) -> Iterable[NodeInfo]:
    """A Node with a pod that can't be read takes none: nobody knows its room."""
    for body in nodes:
        if is_deleting(body) or body["metadata"]["name"] in unresolved:
            continue
        try:
            shape = read_node(body)
        except ShapeError:
            continue
        ready = is_true((body.get("status") or {}).get("conditions"), "Ready")
        yield shape if ready else replace(shape, taints=(*shape.taints, NOT_READY))


def _reported(pod: Obj) -> Reported:
    found = find((pod.get("status") or {}).get("conditions"), "PodScheduled") or {}
    return (
        Reported(found.get("reason") or "", found.get("message") or "")
        if found.get("status") == "False"
        else Reported()
    )


def _is_finished(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") in _FINISHED
