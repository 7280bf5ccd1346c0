"""CapacityBuffer: spare capacity for pods that do not exist yet. Its fields are the Cluster Autoscaler's."""

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
    """A workload in the same namespace. Its pod template defines one chunk."""

    api_group: Annotated[str, Field(max_length=limits.MAX_OBJECT_NAME)] | None = None
    """Its group: ``apps``."""
    kind: Annotated[str, Field(min_length=1, max_length=63)]
    """``Deployment``, ``StatefulSet`` or ``ReplicaSet``; the condition ReadyForProvisioning refuses others."""
    name: _Name
    """Name of the workload."""


class CapacityBufferSpec(Model):
    """How much spare capacity to keep. A chunk is the capacity that one pod needs."""

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
    """How the capacity is kept: ``buffer.x-k8s.io/active-capacity``, on running Nodes. The condition
    ReadyForProvisioning refuses any other strategy.
    """
    pod_template_ref: TemplateOfChunks | None = None
    """PodTemplate that defines one chunk."""
    scalable_ref: ScalableReference | None = None
    """Workload whose pod template defines one chunk."""
    replicas: Count | None = None
    """Number of chunks. If ``percentage`` is set too, the larger number counts."""
    percentage: Count | None = None
    """Number of chunks in percent of the replicas of ``scalableRef``, rounded up: 20 percent of 12 are 3 chunks."""
    limits: Annotated[dict[str, AnyQuantity], Field(max_length=capacity_names.MAX_QUOTA_RESOURCES)] | None = None
    """Most that all chunks together may request. Without ``replicas`` and ``percentage``: as many chunks as fit."""


class CapacityBufferStatus(Model):
    """What the autoscaler makes of the buffer."""

    provisioning_strategy: Annotated[str, Field(max_length=253)] | None = None
    """The strategy that is followed."""
    pod_template_ref: TemplateOfChunks | None = None
    """PodTemplate that was read; unset for a workload."""
    pod_template_generation: Annotated[Generation, Schema({})] | None = None
    """Its generation as it was read."""
    replicas: Count | None = None
    """Number of chunks that the autoscaler provides for."""
    conditions: Conditions | None = None
    """ReadyForProvisioning, Provisioning, LimitedByQuotas."""


class CapacityBuffer(Model):
    """Keeps spare capacity on Nodes, so that new pods start at once. Pods use it like any free capacity, and the
    autoscaler fills it up again.
    """

    resource: ClassVar = Resource(
        kind="CapacityBuffer",
        plural="capacitybuffers",
        short_name="cb",
        columns=(
            Column("Replicas", ".status.replicas", "Number of chunks that the autoscaler provides for.", "integer"),
            Column(
                "Ready",
                '.status.conditions[?(@.type=="ReadyForProvisioning")].status',
                "The chunk and the number of chunks are known.",
            ),
            Column(
                "Provisioned",
                '.status.conditions[?(@.type=="Provisioning")].status',
                "All chunks fit on Nodes that exist or are on their way.",
            ),
            Column(
                "Message",
                '.status.conditions[?(@.type=="Provisioning")].message',
                "How many chunks fit, and what the others wait for.",
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
    """How much spare capacity to keep."""
    status: CapacityBufferStatus | None = None
    """What the autoscaler makes of it."""
