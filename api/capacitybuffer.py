"""CapacityBuffer: room that is kept free for pods to come. Its fields are the Cluster Autoscaler's."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from api import capacity_names, limits, provisioning_names
from api.meta import AnyQuantity, Conditions, Count, Generation, ObjectMeta
from api.model import Model, Rule, Schema
from api.resource import AGE, Column, Resource

_Name = Annotated[str, Field(min_length=1, max_length=limits.MAX_OBJECT_NAME)]


class TemplateOfChunks(Model):
    """A PodTemplate of the same namespace."""

    name: _Name
    """Name of the PodTemplate."""


class ScalableReference(Model):
    """A workload of the same namespace, whose pods are the shape of a chunk."""

    api_group: Annotated[str, Field(max_length=limits.MAX_OBJECT_NAME)] | None = None
    """Its group: ``apps``."""
    kind: Annotated[str, Field(min_length=1, max_length=63)]
    """``Deployment``, ``StatefulSet`` or ``ReplicaSet``; others are refused by a condition."""
    name: _Name
    """Name of the workload."""


class CapacityBufferSpec(Model):
    """How much room is kept free. One chunk is the room of one pod."""

    __rules__: ClassVar = (
        Rule(
            "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
            "podTemplateRef needs replicas or limits beside it",
        ),
        Rule(
            "has(self.podTemplateRef) != has(self.scalableRef)",
            "exactly one of podTemplateRef and scalableRef is given",
        ),
    )

    provisioning_strategy: Annotated[str, Field(max_length=253)] = capacity_names.ACTIVE_CAPACITY
    """How the room is held: ``buffer.x-k8s.io/active-capacity``, on Nodes that run. Other strategies are refused by a
    condition.
    """
    pod_template_ref: TemplateOfChunks | None = None
    """PodTemplate that is the shape of a chunk."""
    scalable_ref: ScalableReference | None = None
    """Workload whose pods are the shape of a chunk."""
    replicas: Count | None = None
    """Chunks. Beside ``percentage`` the larger number counts."""
    percentage: Count | None = None
    """Chunks as a share of the replicas of ``scalableRef``, rounded up: 20 of 12 replicas are 3 chunks."""
    limits: Annotated[dict[str, AnyQuantity], Field(max_length=capacity_names.MAX_QUOTA_RESOURCES)] | None = None
    """What all chunks together may request at most. Alone: as many chunks as fit into it."""


class CapacityBufferStatus(Model):
    """What the autoscaler makes of the buffer."""

    provisioning_strategy: Annotated[str, Field(max_length=253)] | None = None
    """The strategy that is followed."""
    pod_template_ref: TemplateOfChunks | None = None
    """PodTemplate that was read; unset for a workload."""
    pod_template_generation: Annotated[Generation, Schema({})] | None = None
    """Its generation as it was read."""
    replicas: Count | None = None
    """Chunks for which room is held or asked for."""
    conditions: Conditions | None = None
    """ReadyForProvisioning, Provisioning, LimitedByQuotas."""


class CapacityBuffer(Model):
    """Room that the autoscaler keeps free on Nodes, so that pods which come start at once. Pods take the room of the
    buffer as they take any, and the autoscaler fills it up again.
    """

    resource: ClassVar = Resource(
        kind="CapacityBuffer",
        plural="capacitybuffers",
        short_name="cb",
        columns=(
            Column("Replicas", ".status.replicas", "Chunks for which room is held or asked for.", "integer"),
            Column(
                "Ready",
                '.status.conditions[?(@.type=="ReadyForProvisioning")].status',
                "The shape and the number of chunks are known.",
            ),
            Column("Provisioned", '.status.conditions[?(@.type=="Provisioning")].status', "All chunks have room."),
            Column(
                "Message",
                '.status.conditions[?(@.type=="Provisioning")].message',
                "How many chunks have room, and what the others wait for.",
                priority=1,
            ),
            AGE,
        ),
        group=provisioning_names.PROVISIONING_GROUP,
        version=capacity_names.CAPACITY_VERSION,
        older_versions=("v1alpha1",),
        categories=(),
    )

    api_version: str = capacity_names.CAPACITY_API_VERSION
    """Version of the schema of this object."""
    kind: Literal["CapacityBuffer"] = "CapacityBuffer"
    """Kind of this object."""
    metadata: ObjectMeta = ObjectMeta()
    """Standard metadata."""
    spec: CapacityBufferSpec
    """How much room is kept free."""
    status: CapacityBufferStatus | None = None
    """What the autoscaler makes of it."""
