"""Bodies of the requests that make things. Pure: resolved ids in, JSON out."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.names import NODE_OWNED_BY_LABEL
from api.noderules import kubelet_may_set
from providers.base.contract import HostRequest
from providers.base.errors import ErrorClass, ProviderError
from providers.base.user_data import CLOUDS, TooLarge, fit
from providers.openstack import owned_tags, ownership_tags
from providers.openstack.config import AnyPort, OpenStackMachineConfig, Port, Subport

USER_DATA_LIMIT = CLOUDS["openstack"]
Thing = Mapping[str, Any]
_PLAIN = re.compile(r"([A-Za-z0-9][-A-Za-z0-9._/=,:+~]*)?", re.ASCII)
_VARIABLE = re.compile(r"\$\(([A-Z_]+)\)")


@dataclass(frozen=True, slots=True)
class PortPlace:
    """What a port's names stand for: ids of its network, subnets (in the order of ``fixedIPs``) and groups."""

    network: str
    subnets: tuple[str, ...]
    security_groups: tuple[str, ...]
    floating_network: str = ""


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """The same of a server. ``zone`` and ``server_group`` are "" for none."""

    flavor: str
    image: str
    zone: str
    server_group: str = ""


def port_name(request: HostRequest, index: int) -> str:
    return f"{request.identity.name}-{index}"[:255]


def ports_of(request: HostRequest, config: OpenStackMachineConfig) -> dict[str, AnyPort]:
    """All ports of a server by their names, subports too."""
    ports: dict[str, AnyPort] = {}
    for index, port in enumerate(config.ports):
        ports[port_name(request, index)] = port
        ports |= {subport_name(request, index, one): one for one in port.subports}
    return ports


def subport_name(request: HostRequest, index: int, subport: Subport) -> str:
    return f"{request.identity.name[:240]}-{index}.{subport.segmentation_id}"


def is_of_subport(name: str) -> bool:
    return "." in name.rpartition("-")[2]


def trunk_body(request: HostRequest, index: int, port: Port, ids: Mapping[str, str]) -> dict[str, Any]:
    """``ids``: of all ports, by their names."""
    name = port_name(request, index)
    subports = [
        {
            "port_id": ids[subport_name(request, index, one)],
            "segmentation_type": "vlan",
            "segmentation_id": one.segmentation_id,
        }
        for one in port.subports
    ]
    return {"port_id": ids[name], "name": name, **({"sub_ports": subports} if subports else {})}


def port_bodies(
    request: HostRequest, config: OpenStackMachineConfig, places: Mapping[str, PortPlace]
) -> list[dict[str, Any]]:
    """Requests for the server's own ports. ``places``: by the names of ports."""
    named = ((port_name(request, index), port) for index, port in enumerate(config.ports))
    return [_port_body(name, port, places[name]) for name, port in named]


def subport_bodies(
    request: HostRequest, config: OpenStackMachineConfig, places: Mapping[str, PortPlace], ports: Mapping[str, Thing]
) -> list[dict[str, Any]]:
    """Requests for the ports behind trunks. ``ports``: the existing ones, the server's own among them.

    The interface of a VLAN in the guest has the address of the one below it, and so has the subport. A network has each
    address but once: where it would be there twice, the cloud gives one.
    """
    bodies = []
    for index, port in enumerate(config.ports):
        parent = port_name(request, index)
        networks = {places[parent].network}
        for subport in port.subports:
            name = subport_name(request, index, subport)
            body = _port_body(name, subport, places[name])
            if body["network_id"] not in networks:
                body["mac_address"] = ports[parent]["mac_address"]
            networks.add(body["network_id"])
            bodies.append(body)
    return bodies


def _port_body(name: str, port: AnyPort, place: PortPlace) -> dict[str, Any]:
    body: dict[str, Any] = {"name": name, "network_id": place.network}
    if isinstance(port, Port) and port.vnic_type != "normal":
        body["binding:vnic_type"] = port.vnic_type
    if port.fixed_ips:
        subnets = iter(place.subnets)
        body["fixed_ips"] = [
            {
                **({"subnet_id": next(subnets)} if fixed.subnet is not None else {}),
                **({"ip_address": fixed.address} if fixed.address else {}),
            }
            for fixed in port.fixed_ips
        ]
    return {**body, **port_properties(port, place, new=True)}


def port_properties(port: AnyPort, place: PortPlace, new: bool = False) -> dict[str, Any]:
    """What can be changed on a port that exists; of a new one only what differs from the cloud's defaults."""
    body: dict[str, Any] = {}
    if not port.port_security or not new:
        body["port_security_enabled"] = port.port_security
    wants_groups = port.security_groups is not None or bool(place.security_groups)
    if port.port_security and wants_groups:
        body["security_groups"] = list(place.security_groups)
    elif not port.port_security and not new:
        body["security_groups"] = []
    if port.allowed_address_pairs or not new:
        body["allowed_address_pairs"] = [
            {"ip_address": pair.ip_address, **({"mac_address": pair.mac_address} if pair.mac_address else {})}
            for pair in port.allowed_address_pairs
        ]
    return body


def floating_ip_body(port_id: str, network: str, description: str) -> dict[str, Any]:
    return {"floating_network_id": network, "port_id": port_id, "description": description}


def server_body(
    request: HostRequest, config: OpenStackMachineConfig, place: ServerPlace, ports: Sequence[str], user_data: str
) -> dict[str, Any]:
    """The whole body of POST /servers; ``user_data`` is base64, "" for none."""
    server: dict[str, Any] = {
        "name": request.identity.name[:255],
        "flavorRef": place.flavor,
        "imageRef": place.image,
        "networks": [{"port": port} for port in ports],
        "metadata": owned_tags.metadata_of_new(request, config),
        "tags": ownership_tags.tags_of(request, config),
    }
    disks = _disks(config, place.image)
    if disks:
        server["block_device_mapping_v2"] = disks
    if config.boot_volume is not None:
        server["imageRef"] = ""
    if place.zone:
        server["availability_zone"] = place.zone
    if config.key_pair:
        server["key_name"] = config.key_pair
    if config.config_drive:
        server["config_drive"] = True
    if user_data:
        server["user_data"] = user_data
    hints: dict[str, Any] = {
        key: value if isinstance(value, str) else list(value) for key, value in config.scheduler_hints.items()
    }
    if place.server_group:
        hints["group"] = place.server_group
    return {"server": server, **({"OS-SCH-HNT:scheduler_hints": hints} if hints else {})}


def user_data_of(text: bytes, request: HostRequest) -> str:
    """Base64 of ``text`` with ``$(NAME)`` filled in; names that mean nothing here stay as they are.

    Raises ProviderError if it is larger than Nova takes, with gzip too.
    """
    values = variables(request)
    try:
        filled = _VARIABLE.sub(lambda match: _literal(match, values), text.decode()).encode()
    except UnicodeDecodeError:
        filled = text  # compressed, as cloud-init allows
    return encoded_user_data(filled)


def encoded_user_data(user_data: bytes) -> str:
    """Base64 of ``user_data`` as it is, or of its gzip where only that fits. Raises ProviderError if neither does."""
    fitted = fit(user_data, USER_DATA_LIMIT)
    if isinstance(fitted, TooLarge):
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, fitted.message)
    return base64.b64encode(fitted.data).decode()


def _literal(match: re.Match[str], values: Mapping[str, str]) -> str:
    """A value that stands for itself in a shell, YAML, JSON and a unit of systemd, quoted there or not.

    Which of them the variable stands in is not known, so nothing can be quoted for it: the rest is refused.
    """
    value = values.get(match[1])
    if value is None:
        return match[0]
    if not _PLAIN.fullmatch(value):
        problem = f"user data: the value of $({match[1]}) has characters that a script could take for its own"
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, problem)
    return value


def why_too_large(user_data: bytes) -> str:
    """ "" if Nova takes user data of this size."""
    fitted = fit(user_data, USER_DATA_LIMIT)
    return fitted.message if isinstance(fitted, TooLarge) else ""


def variables(request: HostRequest) -> Mapping[str, str]:
    """What user data may ask for."""
    node, versions = request.node, request.versions
    # A kubelet can't register annotations. The controller puts this into one, and takes the label off the Node.
    owned = {**node.labels, NODE_OWNED_BY_LABEL: request.identity.machine_uid}
    labels = ((key, value) for key, value in sorted(owned.items()) if kubelet_may_set(key))
    taints = (f"{t.key}={t.value}:{t.effect}" if t.value else f"{t.key}:{t.effect}" for t in node.taints)
    return {
        "MACHINE_NAME": request.identity.name,
        "MACHINE_NAMESPACE": request.identity.namespace,
        "MACHINE_UID": request.identity.machine_uid,
        "CLUSTER_NAME": request.identity.cluster,
        "KUBELET_VERSION": versions.kubelet,
        "CONTAINER_RUNTIME": versions.container_runtime,
        "NODE_LABELS": ",".join(f"{key}={value}" for key, value in labels),
        "NODE_TAINTS": ",".join(taints),
    }


def _disks(config: OpenStackMachineConfig, image: str) -> list[dict[str, Any]]:
    """Nova makes the volumes itself and removes them with the server, so that none can be left behind by us."""
    if config.boot_volume is None and not config.volumes:
        return []
    root: dict[str, Any] = {"boot_index": 0, "uuid": image, "source_type": "image", "delete_on_termination": True}
    if config.boot_volume is None:
        disks = [{**root, "destination_type": "local"}]
    else:
        disks = [{**root, "destination_type": "volume", "volume_size": config.boot_volume.size_gib}]
        if config.boot_volume.type:
            disks[0]["volume_type"] = config.boot_volume.type
    for volume in config.volumes:
        disk: dict[str, Any] = {
            "boot_index": -1,
            "source_type": "blank",
            "destination_type": "volume",
            "volume_size": volume.size_gib,
            "delete_on_termination": True,
        }
        disk |= {"volume_type": volume.type} if volume.type else {}
        disk |= {"tag": volume.tag} if volume.tag else {}
        disks.append(disk)
    return disks
