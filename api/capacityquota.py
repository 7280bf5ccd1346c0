"""CapacityQuota: what Nodes with some labels may have together. Its fields are the Cluster Autoscaler's."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from api import capacity_names, provisioning_names
from api.meta import AnyQuantity, Conditions, Generation, LabelSelector, ObjectMeta
from api.model import Model, Rule, Schema
from api.resource import AGE, Column, Resource

_WHOLE = Rule(
    "self.all(key, type(self[key]) == int ? self[key] >= 0 : self[key].matches('^[+]?[0-9]+([KMGTPE]i|[kMGTPE])?$'))",
    "quantities must be whole numbers that are not negative, like 64 or 512Gi",
)
_Resources = Annotated[dict[str, AnyQuantity], Field(max_length=capacity_names.MAX_QUOTA_RESOURCES)]


class CapacityQuotaLimits(Model):
    """What the Nodes may have at most."""

    resources: Annotated[_Resources, Schema(rules=(_WHOLE,))]
    """Whole quantities by resource, of what the Nodes report as their capacity: ``cpu``, ``memory``, devices, and
    ``nodes`` for their number.
    """


class CapacityQuotaSpec(Model):
    """Which Nodes are counted, and what they may have together."""

    selector: LabelSelector | None = None
    """Labels of the Nodes; none or an empty one: all Nodes."""
    limits: CapacityQuotaLimits
    """What they may have."""


class CapacityQuotaUsage(Model):
    """What the Nodes have."""

    resources: _Resources
    """By resource, of those that are limited."""


class CapacityQuotaStatus(Model):
    """How much of the quota is used."""

    used: CapacityQuotaUsage | None = None
    """What the Nodes that match have together."""
    conditions: Conditions | None = None
    """Reconciled."""
    observed_generation: Annotated[Generation, Schema({})] | None = None
    """Generation of the quota that the status is about."""


class CapacityQuota(Model):
    """Limits what the autoscaler may add: no Node is added with which the Nodes that match would have more. Nodes that
    are there stay.
    """

    resource: ClassVar = Resource(
        kind="CapacityQuota",
        plural="capacityquotas",
        short_name="cq",
        columns=(
            Column("Limits", ".spec.limits.resources", "What the Nodes may have together."),
            Column("Used", ".status.used.resources", "What they have."),
            AGE,
        ),
        group=provisioning_names.PROVISIONING_GROUP,
        version=capacity_names.CAPACITY_VERSION,
        older_versions=("v1alpha1",),
        categories=(),
        scope="Cluster",
    )

    api_version: str = capacity_names.CAPACITY_API_VERSION
    """Version of the schema of this object."""
    kind: Literal["CapacityQuota"] = "CapacityQuota"
    """Kind of this object."""
    metadata: ObjectMeta = ObjectMeta()
    """Standard metadata."""
    spec: CapacityQuotaSpec
    """Which Nodes are counted, and what they may have."""
    status: CapacityQuotaStatus | None = None
    """How much is used."""
