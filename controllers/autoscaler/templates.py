"""What a Node of a group looks like before there is one, and one that has joined and is not ready for pods yet.

What kubelets keep from pods: allocatable is capacity less what is reserved for Kubernetes, the system, and eviction.

How a kubelet is set up is its bootstrap's business. What this goes by are the annotations by which machine-controller
is declared the same way, on the MachineDeployment or MachineSet or, above that, on its template. What nobody says is
not reserved: a Node of the group, once there is one, tells it exactly.

Nodes that have joined and can't take their pods yet: a taint of their start, or devices that are not offered yet.

Such a Node counts as it will be. It is waited for as long as for a Machine (``--max-node-provision-time``); after that
it counts as it is, and its group rests. Rule for taints: the Cluster Autoscaler's FAQ ("startup taints"); for devices:
its GPU processor, which calls a Node unready until the resource that its label promises is allocatable.

A real Node of the group is the best picture. Without one: what its provider says of the host (``Shape``), and above
that the annotations ``capacity.cluster-autoscaler.kubernetes.io/…`` of the MachineDeployment or MachineSet; less what
its kubelets keep from pods (``allocatable``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from api import names
from controllers.kernel.conditions import find, parse_time
from controllers.kernel.failure_domains import domains_of
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.ownership import cluster_of
from controllers.kernel.provider_config import Unresolved, resolve
from controllers.kernel.refs import Obj, annotations_of, key_of
from controllers.kernel.view import ShapeRead, ShapeUnknown, View
from controllers.scheduling import binpacking
from controllers.scheduling.demand import Quantities, ShapeError, quantities, whole
from controllers.scheduling.shapes import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Amounts, NodeInfo, Taint
from providers.base.contract import Shape

_SIGNALS = {"memory.available": MEMORY, "nodefs.available": EPHEMERAL_STORAGE}
"""Of eviction thresholds: those that kubelets take off what they offer."""
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)%\Z")


def kubelet_settings(body: Obj) -> dict[str, str]:
    """By annotation."""
    template: Any = (body.get("spec") or {}).get("template")
    inner = template.get("metadata") if isinstance(template, Mapping) else None
    own = annotations_of({"metadata": inner}) if isinstance(inner, Mapping) else {}
    both = {**annotations_of(body), **own}
    return {key: text for key, text in both.items() if key.startswith(names.KUBELET_CONFIG_PREFIX)}


def allocatable(capacity: Quantities, settings: Mapping[str, str]) -> Quantities:
    """What is left for pods. Raises ShapeError naming the annotation that can't be read or leaves nothing."""
    left = dict(capacity)
    for key, part in _reservations(capacity, settings):
        for resource, amount in part.items():
            if resource in left:
                left[resource] -= amount
                if left[resource] <= 0:
                    raise ShapeError(_reserved_field(key), f"nothing is left of {resource} for pods")
    return left


def _reservations(capacity: Quantities, settings: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, Decimal]]]:
    for key in (names.KUBE_RESERVED_ANNOTATION, names.SYSTEM_RESERVED_ANNOTATION):
        pairs = dict(_pairs(key, settings.get(key, ""), "="))
        yield key, quantities(pairs, _reserved_field(key))
    key = names.EVICTION_HARD_ANNOTATION
    for signal, text in _pairs(key, settings.get(key, ""), "<"):
        resource = _SIGNALS.get(signal)
        if resource is not None:
            yield key, {resource: _threshold(text, capacity.get(resource, Decimal(0)), key=key, signal=signal)}


def _threshold(text: str, capacity: Decimal, *, key: str, signal: str) -> Decimal:
    percent = _PERCENT.match(text)
    if percent:
        return capacity * Decimal(percent[1]) / 100
    return quantities({signal: text}, _reserved_field(key))[signal]


def _pairs(key: str, text: str, between: str) -> Iterator[tuple[str, str]]:
    for part in (each.strip() for each in text.split(",")):
        if part:
            name, found, value = part.partition(between)
            if not found or not name or not value:
                raise ShapeError(_reserved_field(key), f"{part!r} is not like name{between}quantity")
            yield name.strip(), value.strip()


def _reserved_field(annotation: str) -> str:
    return f"metadata.annotations[{annotation}]"


_BLOCKING = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Starting:
    """``why``: what it still lacks. ``until``: when it is not waited for any longer."""

    why: str
    until: datetime

    def is_late(self, now: datetime) -> bool:
        return now >= self.until


def is_startup_taint(key: str, more: Collection[str] = ()) -> bool:
    """``more``: keys besides the usual ones; one that ends with ``/`` stands for all keys that begin with it."""
    if key in names.STARTUP_TAINTS or key.startswith(names.STARTUP_TAINT_PREFIXES):
        return True
    return any(key == each or (each.endswith("/") and key.startswith(each)) for each in more)


def without_startup_taints(taints: Iterable[Taint], more: Collection[str] = ()) -> tuple[Taint, ...]:
    return tuple(taint for taint in taints if not is_startup_taint(taint.key, more))


def lacks(node: NodeInfo, promised: Mapping[str, int], more: Collection[str] = ()) -> str:
    """What keeps the Node from taking pods for now; "" if nothing does.

    ``promised``: devices → how many its group promises. A Node that offers fewer than promised, but some, is broken in
    part, and stays so; one that offers none waits for its device plugin.
    """
    for taint in node.taints:
        if taint.effect in _BLOCKING and is_startup_taint(taint.key, more):
            return f"it has the startup taint {taint.key}:{taint.effect}"
    for resource in sorted(promised):
        if promised[resource] and not node.amount(resource):
            return f"{promised[resource]} {resource} are promised and none is offered yet by a device plugin"
    return ""


def started(node: NodeInfo, promised: Mapping[str, int], more: Collection[str] = ()) -> NodeInfo:
    """The Node as it will be. With 2 GPUs promised: offers 0 → 2, offers 1 → 1."""
    offered = dict(node.allocatable)
    missing = {name: amount for name, amount in promised.items() if amount and not offered.get(name)}
    return replace(
        node,
        taints=without_startup_taints(node.taints, more),
        allocatable=tuple(sorted({**offered, **missing}.items())),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup:
    """How Nodes start. ``nodes`` and ``bodies``: Ready Nodes by name, read and as they came from the API.

    ``followed_since``: since when Nodes have been seen to come without an outage. ``taints``: further startup taints.
    """

    nodes: Mapping[str, NodeInfo]
    bodies: Mapping[str, Obj]
    now: datetime
    followed_since: datetime
    taints: Collection[str] = ()

    def of(
        self, machines: Iterable[MachineFacts], promised: Mapping[str, int], patience: timedelta
    ) -> dict[str, Starting]:
        """Those of the Machines' Nodes that can't take pods yet. Each has its time from when it became Ready."""
        found = {}
        for machine in machines:
            node = self.nodes.get(machine.node_name)
            why = lacks(node, promised, self.taints) if node is not None else ""
            if node is not None and why:
                since = max(machine.created, self._ready_since(node.name), self.followed_since)
                found[node.name] = Starting(why, since + patience)
        return found

    def shown(self, name: str, promised: Mapping[str, int]) -> NodeInfo:
        """The Node as it will be."""
        return started(self.nodes[name], promised, self.taints)

    def _ready_since(self, name: str) -> datetime:
        """By the Node's own word, unless its clock is ahead: it would be waited for until ours has caught up."""
        condition = find((self.bodies[name].get("status") or {}).get("conditions"), "Ready") or {}
        given = parse_time(condition.get("lastTransitionTime"))
        return given if given is not None and given <= self.now else datetime.min.replace(tzinfo=UTC)


PREFIX = "template-of-"
MAX_PODS = "110"
"""Pods per Node where nobody says how many."""
_QUANTITIES = {
    names.CAPACITY_CPU_ANNOTATION: CPU,
    names.CAPACITY_MEMORY_ANNOTATION: MEMORY,
    names.CAPACITY_DISK_ANNOTATION: EPHEMERAL_STORAGE,
    names.CAPACITY_MAX_PODS_ANNOTATION: PODS,
}
_ARCHITECTURE, _SYSTEM = "kubernetes.io/arch", "kubernetes.io/os"
_USUAL = {_ARCHITECTURE: "amd64", _SYSTEM: "linux"}
EMPTY: Mapping[str, int] = MappingProxyType({})
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_COMES_AND_GOES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler")
"""Prefixes of taints that tell how one Node fares, not how the next one will be made."""


def from_node(
    node: NodeInfo, group: str, *, promised: Mapping[str, int] = EMPTY, startup_taints: Collection[str] = ()
) -> NodeInfo:
    """A new Node like this one once it has started: without its cordon and its troubles."""
    ready = started(node, promised, startup_taints)
    taints = tuple(taint for taint in ready.taints if not taint.key.startswith(_COMES_AND_GOES))
    return binpacking.template(replace(ready, taints=taints, unschedulable=False), f"{PREFIX}{group}")


def promised_devices(body: Obj, shape: Shape | None = None) -> dict[str, int]:
    """Devices (``nvidia.com/gpu``) → how many the group's annotations or its provider promise on each of its Nodes.

    Nothing where annotations can't be read: ``from_nothing`` names those.
    """
    try:
        return {name: amount for name, amount in capacity_of(body, shape) if _is_device(name)}
    except ShapeError:
        return {}


def _is_device(resource: str) -> bool:
    """Resources of Kubernetes itself come with the kubelet, all others (with a domain) with a device plugin."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


def shape_of(body: Obj, view: View) -> ShapeRead:
    """What the provider says of the hosts that the group's template asks for."""
    template = (body.get("spec") or {}).get("template")
    spec = template.get("spec") if isinstance(template, Mapping) else None
    namespace = key_of(body).namespace
    resolved = resolve(spec if isinstance(spec, Mapping) else {}, namespace, view)
    if isinstance(resolved, Unresolved):
        return ShapeUnknown(f"{resolved.problem.path} {resolved.problem.message}")
    read = view.shape(resolved.config, namespace)
    return _where(read, body, view) if isinstance(read, Shape) else read


def _where(shape: Shape, body: Obj, view: View) -> Shape:
    """With the failure domain to which all Machines of the group go; where there are several, with none."""
    label = shape.failure_domain_label
    pinned = _machine_spec(body).get("failureDomain")
    domains = (pinned,) if pinned and isinstance(pinned, str) else domains_of(body, cluster_of(body, view))
    if not label or not domains:
        return shape
    elsewhere = {key: value for key, value in shape.labels.items() if key != label}
    return replace(shape, labels=elsewhere if len(domains) > 1 else {**elsewhere, label: domains[0]})


def capacity_of(body: Obj, shape: Shape | None = None) -> Amounts:
    """All that a host of the group has. Raises ShapeError naming the field that can't be read."""
    return whole(_capacity(body, shape))


def from_nothing(
    body: Obj, group: str, *, shape: Shape | None = None, startup_taints: Collection[str] = ()
) -> NodeInfo:
    """For a group without Nodes. Raises ShapeError naming the field that is missing or can't be read."""
    annotations = annotations_of(body)
    spec = _machine_spec(body)
    capacity = _capacity(body, shape)
    for key, resource in ((names.CAPACITY_CPU_ANNOTATION, CPU), (names.CAPACITY_MEMORY_ANNOTATION, MEMORY)):
        if not capacity.get(resource):
            raise ShapeError(_field(key), "is needed: the group has no Node and its provider does not tell")
    taints = dict.fromkeys((*_given_taints(shape, spec), *_taints(annotations)))
    node = NodeInfo(
        name=group,
        labels={
            **_USUAL,
            **(shape.labels if shape else {}),
            **_text((spec.get("metadata") or {}).get("labels")),
            **_labels(annotations),
        },
        allocatable=whole(allocatable(capacity, kubelet_settings(body))),
        taints=without_startup_taints(taints, startup_taints),
    )
    return binpacking.template(node, f"{PREFIX}{group}")


def _capacity(body: Obj, shape: Shape | None) -> Quantities:
    annotations = annotations_of(body)
    found = {PODS: MAX_PODS, **(shape.capacity if shape else {})}
    pods = kubelet_settings(body).get(names.KUBELET_MAX_PODS_ANNOTATION)
    if pods:
        quantities({PODS: pods}, _field(names.KUBELET_MAX_PODS_ANNOTATION))
        found[PODS] = pods
    for key, resource in _QUANTITIES.items():
        if key in annotations:
            quantities({resource: annotations[key]}, _field(key))
            found[resource] = annotations[key]
    gpu = annotations.get(names.CAPACITY_GPU_TYPE_ANNOTATION)
    count = annotations.get(names.CAPACITY_GPU_COUNT_ANNOTATION)
    if count is not None:
        if not gpu:
            raise ShapeError(_field(names.CAPACITY_GPU_TYPE_ANNOTATION), "is needed beside the count")
        if not (count.isascii() and count.isdigit()):
            raise ShapeError(_field(names.CAPACITY_GPU_COUNT_ANNOTATION), f"{count!r} is not a whole number")
        found[gpu] = count
    return quantities(found, "metadata.annotations")


def _labels(annotations: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for part in _listed(annotations, names.CAPACITY_LABELS_ANNOTATION):
        key, equals, value = part.partition("=")
        if not key or not equals:
            raise ShapeError(_field(names.CAPACITY_LABELS_ANNOTATION), f"{part!r} is not like key=value")
        found[key] = value
    return found


def _taints(annotations: Mapping[str, str]) -> Iterable[Taint]:
    for part in _listed(annotations, names.CAPACITY_TAINTS_ANNOTATION):
        rest, _, effect = part.rpartition(":")
        key, _, value = rest.partition("=")
        if not key or effect not in _EFFECTS:
            raise ShapeError(_field(names.CAPACITY_TAINTS_ANNOTATION), f"{part!r} is not like key=value:effect")
        yield Taint(key, value, effect)


def _given_taints(shape: Shape | None, spec: Mapping[str, Any]) -> Iterable[Taint]:
    for given in shape.taints if shape else ():
        yield Taint(given.key, given.value, given.effect)
    for each in spec.get("taints") or ():
        yield Taint(str(each.get("key", "")), str(each.get("value") or ""), str(each.get("effect", "")))


def _listed(annotations: Mapping[str, str], key: str) -> list[str]:
    return [part.strip() for part in annotations.get(key, "").split(",") if part.strip()]


def _machine_spec(body: Obj) -> Mapping[str, Any]:
    template = (body.get("spec") or {}).get("template") or {}
    spec: Mapping[str, Any] = template.get("spec") or {}
    return spec


def _text(found: object) -> dict[str, str]:
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, Mapping) else {}


def _field(annotation: str) -> str:
    return f"metadata.annotations[{annotation}]"
