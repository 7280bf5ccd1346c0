"""A server becomes that of another Machine: its own mark in one request, and then those of what was made beside it.

    server (new mark, and the former UID) -> tags -> ports -> floating IPs -> the former UID goes

While a server names a former UID, parts of that count as its own (``inventory``). So a run that is cut short leaves
nothing behind that looks like nobody's, and the next one goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from providers.base.contract import Host, HostIdentity
from providers.base.errors import ErrorClass, ProviderError
from providers.openstack import hosts, ownership_tags
from providers.openstack.inventory import Counter, Inventory
from providers.openstack.ownership_tags import FORMER, MANAGEMENT_CLUSTER, UID
from providers.openstack.paths import one_of
from providers.openstack.session import COMPUTE, NETWORK, Requests

Thing = Mapping[str, Any]


class Handover:
    def __init__(self, requests: Requests, counter: Counter) -> None:
        self._requests = requests
        self._counter = counter

    async def rebind(self, host: Host, old: HostIdentity, new: HostIdentity) -> None:
        """See ``RebindsHosts.rebind``."""
        self._counter.expect_floating_ips()  # another program has made the server
        inventory = await self._counter.take(with_parts=True)
        server = _server_of(host, inventory)
        metadata = server.get("metadata") or {}
        if not _is_of(metadata, new):
            if not _is_of(metadata, old) or metadata.get(FORMER):
                raise ProviderError(ErrorClass.CONFLICT, f"server {host.id} is not that of Machine {_title(old)}")
            if inventory.servers.get(new.machine_uid):
                raise ProviderError(ErrorClass.CONFLICT, f"Machine {_title(new)} has a server already")
            await self._note(host.id, {**ownership_tags.marks_of(new), FORMER: old.machine_uid})
        elif not metadata.get(FORMER):
            return
        former = str(metadata.get(FORMER) or old.machine_uid)
        await self._parts(host.id, server, inventory, former, new.machine_uid)
        await self._take_away(f"{one_of('servers', host.id)}/metadata/{quote(FORMER, safe='')}")

    async def _parts(self, identity: str, server: Thing, inventory: Inventory, old: str, new: str) -> None:
        """What still has the mark of ``old``. The census counts it as that of whichever Machine had the server then."""
        tags = one_of("servers", identity, "tags")
        await self._requests.change(COMPUTE, "PUT", f"{tags}/{quote(ownership_tags.tag_of(new), safe='')}")
        if ownership_tags.tag_of(old) in (server.get("tags") or ()):
            await self._take_away(f"{tags}/{quote(ownership_tags.tag_of(old), safe='')}")
        assert inventory.parts is not None
        for port in _marked(inventory.parts.ports.values(), old):
            body = {"description": ownership_tags.renamed(port, new)}
            await self._requests.change(NETWORK, "PUT", one_of("ports", port["id"]), {"port": body})
        for address in _marked(inventory.parts.floating_ips.values(), old):
            # Some versions of Neutron take an update that names no port for one that takes the port away.
            held = {"description": ownership_tags.renamed(address, new), "port_id": address.get("port_id")}
            await self._requests.change(NETWORK, "PUT", one_of("floatingips", address["id"]), {"floatingip": held})

    async def _note(self, identity: str, metadata: Mapping[str, str]) -> None:
        path = one_of("servers", identity, "metadata")
        await self._requests.change(COMPUTE, "POST", path, {"metadata": dict(metadata)})

    async def _take_away(self, path: str) -> None:
        try:
            await self._requests.change(COMPUTE, "DELETE", path)
        except ProviderError as error:
            if error.error_class is not ErrorClass.NOT_FOUND:
                raise


def _server_of(host: Host, inventory: Inventory) -> Thing:
    """Raises ProviderError: NotFound if there is no such server, Conflict if it is not what a Machine goes on with."""
    for servers in inventory.servers.values():
        found = next((one for one in servers if str(one["id"]) == host.id), None)
        if found is not None:
            if found is not hosts.the_one(servers):
                raise ProviderError(ErrorClass.CONFLICT, f"its Machine has another server beside {host.id}")
            return found
    raise ProviderError(ErrorClass.NOT_FOUND, f"there is no server {host.id} of a Machine")


def _is_of(metadata: Thing, identity: HostIdentity) -> bool:
    """A server without a mark of its management cluster was made before there were any."""
    mark = str(metadata.get(MANAGEMENT_CLUSTER) or "")
    return metadata.get(UID) == identity.machine_uid and mark in {"", identity.management_cluster}


def _marked(parts: Iterable[tuple[Thing, ...]], uid: str) -> Iterable[Thing]:
    return (part for group in parts for part in group if ownership_tags.uid_of_part(part) == uid)


def _title(identity: HostIdentity) -> str:
    return f"{identity.namespace}/{identity.name}"
