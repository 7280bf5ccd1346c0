"""The config kind ``ssh.nodewright.dev/v1alpha1 SSHMachineConfig``: which pool a Machine takes its host from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from providers.base.errors import ErrorClass, ProviderError

API_VERSION: Final = "ssh.nodewright.dev/v1alpha1"
KIND: Final = "SSHMachineConfig"

_Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")]
_Label = Annotated[str, Field(max_length=63)]
Quantity = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|[kKMGTPE]i?)?$")]


class SSHMachineConfig(BaseModel):
    """One host of a pool."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)

    api_version: Literal["ssh.nodewright.dev/v1alpha1"] = Field(description="Version of this schema.")
    kind: Literal["SSHMachineConfig"] = Field(description="Names this schema.")
    pool: _Name = Field(description="SSHHostPool beside the Machine.")
    host_selector: Mapping[str, _Label] = Field(default={}, description="Labels that the host has to have in the pool.")
    release: Literal["Reset", "Leave"] = Field(
        default="Reset",
        description="What becomes of the host when the Machine is deleted. Reset: Kubernetes is taken off it. Leave: "
        "the steps stop and the claim goes, all else stays as it is.",
    )
    capacity: Mapping[str, Quantity] = Field(
        default={"cpu": "1", "memory": "1Gi"}, description="What a host offers, for an autoscaler at zero."
    )


def parse(config: Mapping[str, Any]) -> SSHMachineConfig:
    """Raises ProviderError (InvalidConfiguration) naming the field."""
    try:
        return SSHMachineConfig.model_validate(config)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, f"{path}: {first['msg']}") from error


def json_schema() -> dict[str, Any]:
    return SSHMachineConfig.model_json_schema(by_alias=True)
