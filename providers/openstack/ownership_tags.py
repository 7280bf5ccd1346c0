"""How a thing of the cloud says whose it is: metadata of servers, descriptions of ports and floating IPs. Pure.

Servers have tags too, for people and their tools. Tags of ports would be the better mark than descriptions, but a cloud
without Neutron's extension ``tag-ports-during-bulk-creation`` leaves them out of a new port without a word, and a port
that is tagged by a second request is nobody's in between.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from providers.base.contract import HostIdentity, HostRequest
from providers.openstack.config import OpenStackMachineConfig

TAG: Final = "nodewright"
_MACHINE_TAG = "nodewright-machine-"
_CLUSTER_TAG = "nodewright-cluster-"

UID: Final = "nodewright-machine-uid"
MACHINE: Final = "nodewright-machine"
CLUSTER: Final = "nodewright-cluster"
MANAGEMENT_CLUSTER: Final = "nodewright-management-cluster"
SPEC_HASH: Final = "nodewright-spec-hash"
PARTS: Final = "nodewright-parts"
KUBELET: Final = "nodewright-kubelet"
BOOTSTRAP: Final = "nodewright-bootstrap"
REBOOT: Final = "nodewright-reboot"
REBOOTED: Final = "nodewright-rebooted"
FORMER: Final = "nodewright-former-machine-uid"
"""Keys of a server's metadata."""
LASTING: Final = frozenset({BOOTSTRAP, REBOOT, REBOOTED, FORMER})
"""Those that another spec does not change."""
KEYS: Final = frozenset({UID, MACHINE, CLUSTER, MANAGEMENT_CLUSTER, SPEC_HASH, PARTS, KUBELET, *LASTING})
"""All of them; those of a config must differ."""

IN_PLACE = frozenset({"ports"})
RESIZES = frozenset({"flavor"})
REBUILDS = frozenset({"image", "data", "software"})


def tag_of(machine_uid: str) -> str:
    return f"{_MACHINE_TAG}{machine_uid}"


def cluster_tag_of(cluster_uid: str) -> str:
    """The whole description of what is made for a Cluster."""
    return f"{_CLUSTER_TAG}{cluster_uid}"


def uid_of_part(part: Mapping[str, Any]) -> str:
    """The Machine's UID in the description of a port or floating IP, "" if none."""
    mark = str(part.get("description") or "").partition(" ")[0]
    return mark.removeprefix(_MACHINE_TAG) if mark.startswith(_MACHINE_TAG) else ""


def renamed(part: Mapping[str, Any], machine_uid: str) -> str:
    """The description of a port or floating IP once it is another Machine's; the digest stays."""
    _, space, digest = str(part.get("description") or "").partition(" ")
    return f"{tag_of(machine_uid)}{space}{digest}"


def description_of(request: HostRequest, config: OpenStackMachineConfig) -> str:
    """Of ports and floating IPs: whose they are, and a digest of what they were made for."""
    whole = config.model_dump(mode="json")
    ports = [_part_of_port(port, lambda _key: True) for port in whole["ports"]]
    return f"{tag_of(request.identity.machine_uid)} {_digest([ports, whole['security_groups']])}"


def is_for_another_config(part: Mapping[str, Any], wanted: str) -> bool:
    """Whether a port says that it was made for another config than one of description ``wanted``."""
    text = str(part.get("description") or "")
    return " " in text and text != wanted


def uid_of_server(server: Mapping[str, Any]) -> str:
    return str((server.get("metadata") or {}).get(UID) or "")


def pool_of(machine: str) -> str:
    """The group that is spread together: Machines of one set have equal names up to their number."""
    return machine.rpartition("-")[0]


def machine_of(request: HostRequest) -> str:
    return _title_of(request.identity)


def marks_of(identity: HostIdentity) -> dict[str, str]:
    """Whose a server is, in its metadata."""
    marks = {
        UID: identity.machine_uid,
        MACHINE: _title_of(identity),
        CLUSTER: identity.cluster[:255],
        MANAGEMENT_CLUSTER: identity.management_cluster,
    }
    return {key: value for key, value in marks.items() if value}


def bootstrap_format(request: HostRequest, config: OpenStackMachineConfig) -> str:
    """The form of the bootstrap data that a server is made with, "" for none: user data of the config comes first."""
    reference = request.bootstrap
    return "" if config.user_data is not None or reference is None or reference.format == "none" else reference.format


def was_bootstrapped(server: Mapping[str, Any]) -> bool:
    """Whether the server was made with bootstrap data."""
    return bool((server.get("metadata") or {}).get(BOOTSTRAP))


def machine_of_server(server: Mapping[str, Any]) -> str:
    return str((server.get("metadata") or {}).get(MACHINE) or "")


def metadata_of(request: HostRequest, config: OpenStackMachineConfig) -> dict[str, str]:
    """The metadata that a server has of ``config``, and what it says of itself once it is as ``request`` wants it."""
    ownership_tags = {
        **marks_of(request.identity),
        SPEC_HASH: request.spec_hash[:255],
        PARTS: parts_text(parts_of(request, config)),
        KUBELET: request.versions.kubelet[:255],
    }
    return {**config.metadata, **{key: value for key, value in ownership_tags.items() if value}}


def tags_of(request: HostRequest, config: OpenStackMachineConfig) -> list[str]:
    return list(dict.fromkeys([TAG, tag_of(request.identity.machine_uid), *config.tags]))


def parts_of(request: HostRequest, config: OpenStackMachineConfig) -> dict[str, str]:
    """A short digest of each part of a config that changes in a way of its own."""
    versions = request.versions
    whole = config.model_dump(mode="json")
    ports = [_part_of_port(port, lambda key: key not in _PROPERTIES) for port in whole["ports"]]
    properties = [_part_of_port(port, lambda key: key in _PROPERTIES) for port in whole["ports"]]
    parts: dict[str, Any] = {
        "flavor": whole["flavor"],
        "image": whole["image"],
        "volumes": [whole["boot_volume"], whole["volumes"]],
        "networks": ports,
        "ports": [properties, whole["security_groups"]],
        "group": [whole["server_group"], whole["scheduler_hints"]],
        "key": whole["key_pair"],
        "drive": whole["config_drive"],
        "data": whole["user_data"],
        "software": [versions.kubelet, versions.control_plane, versions.container_runtime],
    }
    return {name: _digest(value) for name, value in parts.items()}


def parts_text(parts: Mapping[str, str]) -> str:
    return ",".join(f"{name}={digest}" for name, digest in parts.items())


def changed_parts(server: Mapping[str, Any], wanted: Mapping[str, str]) -> set[str]:
    """The parts in which a server differs from what is wanted; all of them if it doesn't say."""
    parts = str((server.get("metadata") or {}).get(PARTS) or "")
    have = dict(part.split("=", 1) for part in parts.split(",") if "=" in part)
    return {name for name, digest in wanted.items() if have.get(name) != digest}


_PROPERTIES = {"allowed_address_pairs", "security_groups", "port_security"}


def _title_of(identity: HostIdentity) -> str:
    return f"{identity.namespace}/{identity.name}"[:255]


def _part_of_port(port: Mapping[str, Any], takes: Callable[[str], bool]) -> dict[str, Any]:
    """Says nothing of subports where there are none: the digests of servers that were made before there were any."""
    part = {key: value for key, value in port.items() if key != "subports" and takes(key)}
    subports = port.get("subports") or ()
    return {**part, **({"subports": [_part_of_port(one, takes) for one in subports]} if subports else {})}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]
