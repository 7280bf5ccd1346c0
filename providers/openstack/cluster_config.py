"""The config kind ``openstack.nodewright.dev/v1alpha1 OpenStackClusterConfig``: the endpoint of one Cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from providers.base.errors import ErrorClass, ProviderError
from providers.openstack.config import API_VERSION, Cloud, FloatingIP, Name, Reference

CLUSTER_KIND: Final = "OpenStackClusterConfig"


class _Model(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, use_attribute_docstrings=True
    )


class LoadBalancer(_Model):
    """A load balancer of Octavia, with one listener and all hosts of the control plane behind it."""

    subnet: Name | Reference
    """Where its address is from, and from where it reaches the hosts."""
    provider: Literal["amphora", "ovn"] | None = Field(
        default=None,
        description="Absent: the cloud's default, which has to be able to ask `/readyz`. `ovn` only sees whether a "
        "port is open.",
    )
    floating_ip: FloatingIP | None = Field(
        default=None, alias="floatingIP", description="An address of an external network for it; absent: none."
    )


class ClusterEndpoint(_Model):
    """Exactly one of the two."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    floating_ip: FloatingIP | None = Field(
        default=None,
        alias="floatingIP",
        description="An address of an external network that one host of the control plane has at a time.",
    )
    load_balancer: LoadBalancer | None = None


class OpenStackClusterConfig(_Model):
    """What is made for a Cluster, beside its Machines."""

    api_version: Literal["openstack.nodewright.dev/v1alpha1"] = API_VERSION
    """Version of this schema."""
    kind: Literal["OpenStackClusterConfig"] = CLUSTER_KIND
    """Names this schema."""
    cloud: Cloud
    endpoint: ClusterEndpoint
    """Where the API of the cluster is served."""


def parse(config: Mapping[str, Any]) -> OpenStackClusterConfig:
    """Raises ProviderError (InvalidConfiguration)."""
    try:
        found = OpenStackClusterConfig.model_validate(dict(config))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, f"{path}: {first['msg']}") from error
    if (found.endpoint.floating_ip is None) == (found.endpoint.load_balancer is None):
        text = "endpoint: exactly one of floatingIP and loadBalancer must be given"
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, text)
    return found


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the kind, with its defaults."""
    return OpenStackClusterConfig.model_json_schema(by_alias=True)
