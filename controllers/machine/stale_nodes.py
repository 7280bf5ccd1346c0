"""Nodes of the Machine whose hosts are gone or go: those of its present host, and of hosts that it had before.

A host may register its Node so late that the Machine sees it only when the host was replaced already. Such a Node is
known by its own record of the Machine's UID and by the providerID of the replaced host, which stays in the status
until a Node of the next host has joined: it would belong to nobody, and it bears the name under which the next host
registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.kernel import node_owner
from controllers.kernel.bound_hosts import is_seen
from controllers.kernel.refs import MACHINE, Obj, key_of, mapping
from controllers.kernel.view import PROVIDER_ID, HostAbsent, HostPresent, HostRead, View
from controllers.machine import node_link
from controllers.machine.node_link import Link, Linked
from providers.base.contract import Host


def replaced_host(machine: Obj) -> str:
    """Identity of the host that is being replaced, "" if none is (``status.replacement``)."""
    return str(_replacement(machine).get("providerID") or "")


def earlier_hosts(machine: Obj) -> tuple[str, ...]:
    """Those that were replaced before it, and whose successors never joined; oldest first."""
    found = _replacement(machine).get("earlierProviderIDs")
    return tuple(str(provider_id) for provider_id in found if provider_id) if isinstance(found, list) else ()


def is_of(host: Host, identity: str) -> bool:
    """Whether ``host`` is the one that was recorded as ``identity``."""
    return bool(identity) and identity in {host.provider_id, host.id}


def of_any_host(machine: Obj, link: Link, view: View) -> tuple[Obj, ...]:
    """Nodes of this Machine's present or earlier hosts, to be deleted when those are gone; never another's.

    None without a proof: a Node is its own by the provider's host, or is recorded for it.
    """
    found = {node["metadata"]["name"]: node for node in [link.node]} if isinstance(link, Linked) else {}
    return tuple((found | {node["metadata"]["name"]: node for node in node_link.recorded_for(machine, view)}).values())


def of_hosts_gone(machine: Obj, read: HostRead, view: View) -> tuple[Obj, ...]:
    """Nodes of this Machine's replaced hosts that are gone for sure; never one whose providerID a Machine has now.

    A Machine of another namespace has it if its host was seen: else whoever writes it there would keep the Node.
    """
    gone = [*earlier_hosts(machine)]
    replaced = replaced_host(machine)
    if replaced and replaced != node_link.provider_id_of(machine) and _is_gone(replaced, read):
        gone.append(replaced)
    here = key_of(machine).namespace
    free = {
        provider_id
        for provider_id in gone
        if not any(key_of(o).namespace == here or is_seen(o) for o in view.indexed(MACHINE, PROVIDER_ID, provider_id))
    }
    recorded = node_link.recorded_for(machine, view) if free else ()
    return tuple(node for node in recorded if node_owner.provider_id_of(node) in free)


def _is_gone(identity: str, read: HostRead) -> bool:
    match read:
        case HostAbsent():
            return True
        case HostPresent(host):
            return not is_of(host, identity)
        case _:
            return False


def _replacement(machine: Obj) -> Mapping[str, Any]:
    return mapping(mapping(machine.get("status")).get("replacement"))
