"""MachineClass: a provider's configuration that many Machines point at."""

from __future__ import annotations

from typing import ClassVar, Literal

from api import names
from api.meta import Conditions, Count, Generation, ObjectMeta, RawExtension
from api.model import Model, Rule
from api.resource import AGE, Column, Resource


class MachineClassStatus(Model):
    """What was seen of the class."""

    observed_generation: Generation | None = None
    """``metadata.generation`` that this status is about."""
    machines: Count | None = None
    """Machines that name it."""
    conditions: Conditions | None = None
    """Aspects of the class's state."""


class MachineClass(Model):
    """A provider's configuration under a name, for ``valueFrom.machineClass``."""

    __rules__: ClassVar = (
        Rule(
            "has(self.providerSpec) != has(self.providerConfig)",
            "exactly one of providerSpec and providerConfig must be given",
            field_path=".providerSpec",
            reason="FieldValueRequired",
        ),
    )

    resource: ClassVar = Resource(
        kind="MachineClass",
        plural="machineclasses",
        short_name="mc",
        columns=(
            Column("Provider", ".providerSpec.apiVersion", "API version of the configuration."),
            Column("Config", ".providerSpec.kind", "Kind of the configuration."),
            Column("Machines", ".status.machines", "Machines that name it.", "integer"),
            Column(
                "Accepted",
                '.status.conditions[?(@.type=="Accepted")].status',
                "Whether its provider's schema finds no fault in it.",
            ),
            AGE,
            Column("Reason", '.status.conditions[?(@.type=="Accepted")].reason', "Why it is not accepted.", priority=1),
        ),
    )

    api_version: str = names.API_VERSION
    """Version of the schema of this object."""
    kind: Literal["MachineClass"] = "MachineClass"
    """Kind of this object."""
    metadata: ObjectMeta = ObjectMeta()
    """Standard metadata."""
    provider_spec: RawExtension | None = None
    """The configuration: an object with apiVersion and kind that only its provider understands."""
    provider_config: RawExtension | None = None
    """Older name of ``providerSpec``. Exactly one of both must be given."""
    max_hosts_in_flight: Count | None = None
    """Hosts of Machines of this class that may come up at once; further ones wait for their turn. 0: none is made."""
    status: MachineClassStatus | None = None
    """Observed state."""
