"""MachineHealthCheck: when a Machine counts as sick, and how many may be replaced at once."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from api import names
from api.meta import (
    Conditions,
    Count,
    Duration,
    Generation,
    IntOrString,
    ObjectMeta,
    ObjectReference,
    OwningSelector,
    ShortText,
)
from api.model import ATOMIC_LIST, SET, Model, Schema
from api.remediation import API_VERSION_PATTERN, KIND_PATTERN, NAME_PATTERN
from api.resource import AGE, Column, Resource


class UnhealthyCondition(Model):
    """A condition that, after some time, makes a Machine unhealthy."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """Type of the condition."""
    status: Literal["True", "False", "Unknown"]
    """Status that is bad."""
    timeout: Duration
    """How long it must have lasted."""


class RemediationTemplate(ObjectReference):
    """Points at a template in the check's own namespace, of a kind that the administrator allows."""

    api_version: Annotated[str, Field(max_length=317, pattern=API_VERSION_PATTERN)] | None = None
    """API version of the template: group and version."""
    kind: Annotated[str, Field(max_length=63, pattern=KIND_PATTERN)] | None = None
    """Kind of the template; it ends with ``Template``."""
    name: Annotated[str, Field(max_length=253, pattern=NAME_PATTERN)] | None = None
    """Name of the template."""


class RebootStrategy(Model):
    """Reboots of a sick Machine's host, before the Machine is replaced."""

    max_attempts: Annotated[int, Field(ge=0, le=3), Schema({"format": "int32"})] = 0
    """How many reboots are tried. 0: none. The count starts anew for a Machine that stayed healthy for
    ``minHealthyPeriod``."""
    timeout: Duration = "10m"
    """How long after each the Machine has to become healthy."""


class RemediationStrategy(Model):
    """Limits on replacing unhealthy Machines."""

    max_in_flight: IntOrString | None = None
    """How many replacements may run at the same time, as a number or a percentage of the selected Machines (rounded
    up). Default: no limit.
    """
    max_retry: Count | None = None
    """How many replacements may follow the first one in the same chain of Machines. Default: no limit."""
    retry_period: Duration = "0s"
    """Wait between a replacement and the next one of the same place; doubled each time. At least a minute for Machines
    that failed for good or never joined."""
    max_retry_period: Duration = "1h"
    """Longest such wait."""
    min_healthy_period: Duration = "1h"
    """If a replacement stays healthy for this time, the count of retries starts anew."""
    reboot: RebootStrategy = RebootStrategy()
    """Reboots before a replacement. Not together with ``remediationTemplate``."""
    correlated_failures: Literal["Freeze", "Remediate"] = "Freeze"
    """Freeze: nothing is replaced while failures have one cause in common (a whole zone, an unreachable API)."""


class MachineHealthCheckSpec(Model):
    """Which Machines are looked at, and what makes them unhealthy."""

    cluster_name: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """Cluster whose Machines are checked. Default: Machines of every Cluster of the namespace."""
    selector: OwningSelector
    """Selects the Machines."""
    unhealthy_conditions: Annotated[list[UnhealthyCondition], Field(max_length=100), ATOMIC_LIST] | None = None
    """Conditions of the Node; each alone makes its Machine unhealthy."""
    unhealthy_machine_conditions: Annotated[list[UnhealthyCondition], Field(max_length=100), ATOMIC_LIST] | None = None
    """Conditions of the Machine, each of which makes it unhealthy. Conditions that health checks write are not
    allowed.
    """
    node_startup_timeout: Duration = "10m"
    """How long a Machine may have no Node before it is unhealthy. 0: no limit."""
    max_unhealthy: IntOrString = "100%"
    """Nothing is replaced while more Machines than this are unhealthy, as a number or a percentage (rounded down)."""
    unhealthy_range: Annotated[str, Field(max_length=32, pattern=r"^\[[0-9]+-[0-9]+\]$")] | None = None
    """Replace only while the number of unhealthy Machines is in this range, like ``[3-5]``. Used instead of
    ``maxUnhealthy`` when given."""
    remediation_template: RemediationTemplate | None = None
    """Template of an object that does the remediation instead of us."""
    remediation_strategy: RemediationStrategy = RemediationStrategy()
    """Limits on replacing."""


class MachineHealthCheckStatus(Model):
    """What was seen by the check."""

    observed_generation: Generation | None = None
    """``metadata.generation`` that this status is about."""
    expected_machines: Count | None = None
    """Machines that are looked at."""
    current_healthy: Count | None = None
    """Machines that have a Node and no unhealthy condition, not even for a moment."""
    remediations_allowed: Count | None = None
    """Further Machines that may be replaced now."""
    unhealthy_machines: Annotated[list[ShortText], Field(max_length=1000), SET] | None = None
    """Names of the unhealthy ones, the first thousand."""
    conditions: Conditions | None = None
    """Conditions of the check. A short circuit is reported here."""


class MachineHealthCheck(Model):
    """Finds unhealthy Machines and has their owner replace them, unless too many look bad at once."""

    resource: ClassVar = Resource(
        kind="MachineHealthCheck",
        plural="machinehealthchecks",
        short_name="mhc",
        columns=(
            Column("Expected", ".status.expectedMachines", "Machines that are looked at.", "integer"),
            Column("Healthy", ".status.currentHealthy", "Those that are healthy.", "integer"),
            Column("MaxUnhealthy", ".spec.maxUnhealthy", "Up to so many unhealthy ones are replaced."),
            Column(
                "Allowed",
                ".status.remediationsAllowed",
                "Further Machines that may be replaced now.",
                "integer",
            ),
            AGE,
            Column(
                "Reason",
                '.status.conditions[?(@.type=="RemediationAllowed")].reason',
                "Whether Machines may be replaced now, and why not.",
                priority=1,
            ),
        ),
    )

    api_version: str = names.API_VERSION
    """Version of the schema of this object."""
    kind: Literal["MachineHealthCheck"] = "MachineHealthCheck"
    """Kind of this object."""
    metadata: ObjectMeta = ObjectMeta()
    """Standard metadata."""
    spec: MachineHealthCheckSpec
    """Which Machines are looked at."""
    status: MachineHealthCheckStatus | None = None
    """Observed state."""
