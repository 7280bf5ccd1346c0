"""Groups that are not there and that the autoscaler could make: of a MachineClass that is offered, as pods ask for it.

The Cluster Autoscaler calls it node auto-provisioning (``NewNodeGroup``, ``Create``, ``Delete``, ``Autoprovisioned``).
A candidate is a group like any other for whoever asks which one helps; its MachineDeployment is made in the same step
in which groups get their sizes. Its name follows from all that it is made of, so that asking twice makes one.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from api import limits, names
from api.autoprovision import Offer, class_of, mark_of
from api.selectors import Operator, Requirement
from controllers.autoscaler import templates
from controllers.autoscaler.cluster_state import ClusterState, GroupState, Making, OwnGroups
from controllers.kernel.actions import Create, Delete
from controllers.kernel.conditions import counted
from controllers.kernel.memory import digest
from controllers.kernel.refs import MACHINE_DEPLOYMENT, Key, Obj, Ref, spec_of
from controllers.scaling.creation import make, unmake
from controllers.scaling.node_group import Bounds, NodeGroup
from controllers.scheduling.demand import ShapeError
from controllers.scheduling.shapes import Demand, PodKind
from providers.base.contract import Shape

POOL_LABEL = names.AUTOPROVISIONED_LABEL
_DIGEST = 10
_MOST_VARIANTS = 50
"""Candidates of one class in one look: pods of more kinds than that are helped in the next ones."""
_NO_SCHEDULE = "NoSchedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedClass:
    """``shape``: what its provider says of a host; None: ``problem`` says why. ``domains``: failure domains among which
    a group may choose one. ``labels``: of the class itself, by which its groups are found.
    """

    key: Key
    offer: Offer
    shape: Shape | None = None
    problem: str = ""
    domains: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Variant:
    """``labels`` that pods ask for; ``domain`` "": wherever its MachineSet puts the Machines."""

    labels: tuple[tuple[str, str], ...] = ()
    domain: str = ""


def with_candidates(
    cluster: ClusterState, offered: Iterable[OfferedClass], *, made: Mapping[str, Key], taken: Container[Key]
) -> ClusterState:
    """``made``: uid → MachineClass of groups that were made of one; ``taken``: keys of all MachineDeployments."""
    classes = tuple(offered)
    kinds = [pod.kind for pod in cluster.workload.pending]
    kinds += [shape.kind for request in cluster.requests for shape, _ in request.left]
    there = [pod.kind for pod in cluster.workload.pods] if cluster.options.consolidation.enabled else []
    groups = tuple(
        replace(state, making=Making(made[state.group.ref.uid])) if state.group.ref.uid in made else state
        for state in cluster.groups
    )
    return replace(
        cluster,
        groups=groups,
        own=OwnGroups(
            candidates=_asked_for(kinds, classes, cluster=cluster, taken=taken),
            in_place=_asked_for(there, classes, cluster=cluster, taken=taken),
            class_limits={each.key: each.offer.max_nodes for each in classes},
        ),
    )


def _asked_for(
    kinds: Iterable[PodKind], classes: Iterable[OfferedClass], *, cluster: ClusterState, taken: Container[Key]
) -> tuple[GroupState, ...]:
    """Groups that could be made and are not there, as pods of these kinds ask for them."""
    demands = list(dict.fromkeys(kind.demand for kind in dict.fromkeys(kinds)))
    found = (_state(each, variant, cluster) for each in classes for variant in variants(each, demands))
    return tuple(state for state in found if state.group.ref.key not in taken)


def variants(offered: OfferedClass, demands: Iterable[Demand]) -> list[Variant]:
    """The class as it is, and as each kind of pods asks for it; none where no pod waits."""
    found: dict[Variant, None] = {}
    label = offered.shape.failure_domain_label if offered.shape is not None else ""
    for demand in demands:
        labels = tuple(sorted(_asked(demand, offered.offer.keys).items()))
        found.setdefault(Variant(labels))
        if len(offered.domains) > 1 and label and asks_for(demand, label):
            found |= {Variant(labels, domain): None for domain in offered.domains}
    return list(found)[:_MOST_VARIANTS]


def asks_for(demand: Demand, label: str) -> bool:
    """Whether the label of a Node decides if such a pod may go there."""
    keys = {term.topology_key for term in (*demand.affinity, *demand.anti_affinity)}
    keys |= {spread.topology_key for spread in demand.spread}
    keys |= {requirement.key for requirement in _requirements(demand)}
    for volume in demand.volumes:
        keys |= {each.key for each in volume.zones}
        keys |= {each.key for term in volume.terms or () for each in term.labels}
    return label in keys


def _requirements(demand: Demand) -> Iterator[Requirement]:
    yield from demand.node_selector
    for term in demand.node_terms or ():
        yield from term.labels


def _asked(demand: Demand, keys: Iterable[str]) -> dict[str, str]:
    """Values of ``keys`` that the pod asks for; of several the first one does."""
    wanted = frozenset(keys)
    found: dict[str, str] = {}
    for requirement in _requirements(demand):
        if requirement.key in wanted and requirement.operator == Operator.IN and requirement.values:
            found.setdefault(requirement.key, requirement.values[0])
    return found


def body_of(offered: OfferedClass, variant: Variant = Variant()) -> dict[str, Any]:
    """The MachineDeployment, without Machines."""
    key, offer = offered.key, offered.offer
    name = _name(offered, variant)
    outer: Mapping[str, Any] = offer.template.get("metadata") or {}
    spec = spec_of(offer.template)
    inner: Mapping[str, Any] = spec.get("metadata") or {}
    taints = [{"key": key_, "value": value, "effect": _NO_SCHEDULE} for key_, value in variant.labels
              if key_ in offer.taints]  # fmt: skip
    labels = {**(outer.get("labels") or {}), POOL_LABEL: name}
    own = {each: text for each, text in labels.items() if each == names.CLUSTER_NAME_LABEL} | dict(offered.labels)
    machine: dict[str, Any] = {
        **spec,
        "metadata": {**inner, "labels": {**(inner.get("labels") or {}), **dict(variant.labels)}},
        "providerConfig": {"valueFrom": {"machineClass": {"name": key.name}}},
        **({"taints": [*(spec.get("taints") or ()), *taints]} if taints or spec.get("taints") else {}),
        **({"failureDomain": variant.domain} if variant.domain else {}),
    }
    return {
        "apiVersion": names.API_VERSION,
        "kind": MACHINE_DEPLOYMENT.name,
        "metadata": {
            "namespace": key.namespace,
            "name": name,
            **({"labels": own} if own else {}),
            "annotations": {
                names.AUTOSCALER_MIN_ANNOTATION: "0",
                names.AUTOSCALER_MAX_ANNOTATION: str(offer.max_nodes),
                names.AUTOPROVISIONED_ANNOTATION: mark_of(key.name, name),
            },
        },
        "spec": {
            "selector": {"matchLabels": {POOL_LABEL: name}},
            "template": {"metadata": {**outer, "labels": labels}, "spec": machine},
        },
    }


def _name(offered: OfferedClass, variant: Variant) -> str:
    """At most as long as a MachineDeployment's may be; another template is another group."""
    what = [offered.key.name, list(map(list, variant.labels)), variant.domain, offered.offer.template,
            list(offered.offer.taints)]  # fmt: skip
    stem = offered.key.name[: limits.MAX_MACHINEDEPLOYMENT_NAME - _DIGEST - 1].rstrip("-.")
    return f"{stem}-{digest(what, _DIGEST)}"


def _state(offered: OfferedClass, variant: Variant, cluster: ClusterState) -> GroupState:
    body = body_of(offered, variant)
    key = Key(offered.key.namespace, body["metadata"]["name"])
    group = NodeGroup(ref=Ref(MACHINE_DEPLOYMENT, key), bounds=Bounds(0, offered.offer.max_nodes), replicas=0)
    making = Making(offered.key, body)
    state = GroupState(group=group, making=making, patience=cluster.options.growth.provision_time)
    if offered.shape is None:
        return replace(state, problem=offered.problem)
    try:
        shape = _at(offered.shape, variant.domain, offered.domains)
        template = templates.from_nothing(
            body, group.id, shape=shape, startup_taints=cluster.options.growth.startup_taints
        )
    except ShapeError as error:
        return replace(state, problem=str(error))
    promised = templates.promised_devices(body, shape)
    return replace(state, template=template, promised=promised)


def _at(shape: Shape, domain: str, domains: tuple[str, ...]) -> Shape:
    """With the label of its failure domain, where that is known."""
    label = shape.failure_domain_label
    where = domain or (domains[0] if len(domains) == 1 else "")
    if not label or not (where or domains):
        return shape
    elsewhere = {key: value for key, value in shape.labels.items() if key != label}
    return replace(shape, labels={**elsewhere, label: where} if where else elsewhere)


def to_create(cluster: ClusterState, added: Mapping[str, int]) -> list[Create]:
    """The MachineDeployments of candidates with their first Nodes."""
    found = []
    for state in cluster.own.candidates:
        nodes, making = added.get(state.id, 0), state.making
        if nodes > 0 and making is not None and making.body is not None:
            why = f"{counted(nodes, 'Node')} of MachineClass {making.machine_class} for pods that find no place"
            found.append(make(state.group, making.body, nodes, why=why))
    return found


def to_delete(cluster: ClusterState, changes: Mapping[str, int]) -> list[Delete]:
    """Groups that the autoscaler made and that have no Machine any more. Guarded: one that changed meanwhile stays.

    A person who wants to keep one gives it a minimum, or takes the annotation that says who made it away.
    """
    found = []
    for state in cluster.groups:
        group, making = state.group, state.making
        empty = not group.replicas and not state.machines and not changes.get(state.id, 0)
        if making is not None and empty and not group.bounds.min_size:
            why = f"it was made by the autoscaler of MachineClass {making.machine_class}, and has no Machine any more"
            found.append(unmake(group, why=why))
    return found


def made_of(body: Obj) -> Key | None:
    """The MachineClass of a MachineDeployment that the autoscaler made; None if a person made it."""
    meta = body["metadata"]
    annotations = meta.get("annotations")
    name = class_of(meta["name"], annotations) if isinstance(annotations, Mapping) else ""
    return Key(meta.get("namespace") or "", name) if name else None
