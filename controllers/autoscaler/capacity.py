"""What is asked for beside pods, and what bounds it: ProvisioningRequests, CapacityBuffers and CapacityQuotas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controllers.autoscaler import templates
from controllers.autoscaler.buffers import Buffer, read_buffers
from controllers.autoscaler.objects import Objects
from controllers.autoscaler.quotas import Quota, capacity_of, read_quotas
from controllers.autoscaler.requests import Request
from controllers.kernel.refs import Obj
from controllers.scheduling.demand import ShapeError
from controllers.scheduling.shapes import Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """``requests`` and ``buffers`` in their order. ``of_groups``: group id → what a Node of it is said to have; only
    with quotas.
    """

    requests: tuple[Request, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    quotas: tuple[Quota, ...] = ()
    of_groups: Mapping[str, Amounts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupNode:
    """``body`` of a group, and a Ready Node of it; None: it has none."""

    group: str
    body: Obj
    node: Obj | None


def read_capacity(objects: Objects, groups: Iterable[GroupNode], *, requests: tuple[Request, ...]) -> Capacity:
    buffers = read_buffers(objects.buffers, objects.reader)
    quotas = read_quotas(objects.quotas, objects.workload.nodes)
    of_groups = {each.group: found for each in groups if (found := _of_group(each, objects))} if quotas else {}
    return Capacity(requests=requests, buffers=buffers, quotas=quotas, of_groups=of_groups)


def _of_group(each: GroupNode, objects: Objects) -> Amounts:
    """A Node tells it best; without one annotations and the provider. Nothing where those can't be read."""
    if each.node is not None:
        return capacity_of(each.node)
    try:
        return templates.capacity_of(each.body, objects.groups.shapes.get(each.group))
    except ShapeError:
        return ()
