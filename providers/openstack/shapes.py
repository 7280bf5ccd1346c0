"""What a Node on a flavor would offer, for scaling from zero. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from providers.base.contract import Shape
from providers.openstack.config import OpenStackMachineConfig

_ZONE = "topology.kubernetes.io/zone"
PODS = "110"
"""The kubelet's default."""
_CAPACITY = "capacity:"
"""Extra specs with this prefix say a capacity outright: ``capacity:hugepages-1Gi=4Gi``."""
_GPU = "nvidia.com/gpu"
_ALIAS = re.compile(r"gpu|nvidia|tesla|[ahlv]\d{1,3}s?\b|\bt4\b", re.IGNORECASE)
_AMD = re.compile(r"amd|instinct|mi\d{2,3}", re.IGNORECASE)
_PAGES = {"2MB": "hugepages-2Mi", "2048": "hugepages-2Mi", "1GB": "hugepages-1Gi", "1048576": "hugepages-1Gi"}


def shape_of(config: OpenStackMachineConfig, flavor: Mapping[str, Any], region: str) -> Shape:
    specs = {str(key): str(value) for key, value in (flavor.get("extra_specs") or {}).items()}
    disk = config.boot_volume.size_gib if config.boot_volume is not None else int(flavor.get("disk") or 0)
    capacity = {"cpu": str(flavor["vcpus"]), "memory": f"{flavor['ram']}Mi", "pods": PODS}
    if disk:
        capacity["ephemeral-storage"] = f"{disk}Gi"
    capacity |= dict(_devices(specs))
    capacity |= {key.removeprefix(_CAPACITY): value for key, value in specs.items() if key.startswith(_CAPACITY)}
    labels = {"kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": str(flavor["name"])}
    if region:
        labels["topology.kubernetes.io/region"] = region
    if len(config.availability_zones) == 1:
        labels[_ZONE] = config.availability_zones[0]
    if page := _PAGES.get(specs.get("hw:mem_page_size", "").upper().replace(" ", "")):
        labels["openstack.nodewright.dev/memory-pages"] = page
    tells = "" if _ZONE in config.shape.labels else _ZONE
    return Shape({**capacity, **config.shape.capacity}, {**labels, **config.shape.labels}, failure_domain_label=tells)


def _devices(specs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """GPUs: passed through whole by an alias, or virtual ones from Placement."""
    total: dict[str, int] = {}
    for entry in specs.get("pci_passthrough:alias", "").split(","):
        alias, _, count = entry.strip().rpartition(":")
        alias = alias or entry.strip()
        if _AMD.search(alias):
            total["amd.com/gpu"] = total.get("amd.com/gpu", 0) + _number(count)
        elif _ALIAS.search(alias):
            total[_GPU] = total.get(_GPU, 0) + _number(count)
    if "resources:VGPU" in specs:
        total[_GPU] = total.get(_GPU, 0) + _number(specs["resources:VGPU"])
    yield from ((name, str(count)) for name, count in total.items())


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 1
