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
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, use_attribute_docstrings=True
    )


_ONE_OF_ALL = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})


class FlavorFilter(_Model):
    """The smallest flavor that has at least this much: by vCPUs, then memory, then disk, then name."""

    min_cpus: int = Field(default=0, ge=0, alias="minCPUs")
    """vCPUs at least."""
    min_memory_mib: int = Field(default=0, ge=0, alias="minMemoryMiB")
    """Memory at least, in MiB."""
    min_disk_gib: int = Field(default=0, ge=0, alias="minDiskGiB")
    """Disk at least, in GiB."""


class FlavorReference(_Model):
    model_config = _ONE_OF_ALL

    name: Name | None = None
    """By its name."""
    id: Name | None = None
    """By its ID, which need not be a UUID."""
    filter: FlavorFilter | None = None
    """The smallest flavor that has at least this much."""


class ImageFilter(_Model):
    """The newest active image that has all of these tags and properties."""

    tags: tuple[Name, ...] = ()
    """Tags that it has, all of them."""
    properties: Mapping[str, str] = Field(default={}, description="Such as os_distro: debian.")


class ImageReference(_Model):
    model_config = _ONE_OF_ALL

    name: Name | None = None
    """By its name."""
    id: Uuid | None = None
    """By its UUID."""
    filter: ImageFilter | None = None
    """The newest active image that fits."""


class TagFilter(_Model):
    tags: tuple[Name, ...] = Field(min_length=1)
    """Tags that it has, all of them."""


class Reference(_Model):
    """A network, subnet or security group."""

    model_config = _ONE_OF_ALL

    name: Name | None = None
    """By its name."""
    id: Uuid | None = None
    """By its UUID."""
    filter: TagFilter | None = None
    """The one that fits."""


class NamedReference(_Model):
    model_config = _ONE_OF_ALL

    name: Name | None = None
    """By its name."""
    id: Uuid | None = None
    """By its UUID."""


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
    """Where the address is from; absent: the cloud's choice."""
    address: Annotated[str, Field(pattern=r"^[0-9A-Fa-f.:]+$")] | None = None
    """Exactly this one; absent: a free one."""


class AddressPair(_Model):
    ip_address: Cidr
    """An address or a CIDR."""
    mac_address: Annotated[str, Field(pattern=r"^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$")] | None = None
    """Absent: that of the port."""


class FloatingIP(_Model):
    network: Name | Reference = Field(description="The external network.")


class AnyPort(_Model):
    """What ports of servers and those behind them have in common."""

    network: Name | Reference
    """Where the port is."""
    fixed_ips: tuple[FixedIP, ...] = Field(default=(), alias="fixedIPs")
    """Its addresses; empty: one of the cloud's choice."""
    allowed_address_pairs: tuple[AddressPair, ...] = ()
    """Addresses beside its own from which it may send."""
    security_groups: tuple[Name | Reference, ...] | None = Field(
        default=None, description="Absent: those of the server; empty: none."
    )
    port_security: bool = True
    """Whether the cloud checks addresses and applies security groups."""


class Subport(AnyPort):
    """A port whose packets reach the server through a trunk, in a VLAN of their own."""

    segmentation_id: int = Field(ge=1, le=4094, alias="segmentationID", description="The VLAN, as the guest sees it.")


class Port(AnyPort):
    """A port that is made for the server and goes with it."""

    vnic_type: Literal[
        "normal", "direct", "macvtap", "baremetal", "direct-physical", "virtio-forwarder", "smart-nic"
    ] = "normal"
    """How the port is bound to the server, as Neutron has it."""
    trunk: bool = Field(default=False, description="Make the port the parent of a trunk; it is where it has subports.")
    subports: tuple[Subport, ...] = Field(default=(), max_length=64)
    """Ports behind its trunk, each in a VLAN of its own."""
    floating_ip: FloatingIP | None = Field(default=None, alias="floatingIP")
    """An address of an external network; it goes with the port."""

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
    """In GiB."""
    type: Name | None = None
    """Cinder's volume type; absent: the cloud's default."""


class Volume(_Model):
    """An empty volume that is made with the server and goes with it."""

    size_gib: int = Field(ge=1, alias="sizeGiB")
    """In GiB."""
    type: Name | None = None
    """Cinder's volume type; absent: the cloud's default."""
    tag: Tag | None = Field(default=None, description="How the guest finds the device in its metadata.")


class UserData(_Model):
    """User data from a Secret in the Machine's namespace; `$(NAME)` is filled in (see docs/providers/openstack.md)."""

    secret_name: SecretName
    """A Secret in the Machine's namespace."""
    key: Name = "userData"
    """The key of the Secret that holds it."""


class Updates(_Model):
    """What may be done to a server that exists, instead of replacing it."""

    resize: bool = Field(default=False, description="Another flavor: drain, then resize.")
    rebuild: bool = Field(
        default=False, description="Another image, kubelet or user data: drain, then rebuild on the same server."
    )


class ShapeHints(_Model):
    """What the flavor does not tell of the Node, for scaling from zero."""

    capacity: Mapping[str, Quantity] = {}
    """Resource to quantity, such as nvidia.com/gpu: 1."""
    labels: Mapping[str, str] = {}
    """Labels that the Node is going to have."""


class OpenStackMachineConfig(_Model):
    """One server."""

    api_version: Literal["openstack.nodewright.dev/v1alpha1"] = API_VERSION
    """Version of this schema."""
    kind: Literal["OpenStackMachineConfig"] = KIND
    """Names this schema."""
    cloud: Cloud
    flavor: Name | FlavorReference
    """How large the server is: a flavor's name, or an object with one of name, id and filter."""
    image: Name | ImageReference
    """What it boots: an image's name, or an object with one of name, id and filter."""
    ports: tuple[Port, ...] = Field(min_length=1, max_length=16)
    """Ports that are made for the server and go with it, in the order of its interfaces."""
    availability_zones: tuple[Name, ...] = Field(
        default=(),
        description="Servers are spread over these. Empty: the Machine's failure domain, or the cloud's choice.",
    )
    boot_volume: BootVolume | None = None
    volumes: tuple[Volume, ...] = Field(default=(), max_length=16)
    """Empty volumes that are made with the server and go with it."""
    security_groups: tuple[Name | Reference, ...] = ()
    """Security groups of its ports that name none."""
    server_group: Name | NamedReference | None = None
    """A server group that exists, for its (anti-)affinity."""
    key_pair: Name | None = None
    """A key pair that exists, for SSH."""
    config_drive: bool = False
    """Whether metadata is on a drive of the server, too."""
    scheduler_hints: Mapping[str, str | tuple[str, ...]] = {}
    """For Nova's scheduler, as it is."""
    user_data: UserData | None = None
    metadata: Mapping[MetadataKey, Annotated[str, Field(max_length=255)]] = {}
    """Of the server, beside Nodewright's own."""
    tags: tuple[Tag, ...] = Field(default=(), max_length=40)
    """Of the server, beside Nodewright's own."""
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
