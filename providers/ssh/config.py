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
_Argument = Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[^\x00-\x1f\x7f]+$")]
_Label = Annotated[str, Field(max_length=63)]
Quantity = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|[kKMGTPE]i?)?$")]


class SSHMachineConfig(BaseModel):
    """One host of a pool."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)

    api_version: Literal["ssh.nodewright.dev/v1alpha1"] = Field(description="Version of this schema.")
    kind: Literal["SSHMachineConfig"] = Field(description="Names this schema.")
    pool: _Name = Field(description="SSHHostPool beside the Machine.")
    host_selector: Mapping[str, _Label] = Field(default={}, description="Labels that the host has to have in the pool.")
    release: Literal["Reset", "Leave", "Reboot"] = Field(
        default="Reset",
        description="What becomes of the host when the Machine is deleted. Reset: Kubernetes is taken off it. Reboot: "
        "the same, and the host is free once it has booted anew. Leave: the steps stop and the claim goes, all else "
        "stays as it is.",
    )
    release_command: tuple[_Argument, ...] = Field(
        default=(),
        max_length=32,
        description="Program with its arguments that root runs on the host after that, before a reboot and before the "
        "host is free; it has 10 min. A host on which it fails is quarantined. The pool's status shows it: no secret.",
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
