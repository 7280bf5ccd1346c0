"""How much user data a cloud takes, and how user data is made to fit. Pure.

A provider declares the limit of its cloud in ``Registration.user_data_limit``; ``CLOUDS`` has those of well-known ones,
so that no two providers of one cloud differ.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

KIB: Final = 1024


@dataclass(frozen=True, slots=True)
class UserDataLimit:
    """``size``: the most that ``cloud`` takes, in bytes, or in characters of base64 where ``base64`` says so.

    ``gzip``: bytes that are no text reach the host as they are, so that cloud-init can unpack them there.
    ``source``: where the figure is written.
    """

    cloud: str
    size: int
    base64: bool = False
    gzip: bool = True
    source: str = ""

    def length(self, data: bytes) -> int:
        """As the cloud counts: 49,151 bytes are 65,536 characters of base64, which are more than Nova's 65,535."""
        return (len(data) + 2) // 3 * 4 if self.base64 else len(data)

    @property
    def unit(self) -> str:
        return "characters of base64" if self.base64 else "bytes"


CLOUDS: Final[Mapping[str, UserDataLimit]] = MappingProxyType(
    {
        "aws": UserDataLimit("EC2", 16 * KIB, source="EC2 user guide: 16 KB in raw form, before base64"),
        "azure": UserDataLimit("Azure", 65_535, source="Azure Compute API: osProfile.customData, before base64"),
        "cloudstack": UserDataLimit("CloudStack", 32 * KIB, base64=True, source="cluster-api-provider-cloudstack#12"),
        "digitalocean": UserDataLimit("DigitalOcean", 64 * KIB, gzip=False, source="DigitalOcean API: user_data"),
        "gcp": UserDataLimit("Compute Engine", 256 * KIB, gzip=False, source="Compute Engine: one metadata value"),
        "hetzner": UserDataLimit("Hetzner Cloud", 32 * KIB, gzip=False, source="Hetzner Cloud API: user_data"),
        "kubevirt": UserDataLimit("KubeVirt", 2 * KIB, source="kubevirt#2559: userData inline; a Secret takes more"),
        "linode": UserDataLimit("Linode", 65_535, source="cluster-api-provider-linode#342, before base64"),
        "openstack": UserDataLimit("Nova", 65_535, base64=True, source="Nova API: maxLength of user_data"),
        "vcd": UserDataLimit("Cloud Director", 64 * KIB, source="cluster-api-provider-cloud-director#656"),
        "vsphere": UserDataLimit("vSphere", 64 * KIB, base64=True, source="guestinfo, of a virtual machine"),
    }
)
"""By a short name. ``gzip`` is False where the API takes text only."""

_CLOUD_INIT = (
    b"#cloud-config", b"#!", b"## template:", b"#include", b"#part-handler", b"#cloud-boothook",
    b"Content-Type:", b"MIME-Version:",
)  # fmt: skip
"""How user data begins that cloud-init reads; it unpacks gzip first. Ignition and others may not."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is handed to the cloud. ``size``: as the cloud counts."""

    data: bytes
    size: int
    compressed: bool = False


@dataclass(frozen=True, slots=True)
class TooLarge:
    """Neither form fits. ``plain`` and ``compressed``: as the cloud counts; 0 if it can't be compressed."""

    limit: UserDataLimit
    plain: int
    compressed: int = 0

    @property
    def message(self) -> str:
        packed = f", {self.compressed} with gzip" if self.compressed else ""
        return (
            f"user data is too large: {self.plain} {self.limit.unit}{packed}; {self.limit.cloud} takes "
            f"{self.limit.size}: bring large files with the image, or let a command fetch them"
        )


def is_compressible(data: bytes) -> bool:
    """Whether cloud-init is going to read ``data``, and it is not compressed already."""
    return data.lstrip()[:64].startswith(_CLOUD_INIT)


def fit(data: bytes, limit: UserDataLimit | None) -> Fitted | TooLarge:
    """``data`` as it is if it fits, else with gzip, the same bytes each time. Without a limit everything fits.

    20,000 bytes of YAML are more than EC2 takes; their 5,000 bytes of gzip are not.
    """
    if limit is None:
        return Fitted(data, len(data))
    plain = limit.length(data)
    if plain <= limit.size:
        return Fitted(data, plain)
    if not limit.gzip or not is_compressible(data):
        return TooLarge(limit, plain)
    packed = gzip.compress(data, 9, mtime=0)
    size = limit.length(packed)
    return Fitted(packed, size, compressed=True) if size <= limit.size else TooLarge(limit, plain, size)
