"""Make one server with its ports: find what is there already, make what is missing, undo what the cloud refused.

    census -> ports -> subports -> trunks -> floating IPs -> server

Killed anywhere, the next call goes on: ports carry the Machine's UID from the request that makes them. They are the
second lock against a second server too: Nova refuses a server whose port another one uses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from providers.base.contract import BOOTSTRAP_DATA, BootstrapFormat, Host, HostRequest, HostState
from providers.base.errors import ErrorClass, ProviderError
from providers.openstack import hosts, ownership_tags, requests
from providers.openstack.config import AnyPort, OpenStackMachineConfig, Port
from providers.openstack.errors import Ambiguous, Ended, is_about_the_zone
from providers.openstack.inventory import Counter, Inventory
from providers.openstack.leftovers import Leftovers
from providers.openstack.lookup import Lookup
from providers.openstack.requests import PortPlace, ServerPlace
from providers.openstack.session import COMPUTE, NETWORK, Requests
from providers.openstack.zones import Zones

UNSURE = 20.0
"""Seconds for which nothing is made again after a POST of which nobody knows whether it was carried out."""

_FOR_GOOD = {
    ErrorClass.QUOTA_EXCEEDED,
    ErrorClass.STOCK_OUT,
    ErrorClass.INVALID_CONFIGURATION,
    ErrorClass.NOT_FOUND,
}
"""What will not pass by itself soon; what was made so far is not kept waiting for it."""

BOOTSTRAP_FORMATS: Final[tuple[BootstrapFormat, ...]] = ("cloud-config", "script")
"""What cloud-init takes as user data."""

ReadSecret = Callable[[str], Awaitable[Mapping[str, bytes]]]
"""The data of a Secret in the namespace of the Machines; raises ProviderError."""

Thing = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tools:
    """What everything about one project shares. ``now``: the event loop's clock."""

    requests: Requests
    counter: Counter
    lookup: Lookup
    zones: Zones
    leftovers: Leftovers
    read_secret: ReadSecret
    now: Callable[[], float]


class Creation:
    """Makes servers, one call for a UID at a time."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._unsure: dict[str, float] = {}
        self._got_further: set[str] = set()
        """Machine UIDs for which the call that runs has made something."""

    async def make(self, request: HostRequest, config: OpenStackMachineConfig) -> Host:
        """The host of ``request``; the one that is there if there is one. Raises ProviderError."""
        uid = request.identity.machine_uid
        self._tools.leftovers.raise_if_no_place(uid)
        if any(port.floating_ip for port in config.ports):
            self._tools.counter.expect_floating_ips(UNSURE)
        inventory = await self._tools.counter.take(with_parts=True)
        if uid in inventory.servers:
            self._unsure.pop(uid, None)
            return hosts.host_of(hosts.the_one(inventory.servers[uid]))
        self._raise_if_unsure(uid, inventory)
        try:
            return await self._make(request, config, inventory)
        except ProviderError as error:
            await self._failed(uid, error)
            progressed = uid in self._got_further and error.error_class not in _FOR_GOOD
            raise ProviderError(error.error_class, error.message, error.retry_after, progressed) from None
        finally:
            self._got_further.discard(uid)
            self._tools.zones.made(uid)

    async def _failed(self, uid: str, error: ProviderError) -> None:
        may_still_come = isinstance(error, Ambiguous) and not isinstance(error, Ended)
        self._tools.leftovers.watch(uid, UNSURE if may_still_come else 0.0)
        if may_still_come:
            self._unsure[uid] = self._tools.now()
        if isinstance(error, Ambiguous):
            return
        if is_about_the_zone(error):
            self._tools.zones.refused(uid)
        if error.error_class in {ErrorClass.NOT_FOUND, ErrorClass.INVALID_CONFIGURATION}:
            self._tools.lookup.forget()
        if error.error_class in _FOR_GOOD:
            await self._undo(uid)

    async def _make(self, request: HostRequest, config: OpenStackMachineConfig, inventory: Inventory) -> Host:
        uid = request.identity.machine_uid
        place = await self._place(request, config, inventory)
        user_data = await user_data_for(self._tools, request, config)
        wanted = requests.ports_of(request, config)
        found = await asyncio.gather(*(port_place(self._tools.lookup, config, port) for port in wanted.values()))
        places = dict(zip(wanted, found, strict=True))
        ids = await self._ports(request, config, places, inventory)
        ports = [ids[requests.port_name(request, index)] for index in range(len(config.ports))]
        await self._floating_ips(request, config, places, ports, inventory)
        body = requests.server_body(request, config, place, ports, user_data)
        answer = await self._post(uid, COMPUTE, "/servers", body)
        identity = str(answer["server"]["id"])
        self._unsure.pop(uid, None)
        return Host(
            id=identity,
            machine_uid=uid,
            name=request.identity.name,
            provider_id="",
            state=HostState.PENDING,
            spec_hash=request.spec_hash,
            failure_domain=place.zone,
            kubelet_version=request.versions.kubelet,
            management_cluster=request.identity.management_cluster,
        )

    def _raise_if_unsure(self, uid: str, inventory: Inventory) -> None:
        """A POST that got lost on its way may still arrive; a census that shows nothing is no proof yet.

        Ports that another program made may be followed by the server that it asked for before it died.
        """
        since = self._unsure.get(uid, self._tools.leftovers.found_at(uid, inventory))
        left = 0.0 if since is None else since + UNSURE - self._tools.now()
        if left > 0:
            text = "the last request to make the server was not answered: waiting whether it was carried out"
            raise ProviderError(ErrorClass.TIMEOUT, text, left)

    async def _place(self, request: HostRequest, config: OpenStackMachineConfig, inventory: Inventory) -> ServerPlace:
        lookup = self._tools.lookup
        flavor, image = await asyncio.gather(lookup.flavor(config.flavor), lookup.image(config.image))
        group = await lookup.server_group(config.server_group) if config.server_group is not None else None
        zone = self._tools.zones.choose(request, config.availability_zones, inventory)
        return ServerPlace(str(flavor["id"]), str(image["id"]), zone, str(group["id"]) if group else "")

    async def _ports(
        self,
        request: HostRequest,
        config: OpenStackMachineConfig,
        places: Mapping[str, PortPlace],
        inventory: Inventory,
    ) -> dict[str, str]:
        """Ids of all ports by their names; those that are missing are made by one request, and subports by another."""
        uid, description = request.identity.machine_uid, ownership_tags.description_of(request, config)
        found = inventory.parts.ports.get(uid, ()) if inventory.parts else ()
        if any(ownership_tags.is_for_another_config(port, description) for port in found):
            await self._undo(uid)
            raise ProviderError(ErrorClass.CONFLICT, "ports that were made for an earlier config go first")
        there = {str(port["name"]): port for port in found}
        ports = await self._with_ports(uid, there, requests.port_bodies(request, config, places), description)
        behind = requests.subport_bodies(request, config, places, ports)
        ports = await self._with_ports(uid, ports, behind, description)
        ids = {name: str(port["id"]) for name, port in ports.items()}
        for index, port in enumerate(config.ports):
            name = requests.port_name(request, index)
            if port.has_trunk and (name not in there or not await self._has_trunk(ids[name])):
                trunk = requests.trunk_body(request, index, port, ids)
                await self._post(uid, NETWORK, "/trunks", {"trunk": trunk})
        return ids

    async def _with_ports(
        self, uid: str, there: Mapping[str, Thing], wanted: list[dict[str, Any]], description: str
    ) -> Mapping[str, Thing]:
        """What is there, and those that were missing, by name."""
        missing = [{**body, "description": description} for body in wanted if body["name"] not in there]
        if not missing:
            return there
        answer = await self._post(uid, NETWORK, "/ports", {"ports": missing})
        return {**there, **{str(port["name"]): port for port in answer["ports"]}}

    async def _has_trunk(self, port: str) -> bool:
        return bool((await self._tools.requests.get(NETWORK, f"/trunks?{urlencode({'port_id': port})}")).get("trunks"))

    async def _floating_ips(
        self,
        request: HostRequest,
        config: OpenStackMachineConfig,
        places: Mapping[str, PortPlace],
        ports: list[str],
        inventory: Inventory,
    ) -> None:
        uid, description = request.identity.machine_uid, ownership_tags.description_of(request, config)
        found = inventory.parts.floating_ips.get(uid, ()) if inventory.parts else ()
        have = {str(one.get("port_id")) for one in found}
        for index, (port, identity) in enumerate(zip(config.ports, ports, strict=True)):
            if port.floating_ip is not None and identity not in have:
                network = places[requests.port_name(request, index)].floating_network
                body = requests.floating_ip_body(identity, network, description)
                try:
                    await self._post(uid, NETWORK, "/floatingips", {"floatingip": body})
                finally:
                    self._tools.counter.expect_floating_ips(UNSURE)

    async def _post(self, uid: str, service: str, path: str, body: Any) -> dict[str, Any]:
        answer = await self._tools.requests.change(service, "POST", path, body)
        self._got_further.add(uid)
        return answer

    async def _undo(self, uid: str) -> None:
        """The cloud refused for good: ports that wait for nothing go. Whatever fails here is done by the next list."""
        self._tools.leftovers.expect(uid)
        try:
            inventory = await self._tools.counter.take(with_parts=True)
        except ProviderError:
            return
        await self._tools.leftovers.clear(inventory, only=uid)


async def port_place(lookup: Lookup, config: OpenStackMachineConfig, port: AnyPort) -> PortPlace:
    """Find what a port's names stand for."""
    groups = config.security_groups if port.security_groups is None else port.security_groups
    network = await lookup.network(port.network)
    subnets = [await lookup.subnet(fixed.subnet) for fixed in port.fixed_ips if fixed.subnet is not None]
    found = [await lookup.security_group(group) for group in groups]
    outside = port.floating_ip if isinstance(port, Port) else None
    floating = await lookup.network(outside.network) if outside is not None else None
    return PortPlace(
        str(network["id"]),
        tuple(str(subnet["id"]) for subnet in subnets),
        tuple(str(group["id"]) for group in found),
        str(floating["id"]) if floating else "",
    )


async def user_data_for(tools: Tools, request: HostRequest, config: OpenStackMachineConfig) -> str:
    """The server's user data in base64, "" for none: that of the config, else the bootstrap data as it is.

    Raises ProviderError.
    """
    if config.user_data is not None:
        text = await _key_of(tools, config.user_data.secret_name, config.user_data.key)
        return requests.user_data_of(text, request)
    form, reference = ownership_tags.bootstrap_format(request, config), request.bootstrap
    if not form or reference is None:
        return ""
    if form not in BOOTSTRAP_FORMATS:
        problem = f"bootstrap data of the form {form[:32]!r} can't be given to a server of OpenStack"
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, problem)
    return requests.encoded_user_data(await _key_of(tools, reference.secret_name, BOOTSTRAP_DATA))


async def _key_of(tools: Tools, secret: str, key: str) -> bytes:
    data = await tools.read_secret(secret)
    if key not in data:
        raise ProviderError(ErrorClass.NOT_FOUND, f"Secret {secret} has no key {key}")
    return data[key]
