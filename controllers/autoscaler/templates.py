"""What a Node of a group looks like before there is one.

A real Node of the group is the best picture. Without one: what its provider says of the host (``Shape``), and above
that the annotations ``capacity.cluster-autoscaler.kubernetes.io/…`` of the MachineDeployment or MachineSet; less what
its kubelets keep from pods (``reserved``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from api import names
from controllers.autoscaler import reserved, starting
from controllers.kernel.failure_domains import domains_of
from controllers.kernel.pausing import cluster_of
from controllers.kernel.provider_config import Unresolved, resolve
from controllers.kernel.refs import Obj, annotations_of, key_of
from controllers.kernel.view import ShapeRead, ShapeUnknown, View
from controllers.scheduling import binpacking
from controllers.scheduling.amounts import Quantities, ShapeError, quantities, whole
from controllers.scheduling.shapes import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Amounts, NodeInfo, Taint
from providers.base.contract import Shape

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
    ready = starting.started(node, promised, startup_taints)
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
        allocatable=whole(reserved.allocatable(capacity, reserved.kubelet_settings(body))),
        taints=starting.without_startup_taints(taints, startup_taints),
    )
    return binpacking.template(node, f"{PREFIX}{group}")


def _capacity(body: Obj, shape: Shape | None) -> Quantities:
    annotations = annotations_of(body)
    found = {PODS: MAX_PODS, **(shape.capacity if shape else {})}
    pods = reserved.kubelet_settings(body).get(names.KUBELET_MAX_PODS_ANNOTATION)
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
