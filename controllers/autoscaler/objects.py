"""Everything of one cluster as it came from the API, for ``read_cluster``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from controllers.autoscaler.buffers import BufferObjects
from controllers.autoscaler.expected_pods import OwnerObjects
from controllers.kernel.refs import Obj
from controllers.scheduling.reading import Reader
from controllers.scheduling.volumes import VolumeBook
from providers.base.contract import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupObjects:
    """What may be a node group, and what belongs to it.

    ``shapes``: group id → what its provider says of its hosts. ``domains``: group id → failure domains in the order in
    which its Machines take them, for groups that take several.
    """

    machine_deployments: Sequence[Obj] = ()
    machine_sets: Sequence[Obj] = ()
    machines: Sequence[Obj] = ()
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    domains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadObjects:
    """What lives in the cluster whose Nodes are counted. ``book``: claims and volumes, None to leave them out."""

    nodes: Sequence[Obj] = ()
    pods: Sequence[Obj] = ()
    daemon_sets: Sequence[Obj] = ()
    budgets: Sequence[Obj] = ()
    namespaces: Sequence[Obj] = ()
    csi_nodes: Sequence[Obj] = ()
    book: VolumeBook | None = None
    pod_groups: Mapping[str, Sequence[Obj]] = field(default_factory=dict)
    """By API, as ``--gangs`` names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """Everything of one cluster, as it came from the API. ``requests`` are ProvisioningRequests.

    ``reader`` may be kept from one reconcile to the next: then only what has changed since is read. It takes bodies for
    frozen, as the cache's are.
    """

    groups: GroupObjects = GroupObjects()
    workload: WorkloadObjects = WorkloadObjects()
    requests: Sequence[Obj] = ()
    pod_templates: Sequence[Obj] = ()
    buffers: BufferObjects = field(default_factory=BufferObjects)
    quotas: Sequence[Obj] = ()
    """CapacityQuotas."""
    owners: OwnerObjects = field(default_factory=OwnerObjects)
    """Of pods that may be expected; none where pods are not decided on before they are there."""
    reader: Reader = field(default_factory=Reader)
