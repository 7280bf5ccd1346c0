"""Node groups: MachineDeployments and stand-alone MachineSets that say between which sizes they may be scaled.

Each object is judged for itself: a faulty annotation on one says so for that one. (The Cluster Autoscaler loses all
groups for one malformed object.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from api import names
from api.autoscaling import BoundsError, GroupOptions, node_group_bounds, node_group_options
from controllers.kernel.ownership import controller_of
from controllers.kernel.pausing import cluster_name_of
from controllers.kernel.refs import (
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    Key,
    Kind,
    Obj,
    Ref,
    annotations_of,
    key_of,
    labels_of,
    ref_of,
    resource_version_of,
    spec_of,
)
from controllers.scaling.node_group import Bounds, NodeGroup

_PARENT = "MachineDeployment"


@dataclass(frozen=True, slots=True)
class BadGroup:
    """``field`` names the annotation, or the field below the object."""

    ref: Ref
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Filter:
    """Objects of ``namespace`` and ``cluster`` ("": any) with all of ``labels``."""

    namespace: str = ""
    cluster: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    def lets(self, body: Obj) -> bool:
        labels = labels_of(body)
        return (
            self.namespace in ("", key_of(body).namespace)
            and self.cluster in ("", cluster_name_of(body))
            and all(labels.get(key) == value for key, value in self.labels)
        )


@dataclass(frozen=True, slots=True)
class Discovery:
    """``given``: bounds that count whatever annotations say. Annotated objects are groups if one of ``filters`` lets
    them, or if there is none.
    """

    given: Mapping[Key, Bounds] = field(default_factory=dict)
    filters: tuple[Filter, ...] = ()

    def bounds(self, body: Obj) -> Bounds | None:
        """None: not a group. Raises BoundsError."""
        found = self.given.get(key_of(body))
        if found is not None:
            return found
        if self.filters and not any(each.lets(body) for each in self.filters):
            return None
        return bounds_of(annotations_of(body))


def discover(
    machine_deployments: Iterable[Obj], machine_sets: Iterable[Obj], *, discovery: Discovery | None = None
) -> tuple[tuple[NodeGroup, ...], tuple[BadGroup, ...]]:
    """Groups in the order of their ids, and what is wrong with the others. Objects without bounds are neither."""
    looked_for = discovery or Discovery()
    groups: list[NodeGroup] = []
    bad: list[BadGroup] = []
    for kind, found in ((MACHINE_DEPLOYMENT, machine_deployments), (MACHINE_SET, machine_sets)):
        for body in found:
            judged = _judge(kind, body, discovery=looked_for)
            if isinstance(judged, NodeGroup):
                groups.append(judged)
            elif judged is not None:
                bad.append(judged)
    return tuple(sorted(groups, key=lambda group: group.id)), tuple(bad)


def with_options(
    groups: Iterable[NodeGroup], bodies: Mapping[str, Obj]
) -> tuple[tuple[NodeGroup, ...], dict[str, GroupOptions], tuple[BadGroup, ...]]:
    """Groups with what each wants for itself, by id; those whose options can't be met are left out, with why.

    ``bodies`` by uid. A group is left alone rather than shrunk by rules that are not the ones it asked for.
    """
    options: dict[str, GroupOptions] = {}
    bad = []
    for group in groups:
        found, faults = node_group_options(annotations_of(bodies[group.ref.uid]))
        if faults:
            bad.append(
                BadGroup(ref=group.ref, field=f"metadata.annotations[{faults[0].field}]", message=faults[0].message)
            )
        elif found.zero_or_max and 0 < group.bounds.min_size < group.bounds.max_size:
            field = f"{names.AUTOSCALING_OPTIONS_PREFIX}zeroormaxnodescaling"
            least, most = group.bounds.min_size, group.bounds.max_size
            why = f"a group that has no Nodes or {most} can't have a minimum of {least}"
            bad.append(BadGroup(ref=group.ref, field=f"metadata.annotations[{field}]", message=why))
        else:
            options[group.id] = found
    return tuple(group for group in groups if group.id in options), options, tuple(bad)


def bounds_of(annotations: Mapping[str, str]) -> Bounds | None:
    """None: not a group (no bounds, or a maximum of 0). Raises BoundsError naming the annotation."""
    for keys in names.AUTOSCALER_BOUNDS:
        bounds = node_group_bounds(annotations, keys)
        if bounds is not None:
            return Bounds(*bounds) if bounds[1] else None
    return None


def _judge(kind: Kind, body: Obj, *, discovery: Discovery) -> NodeGroup | BadGroup | None:
    if kind is MACHINE_SET and _belongs_to_deployment(body):
        return None
    ref = ref_of(kind, body)
    try:
        bounds = discovery.bounds(body)
    except BoundsError as error:
        return BadGroup(ref=ref, field=f"metadata.annotations[{error.field}]", message=error.message)
    if bounds is None or body["metadata"].get("deletionTimestamp"):
        return None
    replicas: Any = spec_of(body).get("replicas", 1)
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        return BadGroup(ref=ref, field="spec.replicas", message=f"{replicas!r} is no number of replicas")
    return NodeGroup(
        ref=ref,
        bounds=bounds,
        replicas=replicas,
        resource_version=resource_version_of(body),
        consolidation=annotations_of(body).get(names.CONSOLIDATION_ANNOTATION, ""),
    )


def _belongs_to_deployment(body: Obj) -> bool:
    owner = controller_of(body)
    return owner is not None and owner.get("kind") == _PARENT
