"""The config kind ``openstack.nodewright.dev/v1alpha1 OpenStackMachineConfig``: one server and what belongs to it.

A thing of the cloud is named by its name (plain text), or by an object with exactly one of name, id and filter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

API_VERSION: Final = "openstack.nodewright.dev/v1alpha1"
KIND: Final = "OpenStackMachineConfig"

Name = Annotated[str, Field(min_length=1, max_length=255)]
SecretName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")]
Uuid = Annotated[str, Field(pattern=r"^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$")]
MetadataKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9_:. -]{1,255}$")]
Tag = Annotated[str, Field(pattern=r"^[^,/]{1,60}$")]
Cidr = Annotated[str, Field(pattern=r"^[0-9A-Fa-f.:]+(/[0-9]{1,3})?$")]
Quantity = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|[kKMGTPE]i?)?$")]


class _Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


_ONE_OF_ALL = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})


class FlavorFilter(_Model):
    """The smallest flavor that has at least this much: by vCPUs, then memory, then disk, then name."""

    min_cpus: int = Field(default=0, ge=0, alias="minCPUs")
    min_memory_mib: int = Field(default=0, ge=0, alias="minMemoryMiB")
    min_disk_gib: int = Field(default=0, ge=0, alias="minDiskGiB")


class FlavorReference(_Model):
    model_config = _ONE_OF_ALL

    name: Name | None = None
    id: Name | None = None
    filter: FlavorFilter | None = None


class ImageFilter(_Model):
    """The newest active image that has all of these tags and properties."""

    tags: tuple[Name, ...] = ()
    properties: Mapping[str, str] = Field(default={}, description="Such as os_distro: debian.")


class ImageReference(_Model):
    model_config = _ONE_OF_ALL

    name: Name | None = None
    id: Uuid | None = None
    filter: ImageFilter | None = None


class TagFilter(_Model):
    tags: tuple[Name, ...] = Field(min_length=1)


class Reference(_Model):
    """A network, subnet or security group."""

    model_config = _ONE_OF_ALL

    name: Name | None = None
    id: Uuid | None = None
    filter: TagFilter | None = None


class NamedReference(_Model):
    model_config = _ONE_OF_ALL

    name: Name | None = None
    id: Uuid | None = None


class Cloud(_Model):
    """Where the servers are made, and the Secret that holds the login."""

    secret_name: SecretName = Field(
        description="A Secret in the Machine's namespace: `clouds.yaml` (and `cacert`), or `authURL`, "
        "`applicationCredentialID` and `applicationCredentialSecret`."
    )
    name: Name | None = Field(default=None, description="Which cloud of clouds.yaml; absent: the only one.")
    region: Name | None = Field(default=None, description="Absent: as clouds.yaml says.")


class FixedIP(_Model):
    subnet: Name | Reference | None = None
    address: Annotated[str, Field(pattern=r"^[0-9A-Fa-f.:]+$")] | None = None


class AddressPair(_Model):
    ip_address: Cidr
    mac_address: Annotated[str, Field(pattern=r"^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$")] | None = None


class FloatingIP(_Model):
    network: Name | Reference = Field(description="The external network.")


class AnyPort(_Model):
    """What ports of servers and those behind them have in common."""

    network: Name | Reference
    fixed_ips: tuple[FixedIP, ...] = Field(default=(), alias="fixedIPs")
    allowed_address_pairs: tuple[AddressPair, ...] = ()
    security_groups: tuple[Name | Reference, ...] | None = Field(
        default=None, description="Absent: those of the server; empty: none."
    )
    port_security: bool = True


class Subport(AnyPort):
    """A port whose packets reach the server through a trunk, in a VLAN of their own."""

    segmentation_id: int = Field(ge=1, le=4094, alias="segmentationID", description="The VLAN, as the guest sees it.")


class Port(AnyPort):
    """A port that is made for the server and goes with it."""

    vnic_type: Literal[
        "normal", "direct", "macvtap", "baremetal", "direct-physical", "virtio-forwarder", "smart-nic"
    ] = "normal"
    trunk: bool = Field(default=False, description="Make the port the parent of a trunk; it is where it has subports.")
    subports: tuple[Subport, ...] = Field(default=(), max_length=64)
    floating_ip: FloatingIP | None = Field(default=None, alias="floatingIP")

    @field_validator("subports")
    @classmethod
    def _each_in_a_vlan_of_its_own(cls, subports: tuple[Subport, ...]) -> tuple[Subport, ...]:
        if len({one.segmentation_id for one in subports}) < len(subports):
            raise ValueError("each needs a segmentationID of its own")
        return subports

    @property
    def has_trunk(self) -> bool:
        return self.trunk or bool(self.subports)


class BootVolume(_Model):
    """Boot from a volume made of the image; it goes with the server."""

    size_gib: int = Field(ge=1, alias="sizeGiB")
    type: Name | None = None


class Volume(_Model):
    """An empty volume that is made with the server and goes with it."""

    size_gib: int = Field(ge=1, alias="sizeGiB")
    type: Name | None = None
    tag: Tag | None = Field(default=None, description="How the guest finds the device in its metadata.")


class UserData(_Model):
    """User data from a Secret in the Machine's namespace; `$(NAME)` is filled in (see docs/providers/openstack.md)."""

    secret_name: SecretName
    key: Name = "userData"


class Updates(_Model):
    """What may be done to a server that exists, instead of replacing it."""

    resize: bool = Field(default=False, description="Another flavor: drain, then resize.")
    rebuild: bool = Field(
        default=False, description="Another image, kubelet or user data: drain, then rebuild on the same server."
    )


class ShapeHints(_Model):
    """What the flavor does not tell of the Node, for scaling from zero."""

    capacity: Mapping[str, Quantity] = {}
    labels: Mapping[str, str] = {}


class OpenStackMachineConfig(_Model):
    """One server."""

    api_version: Literal["openstack.nodewright.dev/v1alpha1"] = API_VERSION
    kind: Literal["OpenStackMachineConfig"] = KIND
    cloud: Cloud
    flavor: Name | FlavorReference
    image: Name | ImageReference
    ports: tuple[Port, ...] = Field(min_length=1, max_length=16)
    availability_zones: tuple[Name, ...] = Field(
        default=(),
        description="Servers are spread over these. Empty: the Machine's failure domain, or the cloud's choice.",
    )
    boot_volume: BootVolume | None = None
    volumes: tuple[Volume, ...] = Field(default=(), max_length=16)
    security_groups: tuple[Name | Reference, ...] = ()
    server_group: Name | NamedReference | None = None
    key_pair: Name | None = None
    config_drive: bool = False
    scheduler_hints: Mapping[str, str | tuple[str, ...]] = {}
    user_data: UserData | None = None
    metadata: Mapping[MetadataKey, Annotated[str, Field(max_length=255)]] = {}
    tags: tuple[Tag, ...] = Field(default=(), max_length=40)
    updates: Updates = Updates()
    shape: ShapeHints = ShapeHints()


def parse(config: Mapping[str, Any]) -> OpenStackMachineConfig:
    """Read a config that passed its JSON Schema.

    Raises pydantic.ValidationError (a ValueError) otherwise.
    """
    return OpenStackMachineConfig.model_validate(dict(config))


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the kind, with its defaults."""
    return OpenStackMachineConfig.model_json_schema(by_alias=True)
