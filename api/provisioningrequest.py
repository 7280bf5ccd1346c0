"""ProvisioningRequest: room for a number of pods, all of it or nothing. Its fields are the Cluster Autoscaler's."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from api import limits, provisioning_names
from api.meta import Conditions, ObjectMeta
from api.model import Model, Rule, Schema
from api.resource import AGE, Column, Resource

_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_Name = Annotated[str, Field(max_length=limits.MAX_OBJECT_NAME, pattern=_SUBDOMAIN)]
_IMMUTABLE = Rule("self == oldSelf", "Value is immutable")


class PodTemplateReference(Model):
    """A PodTemplate of the same namespace."""

    name: _Name
    """Name of the PodTemplate."""


class PodSet(Model):
    """Pods that are alike."""

    pod_template_ref: PodTemplateReference
    """PodTemplate of the pods. All fields that a scheduler reads must be the same in both."""
    count: Annotated[int, Field(ge=1, le=provisioning_names.MAX_PODS_OF_SET), Schema({"format": "int32"})]
    """How many pods."""


class ProvisioningRequestSpec(Model):
    """Which pods room is wanted for, and how. It can't be changed: delete the request and make another."""

    __rules__: ClassVar = (
        Rule("has(self.parameters) == has(oldSelf.parameters)", "Value is immutable", ".parameters"),
    )

    pod_sets: Annotated[
        list[PodSet],
        Field(min_length=1, max_length=provisioning_names.MAX_POD_SETS),
        Schema({"x-kubernetes-list-type": "atomic"}, (_IMMUTABLE,)),
    ]
    """The pods, set by set."""
    provisioning_class_name: Annotated[_Name, Schema(rules=(_IMMUTABLE,))]
    """How capacity is found. ``check-capacity.autoscaling.x-k8s.io`` takes what is free and adds no Node.
    ``best-effort-atomic-scale-up.autoscaling.x-k8s.io`` adds all missing Nodes or none. Other programs serve other
    classes.
    """
    parameters: (
        Annotated[
            dict[str, Annotated[str, Field(max_length=255)]],
            Field(max_length=100),
            Schema(rules=(_IMMUTABLE,)),
        ]
        | None
    ) = None
    """Parameters of the class, like ``ValidUntilSeconds`` and ``noRetry``."""


class ProvisioningRequestStatus(Model):
    """What has become of the request."""

    conditions: Conditions | None = None
    """Accepted, Provisioned, Failed, BookingExpired, CapacityRevoked, CapacityAvailable."""
    provisioning_class_details: (
        Annotated[
            dict[str, Annotated[str, Field(max_length=provisioning_names.MAX_DETAIL)]],
            Field(max_length=provisioning_names.MAX_DETAILS),
        ]
        | None
    ) = None
    """Details from the class: the booked Nodes, the groups that grew, the time of the next try."""


def _condition(column: str, type_: str, meaning: str, priority: int = 0) -> Column:
    path = f'.status.conditions[?(@.type=="{type_}")].status'
    return Column(column, path, meaning, priority=priority)


class ProvisioningRequest(Model):
    """Asks for capacity for a number of pods, all of it or nothing, before the pods are created."""

    resource: ClassVar = Resource(
        kind="ProvisioningRequest",
        plural="provisioningrequests",
        short_name="provreq",
        more_short_names=("provreqs",),
        columns=(
            Column("Class", ".spec.provisioningClassName", "How the room is found."),
            _condition("Accepted", "Accepted", "Somebody looks after the request."),
            _condition("Provisioned", "Provisioned", "The room is there, and booked."),
            _condition("Failed", "Failed", "Nothing more is tried."),
            Column(
                "Message",
                '.status.conditions[?(@.type=="Provisioned")].message',
                "How far it is, or why it is not.",
                priority=1,
            ),
            AGE,
        ),
        group=provisioning_names.PROVISIONING_GROUP,
        version="v1",
        older_versions=("v1beta1",),
        categories=(),
    )

    api_version: str = provisioning_names.PROVISIONING_API_VERSION
    """Version of the schema of this object."""
    kind: Literal["ProvisioningRequest"] = "ProvisioningRequest"
    """Kind of this object."""
    metadata: ObjectMeta = ObjectMeta()
    """Standard metadata."""
    spec: ProvisioningRequestSpec
    """Which pods need capacity, and how it is found."""
    status: ProvisioningRequestStatus | None = None
    """What has become of the request."""
