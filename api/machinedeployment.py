"""MachineDeployment: Machines of a template that may change, rolled out step by step."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from api import names
from api.machineset import NAMES_NODES, SELECTOR_MATCHES_TEMPLATE, MachineTemplateSpec
from api.meta import Conditions, Count, Generation, IntOrString, Message, ObjectMeta, OwningSelector, Time
from api.model import ATOMIC_LIST, Model, Rule, Schema, name_fits
from api.resource import AGE, Column, Resource, Scale

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
    delete_policy: Literal["Random", "Newest", "Oldest"] | None = None
    """``deletePolicy`` of the MachineSets; Random without it."""
    partition: Count = 0
    """Machines that stay with the old template (a canary step); 0 rolls out to all."""
    on_failure: Literal["Continue", "Pause", "Rollback"] = "Continue"
    """What happens when ``progressDeadlineSeconds`` has passed: go on, or stop. Rollback is to return to the last
    revision. Accepted and kept; not acted on yet: it stops as Pause does."""


class MachineDeploymentStrategy(Model):
    """How Machines of an old template are replaced."""

    type: Literal["RollingUpdate", "OnDelete", "Recreate"] = "RollingUpdate"
    """RollingUpdate: step by step. OnDelete: whenever somebody deletes an old one. Recreate: all old ones first."""
    rolling_update: RollingUpdate = RollingUpdate()
    """Limits of a RollingUpdate."""


class MachineDeploymentSpec(Model):
    """Which Machines there are to be, how many, and how changes reach them."""

    __rules__: ClassVar = SELECTOR_MATCHES_TEMPLATE

    replicas: Count = 1
    """Number of Machines."""
    selector: Annotated[OwningSelector, Schema(rules=(Rule("self == oldSelf", "selector is immutable"),))]
    """Selects the Machines that belong here; must match the labels of the template. Can't be changed."""
    template: MachineTemplateSpec
    """What Machines are made from. A change of ``spec`` is rolled out, but for labels, annotations, taints and
    timeouts, which flow to existing Machines."""
    strategy: MachineDeploymentStrategy = MachineDeploymentStrategy()
    """How Machines of an old template are replaced."""
    min_ready_seconds: Count = 0
    """Seconds that a Machine must be ready before it counts as available."""
    revision_history_limit: Count = 1
    """Old MachineSets that are kept, empty, to return to."""
    paused: bool = False
    """True stops rollouts; scaling goes on, in proportion."""
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


class MachineDeploymentStatus(Model):
    """What was seen of the deployment."""

    observed_generation: Generation | None = None
    """``metadata.generation`` that this status is about."""
    replicas: Count = 0
    """Machines of all templates that are not being deleted."""
    updated_replicas: Count | None = None
    """Those of the current template."""
    ready_replicas: Count | None = None
    """Those that are ready."""
    available_replicas: Count | None = None
    """Those that are ready for ``minReadySeconds``."""
    unavailable_replicas: Count | None = None
    """Those that are missing to the number asked for, or not available."""
    label_selector: Annotated[str, Field(max_length=16384)] | None = None
    """The selector as text, for the scale subresource."""
    collision_count: Count | None = None
    """How often the hash of a template was found to belong to another one; part of the next hash."""
    rollout: RolloutJournal | None = None
    """What was decided last about the sizes of the MachineSets."""
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

    __rules__: ClassVar = (name_fits(names.MAX_MACHINEDEPLOYMENT_NAME, NAMES_NODES),)

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
                "Reason",
                '.status.conditions[?(@.type=="Available")].reason',
                "Why it is (not) available.",
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
    """What was seen."""
