"""Rules on a Cluster's spec."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from api.faults import FieldError, child


def network(found: Mapping[str, Any]) -> Iterator[FieldError]:
    """Ranges must be networks in CIDR notation, and ranges of Pods and Services may not overlap."""
    ranges: dict[str, Any] = {}
    for part in ("services", "pods"):
        blocks = child(found, part).get("cidrBlocks")
        for index, block in enumerate(blocks if isinstance(blocks, list) else ()):
            path = f"spec.clusterNetwork.{part}.cidrBlocks[{index}]"
            try:
                ranges[path] = ipaddress.ip_network(block if isinstance(block, str) else "")
            except ValueError:
                yield FieldError(path, f"{block!r} is not a network like 10.96.0.0/16")
    paths = list(ranges)
    for index, path in enumerate(paths):
        for other in paths[:index]:
            if ranges[path].version == ranges[other].version and ranges[path].overlaps(ranges[other]):
                yield FieldError(path, f"{ranges[path]} overlaps {other} ({ranges[other]})")


def virtual_address(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    """kube-vip announces an address, and the endpoint is the one that it is to announce."""
    if not child(child(child(spec, "bootstrap"), "controlPlane"), "virtualAddress"):
        return
    host, path = child(spec, "controlPlaneEndpoint").get("host"), "spec.controlPlaneEndpoint.host"
    try:
        ipaddress.ip_address(host if isinstance(host, str) else "")
    except ValueError:
        why = "must be an IP address with bootstrap.controlPlane.virtualAddress: it is the address that is announced"
        yield FieldError(path, why)
