"""MachineDeployment: Machines of a template that may change, rolled out step by step."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from api import limits, names
from api.machineset import NAMES_NODES, ONE_SAY_ON_FAILURE_DOMAINS, SELECTOR_MATCHES_TEMPLATE, MachineTemplateSpec
from api.meta import (
    Conditions,
    Count,
    Duration,
    FailureDomains,
    Generation,
    IntOrString,
    Message,
    ObjectMeta,
    OwningSelector,
    Replicas,
    Time,
)
from api.model import ATOMIC_LIST, SET, Model, Rule, Schema, name_fits
from api.resource import AGE, Column, Resource, Scale
from api.schedules import MAX_SCHEDULE, SCHEDULE_PATTERN

_SURGE_POSITIVE = "(type(self.maxSurge) == int ? self.maxSurge > 0 : self.maxSurge != '0%')"
_UNAVAILABLE_POSITIVE = "(type(self.maxUnavailable) == int ? self.maxUnavailable > 0 : self.maxUnavailable != '0%')"


class RollingUpdate(Model):
    """How far a rollout may go beyond and below the number of Machines asked for."""

    __rules__: ClassVar = (
        Rule(
            f"!has(self.maxSurge) || !has(self.maxUnavailable) || {_SURGE_POSITIVE} || {_UNAVAILABLE_POSITIVE}",
            "maxUnavailable may not be 0 when maxSurge is 0: no Machine could ever be replaced",
            field_path=".maxUnavailable",
        ),
    )

    max_unavailable: Annotated[IntOrString, Schema({"pattern": r"^(100|[1-9]?[0-9])%$"})] = 0
    """Machines that may be missing during a rollout, as a number or a percentage of ``replicas`` (rounded down)."""
    max_surge: IntOrString = 1
    """Machines that may be too many during a rollout, as a number or a percentage of ``replicas`` (rounded up)."""
    delete_policy: Literal["Random", "Newest", "Oldest", "LeastDisruptive"] | None = None
    """``deletePolicy`` of the MachineSets. Default: Random."""
    partition: IntOrString = 0
    """Machines of old templates that stay (a canary step), as a number or a percentage of ``replicas`` (rounded up);
    0 rolls out to all. A higher one brings none back."""
    on_failure: Literal["Continue", "Pause", "Rollback"] = "Continue"
    """What happens after ``progressDeadlineSeconds`` without progress: Continue, Pause, or Rollback to the template
    that was last rolled out completely, until ``template`` changes (``status.rollback``).
    """
    in_place: Literal["Never", "Prefer", "Require"] = "Never"
    """Never: Machines of an old template are replaced by new ones. Prefer: they get the new template and stay; where
    the provider can't change the running host, it makes another under the same Machine. Require: then the rollout stops
    instead."""


class DisruptionBudget(Model):
    """How many Machines rollouts may have disturbed at once, always or at certain times."""

    __rules__: ClassVar = (
        Rule(
            "has(self.schedule) == has(self.duration)",
            "schedule and duration need each other",
            field_path=".schedule",
        ),
    )

    nodes: IntOrString
    """How many Machines may be down at the same time, as a number or a percentage of ``replicas`` (rounded up). 0
    allows none. Machines that are being deleted and Nodes that are not Ready count as down, whatever the cause.
    """
    schedule: Annotated[str, Field(min_length=1, max_length=MAX_SCHEDULE, pattern=SCHEDULE_PATTERN)] | None = None
    """When the budget begins to hold: cron with five fields, in UTC. Default: it always holds."""
    duration: Duration | None = None
    """How long it holds from then on."""
    reasons: Annotated[list[Literal["Replace", "InPlaceUpdate"]], Field(max_length=2), SET] | None = None
    """What it limits: replacements, updates in place, or both. Default: both."""


class MachineDeploymentStrategy(Model):
    """How Machines of an old template are replaced."""

    type: Literal["RollingUpdate", "OnDelete", "Recreate"] = "RollingUpdate"
    """RollingUpdate replaces Machines step by step. OnDelete makes a new Machine when a user deletes an old one.
    Recreate deletes all old Machines first.
    """
    rolling_update: RollingUpdate = RollingUpdate()
    """Limits of a RollingUpdate."""
    disruption_budgets: Annotated[list[DisruptionBudget], Field(max_length=50), ATOMIC_LIST] | None = None
    """Further limits of a RollingUpdate. If several hold at the same time, the smallest applies. A budget that can't
    be parsed allows nothing.
    """


class Rollout(Model):
    """When the Machines are to be replaced though their template has not changed."""

    after: Time | None = None
    """Machines of MachineSets that were made before this time are replaced once it has come (CAPI)."""


class MachineDeploymentSpec(Model):
    """Which Machines there are to be, how many, and how changes reach them."""

    __rules__: ClassVar = (*SELECTOR_MATCHES_TEMPLATE, ONE_SAY_ON_FAILURE_DOMAINS)

    replicas: Replicas = 1
    """Number of Machines."""
    selector: Annotated[OwningSelector, Schema(rules=(Rule("self == oldSelf", "selector is immutable"),))]
    """Selects the Machines that belong here; must match the labels of the template. Can't be changed."""
    template: MachineTemplateSpec
    """What Machines are made from. A change of ``spec`` is rolled out, but for labels, annotations, taints and
    timeouts, which flow to existing Machines."""
    strategy: MachineDeploymentStrategy = MachineDeploymentStrategy()
    """How Machines of an old template are replaced."""
    failure_domains: FailureDomains | None = None
    """Failure domains, such as zones, over which the Machines are spread evenly. A change starts no rollout. Default:
    those of the Cluster. An empty list turns spreading off.
    """
    rollout: Rollout | None = None
    """A rollout at a time in the future. Removing it again starts no rollout."""
    min_ready_seconds: Count = 0
    """Seconds that a Machine must be ready before it counts as available."""
    revision_history_limit: Count = 1
    """Old MachineSets that are kept, empty, to return to."""
    paused: bool = False
    """True stops rollouts. Scaling goes on, and each MachineSet keeps its share."""
    progress_deadline_seconds: Count = 600
    """Seconds without progress after which a rollout has failed. 0: never."""


class DecidedSize(Model):
    """How many Machines a MachineSet was to have, decided on one version of it."""

    name: Annotated[str, Field(max_length=253)]
    """The MachineSet."""
    version: Annotated[str, Field(max_length=64)]
    """Its resourceVersion when this was decided."""
    replicas: Count
    """The size that was decided."""


class RolloutJournal(Model):
    """Sizes that were decided last, written before MachineSets are scaled, so that no budget is spent twice."""

    at: Time
    """When they were decided."""
    sets: Annotated[list[DecidedSize], Field(max_length=1000), ATOMIC_LIST]
    """One entry for each MachineSet whose size was to change."""


class Rollback(Model):
    """A rollout that failed and was taken back. In force as long as ``spec.template`` is the one that failed."""

    at: Time
    """When it was decided."""
    failed_hash: Annotated[str, Field(max_length=63)]
    """Hash of the template that failed."""
    hash: Annotated[str, Field(max_length=63)]
    """Hash of the template that is in force instead."""
    from_revision: Annotated[int, Field(ge=0), Schema({"format": "int64"})] = 0
    """Revision of the template that failed."""
    to_revision: Annotated[int, Field(ge=0), Schema({"format": "int64"})] = 0
    """Revision that the template in force had then."""
    message: Message = ""
    """Why, for people."""


class MachineDeploymentStatus(Model):
    """What was seen of the deployment."""

    observed_generation: Generation | None = None
    """``metadata.generation`` that this status is about."""
    replicas: Count = 0
    """Machines of all templates that are not being deleted."""
    updated_replicas: Count | None = None
    """Machines of the current template."""
    ready_replicas: Count | None = None
    """Machines that are Ready."""
    available_replicas: Count | None = None
    """Machines that have been Ready for ``minReadySeconds``."""
    deleting_replicas: Count | None = None
    """Machines that are being deleted and still exist; the condition ScalingDown says what they wait for."""
    unavailable_replicas: Count | None = None
    """Desired Machines that are missing or not available."""
    label_selector: Annotated[str, Field(max_length=16384)] | None = None
    """The selector as text, for the scale subresource."""
    collision_count: Count | None = None
    """How often the hash of a template was found to belong to another one; part of the next hash."""
    rollout: RolloutJournal | None = None
    """What was decided last about the sizes of the MachineSets."""
    spec_seen_at: Time | None = None
    """When ``observedGeneration`` was first seen. The progress deadline starts no earlier."""
    completed_hash: Annotated[str, Field(max_length=63)] | None = None
    """Hash of the template that was rolled out completely last; a failed rollout returns to it."""
    rollback: Rollback | None = None
    """The rollout that was taken back."""
    error_reason: Annotated[str, Field(max_length=253)] | None = None
    """Terminal failure, one word: it needs a person or another spec."""
    error_message: Message | None = None
    """Terminal failure, for people."""
    failure_reason: Annotated[str, Field(max_length=253)] | None = None
    """Same as ``errorReason``, under CAPI's name."""
    failure_message: Message | None = None
    """Same as ``errorMessage``, under CAPI's name."""
    conditions: Conditions | None = None
    """Aspects of the deployment's state; reasons of its Machines are rolled up here."""


class MachineDeployment(Model):
    """Machines of a template that may change: a new one is rolled out by MachineSets, within limits, and back."""

    __rules__: ClassVar = (name_fits(limits.MAX_MACHINEDEPLOYMENT_NAME, NAMES_NODES),)

    resource: ClassVar = Resource(
        kind="MachineDeployment",
        plural="machinedeployments",
        short_name="md",
        scale=Scale(),
        columns=(
            Column("Desired", ".spec.replicas", "Machines asked for.", "integer"),
            Column("Current", ".status.replicas", "Machines that exist.", "integer"),
            Column("Updated", ".status.updatedReplicas", "Machines of the current template.", "integer"),
            Column("Ready", ".status.readyReplicas", "Machines that are ready.", "integer"),
            Column("Available", ".status.availableReplicas", "Machines ready for long enough.", "integer"),
            Column("Kubelet", ".spec.template.spec.versions.kubelet", "Version of the kubelet that is asked for."),
            AGE,
            Column("Paused", ".spec.paused", "Whether rollouts are stopped.", "boolean", priority=1),
            Column("Strategy", ".spec.strategy.type", "How old Machines are replaced.", priority=1),
            Column(
                "Deleting",
                ".status.deletingReplicas",
                "Machines that are being deleted and still exist.",
                "integer",
                priority=1,
            ),
            Column(
                "Reason",
                '.status.conditions[?(@.type=="Available")].reason',
                "Why it is (not) available, or what holds up its deletions.",
                priority=1,
            ),
        ),
    )

    api_version: str = names.API_VERSION
    """Version of the schema of this object."""
    kind: Literal["MachineDeployment"] = "MachineDeployment"
    """Kind of this object."""
    metadata: ObjectMeta = ObjectMeta()
    """Standard metadata."""
    spec: MachineDeploymentSpec
    """Which Machines there are to be."""
    status: MachineDeploymentStatus | None = None
    """Observed state."""
