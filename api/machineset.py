"""MachineSet: as many equal Machines as asked for."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from api import limits, names
from api.machine import MachineSpec
from api.meta import (
    Conditions,
    Count,
    FailureDomains,
    Generation,
    Message,
    ObjectMeta,
    OwningSelector,
    Replicas,
    TemplateMeta,
    Time,
)
from api.model import ATOMIC_LIST, Model, Rule, Schema, name_fits
from api.resource import AGE, Column, Resource, Scale

_LABELS = "self.template.metadata.labels"
_HAS_LABELS = "has(self.template.metadata) && has(self.template.metadata.labels)"

SELECTOR_MATCHES_TEMPLATE = (
    Rule(
        "!has(self.selector.matchLabels) || self.selector.matchLabels.all(k, "
        f"{_HAS_LABELS} && k in {_LABELS} && {_LABELS}[k] == self.selector.matchLabels[k])",
        "selector does not match the labels of template.metadata",
        field_path=".template.metadata.labels",
    ),
    Rule(
        "!has(self.selector.matchExpressions) || self.selector.matchExpressions.all(e, "
        f"e.operator == 'Exists' ? ({_HAS_LABELS} && e.key in {_LABELS}) : "
        f"e.operator == 'DoesNotExist' ? !({_HAS_LABELS} && e.key in {_LABELS}) : "
        f"e.operator == 'In' ? ({_HAS_LABELS} && e.key in {_LABELS} && has(e.values)"
        f" && {_LABELS}[e.key] in e.values) : "
        f"!({_HAS_LABELS} && e.key in {_LABELS} && has(e.values) && {_LABELS}[e.key] in e.values))",
        "selector does not match the labels of template.metadata",
        field_path=".template.metadata.labels",
    ),
)
"""Otherwise the set would never count what it makes, and make more for ever."""


ONE_SAY_ON_FAILURE_DOMAINS = Rule(
    "!has(self.failureDomains) || size(self.failureDomains) == 0 || !has(self.template.spec) || "
    "!has(self.template.spec.failureDomain) || self.template.spec.failureDomain == ''",
    "only one of failureDomains and template.spec.failureDomain may be given",
    field_path=".failureDomains",
)


NAMES_NODES = "the names of its Machines become names of Nodes"


class MachineTemplateSpec(Model):
    """What Machines are made from."""

    metadata: TemplateMeta | None = None
    """Labels and annotations for the Machines. Changes flow to existing Machines without a rollout."""
    spec: MachineSpec = MachineSpec()
    """What their Nodes are to be like; ``spec.metadata`` and ``spec.taints`` go on to the Nodes."""


class InPlaceUpdate(Model):
    """A change of the template reaches existing Machines, a few at a time, instead of new ones only."""

    policy: Literal["Prefer", "Require"] = "Prefer"
    """What follows where the provider can't change a running host. Prefer: it makes another under the same Machine.
    Require: the update stops."""
    min_available: Count = 0
    """How many Machines must stay available. A Machine that is being updated is not available."""
    max_updating: Count | None = None
    """How many Machines may be updated at the same time. 0 stops updates. Default: only ``minAvailable`` limits them.
    """
    partition: Count = 0
    """Machines that stay as they are."""


class MachineSetSpec(Model):
    """Which Machines there are to be, and how many."""

    __rules__: ClassVar = (*SELECTOR_MATCHES_TEMPLATE, ONE_SAY_ON_FAILURE_DOMAINS)

    replicas: Replicas = 1
    """Number of Machines."""
    min_ready_seconds: Count = 0
    """Seconds that a Machine must be ready before it counts as available."""
    delete_policy: Literal["Random", "Newest", "Oldest", "LeastDisruptive"] = "Random"
    """Which Machines are deleted first on a scale-down, among Machines that are equal otherwise. Random draws by the
    UID.
    """
    failure_domains: FailureDomains | None = None
    """Failure domains, such as zones, over which the Machines are spread evenly. A new Machine goes to the domain
    with the fewest, and to another one while the provider is out of stock there. Default: those of the Cluster. An
    empty list turns spreading off.
    """
    in_place_update: InPlaceUpdate | None = None
    """Updates existing Machines when the template changes. If it is absent, a change applies to new Machines only,
    except for labels, annotations, taints and timeouts.
    """
    selector: OwningSelector
    """Selects the Machines that belong here; must match the labels of the template."""
    template: MachineTemplateSpec
    """What Machines are made from."""


class Ordinals(Model):
    """Which numbers were given to Machines, so that no name is ever used twice in the life of the set."""

    next: Annotated[int, Field(ge=0, le=10**limits.MAX_ORDINAL_DIGITS), Schema({"format": "int64"})] = 0
    """Lowest number that was never given."""
    reserved: Annotated[str, Field(max_length=65536, pattern=r"^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$")] | None = (
        None
    )
    """Numbers of Machines that were created and not yet observed, as ranges: ``8-10,12``."""
    leaving: Annotated[list[Annotated[str, Field(max_length=253)]], Field(max_length=100_000), ATOMIC_LIST] | None = (
        None
    )
    """Names of Machines whose deletion was decided and not yet observed, so that no reconcile selects others instead.
    """


class Remediated(Model):
    """An unhealthy Machine that was deleted and whose replacement was not seen yet."""

    machine: Annotated[str, Field(max_length=253)]
    """Its name."""
    times: Annotated[list[Time], Field(max_length=20), ATOMIC_LIST] | None = None
    """When Machines of this chain were replaced for their health, oldest first. The last time is that of this
    Machine.
    """


class RestingDomain(Model):
    """A failure domain that was out of stock or quota: no Machine is made there for a while."""

    name: Annotated[str, Field(max_length=253)]
    """Its name."""
    reason: Annotated[str, Field(max_length=253)]
    """Class of the provider's error: StockOut or QuotaExceeded."""
    until: Time
    """When it is tried again."""


class MachineSetStatus(Model):
    """What was seen of the set."""

    replicas: Count = 0
    """Machines that are not being deleted."""
    fully_labeled_replicas: Count | None = None
    """Machines with all labels of the template."""
    ready_replicas: Count | None = None
    """Machines that are Ready."""
    available_replicas: Count | None = None
    """Machines that have been Ready for ``minReadySeconds``."""
    deleting_replicas: Count | None = None
    """Machines that are being deleted and still exist; the condition ScalingDown says what they wait for."""
    observed_generation: Generation | None = None
    """``metadata.generation`` that this status is about."""
    label_selector: Annotated[str, Field(max_length=16384)] | None = None
    """The selector as text, for the scale subresource."""
    ordinals: Ordinals | None = None
    """Which numbers were given to Machines."""
    remediated: Annotated[list[Remediated], Field(max_length=1000), ATOMIC_LIST] | None = None
    """Unhealthy Machines that were deleted and whose replacements were not yet observed."""
    resting_failure_domains: Annotated[list[RestingDomain], Field(max_length=64), ATOMIC_LIST] | None = None
    """Failure domains that were out of stock or quota. Their Machines are created in other domains."""
    error_reason: Annotated[str, Field(max_length=253)] | None = None
    """Terminal failure, one word: it needs a person or another spec."""
    error_message: Message | None = None
    """Terminal failure, for people."""
    failure_reason: Annotated[str, Field(max_length=253)] | None = None
    """Same as ``errorReason``, under CAPI's name."""
    failure_message: Message | None = None
    """Same as ``errorMessage``, under CAPI's name."""
    conditions: Conditions | None = None
    """Aspects of the set's state; reasons of its Machines are rolled up here."""


class MachineSet(Model):
    """As many Machines of one template as asked for."""

    __rules__: ClassVar = (name_fits(limits.MAX_MACHINESET_NAME, NAMES_NODES),)

    resource: ClassVar = Resource(
        kind="MachineSet",
        plural="machinesets",
        short_name="ms",
        scale=Scale(),
        columns=(
            Column("Desired", ".spec.replicas", "Machines asked for.", "integer"),
            Column("Current", ".status.replicas", "Machines that exist.", "integer"),
            Column("Ready", ".status.readyReplicas", "Machines that are ready.", "integer"),
            Column("Available", ".status.availableReplicas", "Machines ready for long enough.", "integer"),
            Column("Kubelet", ".spec.template.spec.versions.kubelet", "Version of the kubelet that is asked for."),
            AGE,
            Column(
                "Deployment",
                ".metadata.ownerReferences[0].name",
                "MachineDeployment that it belongs to.",
                priority=1,
            ),
            Column(
                "Deleting",
                ".status.deletingReplicas",
                "Machines that are being deleted and still exist.",
                "integer",
                priority=1,
            ),
            Column(
                "Reason",
                '.status.conditions[?(@.type=="Ready")].reason',
                "Why not all of its Machines are ready, or what holds up its deletions.",
                priority=1,
            ),
            Column("Selector", ".status.labelSelector", "Selects its Machines.", priority=1),
        ),
    )

    api_version: str = names.API_VERSION
    """Version of the schema of this object."""
    kind: Literal["MachineSet"] = "MachineSet"
    """Kind of this object."""
    metadata: ObjectMeta = ObjectMeta()
    """Standard metadata."""
    spec: MachineSetSpec
    """Which Machines there are to be."""
    status: MachineSetStatus | None = None
    """Observed state."""
