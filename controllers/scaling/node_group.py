"""A node group: a MachineDeployment or MachineSet with bounds of its size, and how such groups are found.

A node group: a MachineDeployment or MachineSet with the sizes between which it may be scaled, and its Machines.

Node groups: MachineDeployments and stand-alone MachineSets that say between which sizes they may be scaled.

Each object is judged for itself: a faulty annotation on one says so for that one. (The Cluster Autoscaler loses all
groups for one malformed object.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from api import names
from api.autoscaling import BoundsError, GroupOptions, node_group_bounds, node_group_options
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.ownership import cluster_name_of, controller_of
from controllers.kernel.refs import (
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    Intent,
    Key,
    Kind,
    Obj,
    Ref,
    annotations_of,
    intent_of,
    key_of,
    labels_of,
    ref_of,
    resource_version_of,
    spec_of,
)
from controllers.scaling.resize import Scaler, is_marked_by, is_marked_by_another

_ANY_SIZE = (1 << 63) - 1
"""More than ``spec.replicas`` can hold (an int32): the API server refuses such a size and says so."""


@dataclass(frozen=True, slots=True)
class Bounds:
    min_size: int
    max_size: int


UNBOUNDED = Bounds(0, _ANY_SIZE)


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """``replicas`` is what is asked for now; ``resource_version`` is that of the object which says so.

    ``name``: what a provider outside calls the group; "" for groups of our own API. ``consolidation``: id of the
    consolidation for which it has a Node more now, as its annotation says. ``intent``: of that object
    (``refs.intent_of``).
    """

    ref: Ref
    bounds: Bounds
    replicas: int
    resource_version: str = ""
    name: str = ""
    consolidation: str = ""
    intent: Intent = ()

    @property
    def id(self) -> str:
        """As the Cluster Autoscaler names it."""
        return self.name or f"{self.ref.kind.name}/{self.ref.key}"

    @property
    def headroom(self) -> int:
        """Nodes that may be added."""
        return max(0, self.bounds.max_size - self.replicas)

    @property
    def spare(self) -> int:
        """Nodes that may go."""
        return max(0, self.replicas - self.bounds.min_size)

    def clamped(self, size: int) -> int:
        """``size``, or the nearest to it that the group may be given.

        A group that a person has scaled beyond its bounds is not moved further out, and not forced back in.
        With 3 replicas and bounds 2 to 5: 9 → 5, 0 → 2. With 8 replicas and the same bounds: 9 → 8, 7 → 7, 0 → 2.
        """
        low, high = min(self.bounds.min_size, self.replicas), max(self.bounds.max_size, self.replicas)
        return max(0, low, min(size, high))


class Obstacle(StrEnum):
    """Why a scaler can't say which Machines of a group go."""

    SURPLUS = "Surplus"
    """The set has yet to delete Machines for an earlier size: a mark more, and it might take that one instead."""
    ROLLOUT = "Rollout"
    """Machines of several revisions are there: the rollout chooses."""
    MARKED_BY_ANOTHER = "MarkedByAnother"
    """A Machine that is marked already would go before the chosen one, or in its place."""


def is_rolling(machine_sets: Iterable[Obj]) -> bool:
    """Whether several MachineSets of a group have, or are to have, Machines."""
    return sum(1 for machine_set in machine_sets if _has_machines(machine_set)) > 1


def _has_machines(machine_set: Obj) -> bool:
    counts = ((machine_set.get(part) or {}).get("replicas") for part in ("spec", "status"))
    return any(isinstance(count, int) and count > 0 for count in counts)


@dataclass(frozen=True, slots=True)
class ScaledGroup:
    """``machines``: all that count for its size. ``rolling``: Machines of several revisions are there."""

    group: NodeGroup
    machines: tuple[MachineFacts, ...] = ()
    rolling: bool = False

    @property
    def id(self) -> str:
        return self.group.id

    @property
    def live(self) -> tuple[MachineFacts, ...]:
        """Machines that are not being deleted."""
        return tuple(machine for machine in self.machines if not machine.deleting)

    @property
    def balance(self) -> int:
        """Machines more than asked for; below zero: as many are still to be made. 3 live, 5 replicas: -2."""
        return sum(1 for machine in self.machines if not machine.deleting) - self.group.replicas

    @property
    def surplus(self) -> int:
        """Machines that are more than is asked for: the set has yet to let them go."""
        return max(0, self.balance)

    @property
    def unmade(self) -> int:
        """Machines that are asked for and not made yet."""
        return max(0, -self.balance)

    def marked_by(self, *scalers: Scaler) -> tuple[MachineFacts, ...]:
        """Live Machines with a mark of theirs."""
        return tuple(machine for machine in self.live if is_marked_by(machine, *scalers))

    def marked_by_another(self, *scalers: Scaler, besides: Collection[Key] = ()) -> tuple[MachineFacts, ...]:
        """Live Machines that a person or another scaler has marked: they go before any that is chosen now.

        ``besides``: Machines that are chosen themselves.
        """
        found = (machine for machine in self.live if is_marked_by_another(machine, *scalers))
        return tuple(machine for machine in found if machine.key not in besides)

    def obstacles(self, *scalers: Scaler, besides: Collection[Key] = ()) -> dict[Obstacle, str]:
        """All that keeps ``scalers`` from choosing which Machines go, each with a sentence; empty: nothing does."""
        found: dict[Obstacle, str] = {}
        if self.surplus:
            found[Obstacle.SURPLUS] = f"{self.id} has yet to let {self.surplus} of its Machines go"
        if self.rolling:
            found[Obstacle.ROLLOUT] = f"a rollout of {self.id} is under way"
        if others := self.marked_by_another(*scalers, besides=besides):
            found[Obstacle.MARKED_BY_ANOTHER] = f"Machine {others[0].key.name} of {self.id} is marked to go first"
        return found


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
        intent=intent_of(body),
    )


def _belongs_to_deployment(body: Obj) -> bool:
    owner = controller_of(body)
    return owner is not None and owner.get("kind") == _PARENT
