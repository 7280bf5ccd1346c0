"""The config kind ``simulated.nodewright.dev/v1alpha1 SimulatedMachineConfig``. Every field is optional.

Fields at the top describe one host; those below ``cloud`` describe the simulated cloud that it lives in. Clouds are
told apart by ``cloud.name``; what a newer config says explicitly about a cloud holds for it from then on, so that a
quota is raised by editing YAML.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from random import Random
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

API_VERSION: Final = "simulated.nodewright.dev/v1alpha1"
KIND: Final = "SimulatedMachineConfig"

_P99 = 2.3263
"""Standard deviations from the median to the 99th percentile of a normal distribution."""


class Updates(StrEnum):
    """How a host answers when its Machine's spec has changed."""

    IN_PLACE = "InPlace"
    REPLACE = "Replace"
    DRAIN_THEN_IN_PLACE = "DrainThenInPlace"
    REFUSE = "Refuse"


class _Model(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, use_attribute_docstrings=True
    )


class Spread(_Model):
    """Seconds, log-normally distributed; as clouds are: mostly near the median, with a long tail."""

    median: float = Field(ge=0, le=86400)
    """Half of them take no longer, in seconds."""
    p99: float = Field(ge=0, le=86400, description="99 of 100 take no longer; equal to the median: always the same.")

    def sample(self, random: Random) -> float:
        if self.median <= 0 or self.p99 <= self.median:
            return self.median
        return self.median * math.exp(random.gauss(0, math.log(self.p99 / self.median) / _P99))


Duration = Spread | Annotated[float, Field(ge=0, le=86400)]
Rate = Annotated[float, Field(ge=0, le=1)]


def seconds(duration: Duration, random: Random) -> float:
    """One sample of a duration, at least 0; a plain number is always itself."""
    return max(0.0, duration.sample(random) if isinstance(duration, Spread) else duration)


class Quota(_Model):
    """Upper bounds of the whole cloud; absent: none."""

    hosts: int | None = Field(default=None, ge=0)
    """Hosts of the cloud at most."""
    cpus: int | None = Field(default=None, ge=0)
    """CPUs of all its hosts at most."""


class Cloud(_Model):
    """The simulated cloud and its moods."""

    name: str = Field(default="default", pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
    """Configurations with one name share one cloud."""
    seed: int = Field(default=0, description="Equal seeds give equal luck.")
    quota: Quota = Quota()
    zones: Mapping[str, Annotated[int, Field(ge=0)]] = Field(
        default={}, description="Zone → hosts it has room for. Empty: one zone, no bound."
    )
    api_seconds: Duration = Field(default=Spread(median=0.02, p99=0.08), description="How long one API call takes.")
    error_rate: Rate = Field(default=0.0, description="Share of calls that fail and did nothing.")
    lost_answer_rate: Rate = Field(default=0.0, description="Share of calls that work but answer with a timeout.")
    list_delay_seconds: float = Field(
        default=0.0, ge=0, le=3600, description="How long the cloud's list does not show a new host yet."
    )


class SimulatedMachineConfig(_Model):
    """One simulated host."""

    api_version: Literal["simulated.nodewright.dev/v1alpha1"] = API_VERSION
    """Version of this schema."""
    kind: Literal["SimulatedMachineConfig"] = KIND
    """Names this schema."""
    cpus: int = Field(default=2, ge=1, le=1024)
    """CPUs of the host."""
    memory: str = Field(default="4Gi", pattern=r"^[1-9][0-9]*(Ki|Mi|Gi|Ti)?$")
    """Memory of the host, in bytes."""
    storage: str = Field(default="20Gi", pattern=r"^[1-9][0-9]*(Ki|Mi|Gi|Ti)?$")
    """Ephemeral storage of the host, in bytes."""
    max_pods: int = Field(default=110, ge=1, le=1024)
    """Pods that its Node takes."""
    instance_type: str = Field(default="sim.medium", pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
    """The Node's label node.kubernetes.io/instance-type."""
    zone: str = Field(default="", description="Empty: the Machine's failure domain, else the first zone with room.")
    image: str = Field(
        default="Simulated Linux 1",
        pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_. ]{0,61}[A-Za-z0-9])?$",
        description="The operating system's image; the Node shows it as osImage. Changed as `updates` says.",
    )
    updates: Updates = Updates.IN_PLACE
    boot_seconds: Duration = Field(default=Spread(median=0.5, p99=1.2), description="From accepted to running.")
    join_seconds: Duration = Field(default=0.1, description="From running to a Ready Node.")
    update_seconds: Duration = Field(
        default=Spread(median=0.5, p99=1.5), description="How long an update in place takes."
    )
    delete_seconds: Duration = Field(default=Spread(median=0.2, p99=0.6), description="From delete to gone.")
    zombie_rate: Rate = Field(default=0.0, description="Share of hosts that run but never register a Node.")
    boot_failure_rate: Rate = Field(default=0.0, description="Share of hosts that never come up.")
    mean_hours_between_failures: float = Field(
        default=0.0, ge=0, description="Mean time between failures of one host, in hours; 0: it never fails."
    )
    cloud: Cloud = Cloud()


def parse(config: Mapping[str, Any]) -> SimulatedMachineConfig:
    """Read a config that passed its JSON Schema.

    Raises pydantic.ValidationError (a ValueError) otherwise.
    """
    return SimulatedMachineConfig.model_validate(dict(config))


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the kind, with its defaults."""
    return SimulatedMachineConfig.model_json_schema(by_alias=True)
