"""Servers of Nova as hosts of the contract. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from providers.base.contract import Address, Host, HostState
from providers.base.errors import ErrorClass
from providers.openstack import ownership_tags
from providers.openstack.errors import of_fault

Server = Mapping[str, Any]

_STATES = {
    "ACTIVE": HostState.RUNNING,
    "MIGRATING": HostState.RUNNING,
    "REBOOT": HostState.RUNNING,
    "HARD_REBOOT": HostState.RUNNING,
    "PASSWORD": HostState.RUNNING,
    "BUILD": HostState.PENDING,
    "REBUILD": HostState.UPDATING,
    "RESIZE": HostState.UPDATING,
    "VERIFY_RESIZE": HostState.UPDATING,
    "REVERT_RESIZE": HostState.UPDATING,
    "SHUTOFF": HostState.STOPPED,
    "SUSPENDED": HostState.STOPPED,
    "PAUSED": HostState.STOPPED,
    "SHELVED": HostState.STOPPED,
    "SHELVED_OFFLOADED": HostState.STOPPED,
    "RESCUE": HostState.STOPPED,
    "ERROR": HostState.FAILED,
    "DELETED": HostState.DELETING,
    "SOFT_DELETED": HostState.DELETING,
}
_LAUNCHED, _TASK, _ZONE = "OS-SRV-USG:launched_at", "OS-EXT-STS:task_state", "OS-EXT-AZ:availability_zone"
_DELETIONS = {"deleting", "soft-deleting"}


def host_of(server: Server) -> Host:
    """The host that a server with our marks is.

    ``provider_id`` comes with the server's first start: one that the scheduler finds no place for is made again.
    """
    metadata = server.get("metadata") or {}
    state = state_of(server)
    return Host(
        id=str(server["id"]),
        machine_uid=ownership_tags.uid_of_server(server),
        name=str(server.get("name") or ""),
        provider_id=f"openstack:///{server['id']}" if was_launched(server) else "",
        state=state,
        spec_hash=str(metadata.get(ownership_tags.SPEC_HASH) or ""),
        addresses=_addresses(server),
        failure=of_fault(server.get("fault"))[1] if state is HostState.FAILED else "",
        failure_domain=zone_of(server),
        kubelet_version=str(metadata.get(ownership_tags.KUBELET) or ""),
        created_at=_time(server.get("created")),
        management_cluster=str(metadata.get(ownership_tags.MANAGEMENT_CLUSTER) or ""),
        rebooted=str(metadata.get(ownership_tags.REBOOTED) or "")[:63],
    )


def state_of(server: Server) -> HostState:
    if server.get(_TASK) in _DELETIONS:
        return HostState.DELETING
    return _STATES.get(str(server.get("status")), HostState.PENDING)


def was_launched(server: Server) -> bool:
    return bool(server.get(_LAUNCHED)) or str(server.get("status")) == "ACTIVE"


def zone_of(server: Server) -> str:
    return str(server.get(_ZONE) or "")


def found_no_place(server: Server) -> tuple[ErrorClass, str] | None:
    """Why a server never started for which there is no place or no quota now; None if that is not so."""
    if state_of(server) is not HostState.FAILED or was_launched(server):
        return None
    error_class, text = of_fault(server.get("fault"))
    return (error_class, text) if error_class in {ErrorClass.STOCK_OUT, ErrorClass.QUOTA_EXCEEDED} else None


def is_of_a_lost_cell(server: Server) -> bool:
    """Nova knows no more than that it exists: the database of its cell does not answer."""
    return server.get("status") == "UNKNOWN" and "metadata" not in server


def the_one(servers: Iterable[Server]) -> Server:
    """The host to keep among several with one UID: running before broken before deleting, then the oldest."""
    order = {HostState.DELETING: 2, HostState.FAILED: 1}
    return min(servers, key=lambda one: (order.get(state_of(one), 0), str(one.get("created")), str(one["id"])))


def _addresses(server: Server) -> tuple[Address, ...]:
    found = []
    for network in (server.get("addresses") or {}).values():
        for entry in network:
            floating = entry.get("OS-EXT-IPS:type") == "floating"
            found.append(Address("ExternalIP" if floating else "InternalIP", str(entry.get("addr"))))
    if found:
        found.append(Address("Hostname", str(server.get("name") or "")))
    return tuple(found)


def _time(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None
