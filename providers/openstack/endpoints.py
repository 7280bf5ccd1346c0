"""The endpoint of a Cluster: a floating IP, or a load balancer of Octavia with or without one.

What is made carries the Cluster's UID in its description from the request that makes it, so it is found again after a
crash at any point. Should there be two (a request that nobody heard of was carried out late), the older one stays.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from providers.base.endpoints import Endpoint, EndpointMember, EndpointRequest
from providers.base.errors import ErrorClass, ProviderError
from providers.openstack import ownership_tags
from providers.openstack.cluster_config import LoadBalancer, parse
from providers.openstack.config import FloatingIP
from providers.openstack.errors import Ambiguous, Ended
from providers.openstack.load_balancers import balancer_body, is_as_wanted, members_body
from providers.openstack.lookup import Lookup
from providers.openstack.pages import all_of
from providers.openstack.paths import one_of
from providers.openstack.session import LOAD_BALANCER, NETWORK, Requests

UNSURE = 20.0
"""Seconds for which nothing is made again after a POST of which nobody knows whether it was carried out."""
_PAGE = 200
_IN_ORDER = "sort_key=id&sort_dir=asc"
_PORT_FIELDS = "fields=id&fields=name&fields=description&fields=fixed_ips"

Thing = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """The port of a Machine's server that serves its API: the first one of its config."""

    port: str
    address: str


class Endpoints:
    """Calls for one Cluster come one after the other. ``now``: the event loop's clock."""

    def __init__(self, requests: Requests, lookup: Lookup, now: Callable[[], float]) -> None:
        self._requests = requests
        self._lookup = lookup
        self._now = now
        self._unsure: dict[str, float] = {}

    async def ensure(self, request: EndpointRequest) -> Endpoint:
        """See ``MakesEndpoints.ensure_endpoint``."""
        wanted = parse(request.config).endpoint
        if wanted.load_balancer is not None:
            return await self._balanced(request, wanted.load_balancer)
        assert wanted.floating_ip is not None
        places = await self._places(request.members)
        return await self._floating(
            request, wanted.floating_ip, lambda now: holder(request.members, places, now), "a host of the control plane"
        )

    async def remove(self, request: EndpointRequest) -> bool:
        """See ``MakesEndpoints.remove_endpoint``."""
        wanted = parse(request.config).endpoint
        mark = ownership_tags.cluster_tag_of(request.cluster_uid)
        balancers = await self._balancers(mark) if wanted.load_balancer is not None else []
        for balancer in balancers:
            await self._remove_balancer(balancer)
        addresses = await self._addresses(mark)
        for address in addresses:
            await self._gone(NETWORK, one_of("floatingips", address.get("id")))
        return not balancers and not addresses and not self._is_unsure(request.cluster_uid)

    async def rebind(self, request: EndpointRequest, new_uid: str) -> None:
        """See ``RebindsEndpoints.rebind_endpoint``."""
        mark, new = (ownership_tags.cluster_tag_of(uid) for uid in (request.cluster_uid, new_uid))
        wanted = parse(request.config).endpoint
        for balancer in await self._balancers(mark) if wanted.load_balancer is not None else []:
            path = one_of("lbaas/loadbalancers", balancer.get("id"))
            await self._change(LOAD_BALANCER, "PUT", path, {"loadbalancer": {"description": new}})
        for address in await self._addresses(mark):
            # Some versions of Neutron take an update that names no port for one that takes the port away.
            body = {"description": new, "port_id": address.get("port_id")}
            path = one_of("floatingips", address.get("id"))
            await self._change(NETWORK, "PUT", path, {"floatingip": body})

    async def _balanced(self, request: EndpointRequest, wanted: LoadBalancer) -> Endpoint:
        balancer = await self._balancer(request, wanted)
        state = str(balancer.get("provisioning_status"))
        if state != "ACTIVE":
            return Endpoint(request.host, f"the load balancer is {state}")
        host, waits = str(balancer.get("vip_address") or ""), ""
        if wanted.floating_ip is not None:
            port = str(balancer.get("vip_port_id") or "")
            outside = await self._floating(request, wanted.floating_ip, lambda _now: port, "the load balancer")
            host, waits = outside.host, outside.waits
        elif request.host not in {"", host}:
            raise _lost("load balancer", request.host)
        pools = balancer.get("pools") or [{}]
        path = one_of("lbaas/pools", pools[0].get("id"), "members")
        there = await all_of(self._requests, LOAD_BALANCER, path, _PAGE)
        places = await self._places(request.members)
        members = {member.machine_uid: places[member.machine_uid].address for member in request.members
                   if member.machine_uid in places}  # fmt: skip
        if not is_as_wanted(there, members, request.port):
            await self._change(LOAD_BALANCER, "PUT", path, members_body(members, request.port))
            return Endpoint(host, "the load balancer gets its members")
        return Endpoint(host, waits or ("" if members else "no host of the control plane has an address"))

    async def _balancer(self, request: EndpointRequest, wanted: LoadBalancer) -> Thing:
        mark = ownership_tags.cluster_tag_of(request.cluster_uid)
        found = await self._balancers(mark)
        if found:
            kept, *others = found
            for other in others:
                await self._remove_balancer(other)
            if kept.get("provisioning_status") == "ERROR":
                if not request.host:  # nobody was told its address: another one may work
                    await self._remove_balancer(kept)
                raise ProviderError(ErrorClass.INTERNAL, f"load balancer {kept.get('id')} is in state ERROR")
            return kept
        if request.host and wanted.floating_ip is None:
            raise _lost("load balancer", request.host)
        subnet = await self._lookup.subnet(wanted.subnet)
        body = balancer_body(request, wanted, str(subnet["id"]), mark)
        return await self._make(request, LOAD_BALANCER, "/lbaas/loadbalancers", {"loadbalancer": body})

    async def _floating(
        self, request: EndpointRequest, wanted: FloatingIP, port_for: Callable[[str], str], whose: str
    ) -> Endpoint:
        """One floating IP, at the port that ``port_for`` names, given that which has it now; "" lets it be."""
        mark = ownership_tags.cluster_tag_of(request.cluster_uid)
        found = await self._addresses(mark)
        named = [each for each in found if each.get("floating_ip_address") == request.host]
        if request.host and not named:
            raise _lost("floating IP", request.host)
        if found:
            kept = (named or found)[0]
        else:
            network = await self._lookup.network(wanted.network)
            body = {"floating_network_id": str(network["id"]), "description": mark}
            kept = await self._make(request, NETWORK, "/floatingips", {"floatingip": body})
        for other in found:
            if other is not kept:
                await self._gone(NETWORK, one_of("floatingips", other.get("id")))
        host, has = str(kept.get("floating_ip_address") or ""), str(kept.get("port_id") or "")
        port = port_for(has)
        if port and port != has:
            path = one_of("floatingips", kept.get("id"))
            await self._change(NETWORK, "PUT", path, {"floatingip": {"port_id": port}})
        return Endpoint(host, "" if port or has else f"there is no port of {whose} yet")

    async def _make(self, request: EndpointRequest, service: str, path: str, body: Thing) -> Thing:
        """POST, once. Of one that was not answered a later list tells; until then nothing is made."""
        uid = request.cluster_uid
        if self._is_unsure(uid):
            text = "the last request to make the endpoint was not answered: waiting whether it was carried out"
            raise ProviderError(ErrorClass.TIMEOUT, text, self._unsure[uid] + UNSURE - self._now())
        self._unsure[uid] = self._now()  # also if this task is cancelled
        try:
            answer = await self._change(service, "POST", path, body)
        except ProviderError as error:
            if not isinstance(error, Ambiguous) or isinstance(error, Ended):
                del self._unsure[uid]
            raise
        del self._unsure[uid]
        (made,) = answer.values()
        return dict(made)

    def _is_unsure(self, uid: str) -> bool:
        if uid in self._unsure and self._now() - self._unsure[uid] >= UNSURE:
            del self._unsure[uid]
        return uid in self._unsure

    async def _places(self, members: Iterable[EndpointMember]) -> dict[str, Place]:
        """By Machine UID, from the cloud alone: nobody's status says where traffic goes."""
        wanted = {member.machine_uid for member in members}
        ports = await all_of(self._requests, NETWORK, f"/ports?{_IN_ORDER}&{_PORT_FIELDS}", _PAGE) if wanted else []
        found: dict[str, Place] = {}
        for port in sorted(ports, key=lambda each: str(each.get("name"))):
            uid, addresses = ownership_tags.uid_of_part(port), port.get("fixed_ips") or ()
            if uid in wanted and uid not in found and addresses and str(port.get("name")).endswith("-0"):
                found[uid] = Place(str(port["id"]), str(addresses[0].get("ip_address")))
        return found

    async def _addresses(self, mark: str) -> list[Thing]:
        query = urlencode({"description": mark})
        listed = await all_of(self._requests, NETWORK, f"/floatingips?{_IN_ORDER}&{query}", _PAGE)
        return _oldest_first(listed, mark)

    async def _balancers(self, mark: str) -> list[Thing]:
        listed = await all_of(self._requests, LOAD_BALANCER, "/lbaas/loadbalancers", _PAGE)
        return _oldest_first((one for one in listed if one.get("provisioning_status") != "DELETED"), mark)

    async def _remove_balancer(self, balancer: Thing) -> None:
        """With all that is below it. One that is changing is asked again later: Octavia refuses until then."""
        if not str(balancer.get("provisioning_status")).startswith("PENDING_"):
            await self._gone(LOAD_BALANCER, f"{one_of('lbaas/loadbalancers', balancer.get('id'))}?cascade=true")

    async def _gone(self, service: str, path: str) -> None:
        try:
            await self._change(service, "DELETE", path)
        except ProviderError as error:
            if error.error_class not in {ErrorClass.NOT_FOUND, ErrorClass.CONFLICT}:
                raise

    def _change(self, service: str, method: str, path: str, body: Any = None) -> Awaitable[dict[str, Any]]:
        return self._requests.change(service, method, path, body)


def holder(members: Iterable[EndpointMember], places: Mapping[str, Place], now: str) -> str:
    """The port that is to have the floating IP: that which has it, unless its Machine is not Ready and another's is.

    ``now``: the port that has it, "" for none. "" if no member has a port.
    """
    there = [member for member in members if member.machine_uid in places]
    ready = [member for member in there if member.ready]
    ports = [places[member.machine_uid].port for member in ready or there]
    return now if now in ports else next(iter(ports), "")


def _oldest_first(listed: Iterable[Thing], mark: str) -> list[Thing]:
    ours = [one for one in listed if one.get("description") == mark]
    return sorted(ours, key=lambda one: (str(one.get("created_at") or ""), str(one.get("id"))))


def _lost(what: str, host: str) -> ProviderError:
    text = f"there is no {what} with the address {host} that was made for this Cluster; its certificates name it"
    return ProviderError(ErrorClass.NOT_FOUND, text)
