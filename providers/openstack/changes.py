"""Bring a server that exists to another config: in place where OpenStack can, else say what stands in the way.

What a server was made for is written in its metadata, a digest for each part, so a decision needs no more than that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from providers.base.contract import (
    Host,
    HostRequest,
    HostState,
    InProgress,
    NeedsDrain,
    NeedsReplacement,
    UpdateAnswer,
    Updated,
)
from providers.base.errors import ErrorClass, ProviderError
from providers.openstack import hosts, owned_tags, ownership_tags, requests
from providers.openstack.config import OpenStackMachineConfig
from providers.openstack.creation import Tools, port_place, user_data_for
from providers.openstack.paths import one_of
from providers.openstack.session import COMPUTE, NETWORK

REQUEUE_AFTER = 5.0
_NAMES = {
    "flavor": "flavor",
    "image": "image",
    "volumes": "bootVolume or volumes",
    "networks": "ports",
    "group": "serverGroup or schedulerHints",
    "key": "keyPair",
    "drive": "configDrive",
    "data": "userData",
    "software": "the kubelet's version",
}

Server = Mapping[str, Any]


class Changes:
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._resizes: dict[str, str] = {}
        """By Machine UID: the flavor of a resize that was asked for."""

    async def apply(
        self, request: HostRequest, config: OpenStackMachineConfig, host: Host, drained: bool
    ) -> UpdateAnswer:
        """One step towards ``request``. Raises ProviderError."""
        answer = await self._tools.requests.get(COMPUTE, one_of("servers", host.id))
        server: Server = answer.get("server") or {}
        if ownership_tags.uid_of_server(server) != request.identity.machine_uid:
            raise ProviderError(ErrorClass.NOT_FOUND, f"there is no server {host.id} of this Machine")
        if server.get("status") == "VERIFY_RESIZE":
            self._resizes.pop(request.identity.machine_uid, None)
            await self._act(host, {"confirmResize": None})
            return InProgress(REQUEUE_AFTER, "the resize is being confirmed")
        if hosts.state_of(server) is HostState.UPDATING or server.get("OS-EXT-STS:task_state"):
            return InProgress(REQUEUE_AFTER, f"the server is in state {server.get('status')}")
        changed = ownership_tags.changed_parts(server, ownership_tags.parts_of(request, config))
        stuck = _why_not_in_place(server, request, config, changed)
        if stuck:
            return NeedsReplacement(stuck)
        step = await self._heavy_step(request, config, host, server, drained)
        if step is not None:
            return step
        if "ports" in changed:
            await self._update_ports(request, config)
        await self._mark(request, config, host, server)
        return Updated()

    async def _heavy_step(
        self, request: HostRequest, config: OpenStackMachineConfig, host: Host, server: Server, drained: bool
    ) -> UpdateAnswer | None:
        """Rebuild, then resize: what interrupts the server. None if neither is needed."""
        parts = ownership_tags.parts_of(request, config)
        changed = ownership_tags.changed_parts(server, parts)
        if changed & ownership_tags.REBUILDS:
            if not drained:
                return NeedsDrain(f"the server is rebuilt: {_named(changed & ownership_tags.REBUILDS)} changed")
            await self._rebuild(request, config, host, server)
            return InProgress(REQUEUE_AFTER, "the server is being rebuilt")
        if "flavor" in changed:
            flavor = await self._tools.lookup.flavor(config.flavor)
            if (server.get("flavor") or {}).get("original_name") != flavor.get("name"):
                if not drained:
                    return NeedsDrain(f"the server is resized to flavor {flavor.get('name')}")
                return await self._resize(request.identity.machine_uid, host, flavor)
        return None

    def forget(self, uid: str) -> None:
        """The Machine's host goes."""
        self._resizes.pop(uid, None)

    async def _resize(self, uid: str, host: Host, flavor: Mapping[str, Any]) -> UpdateAnswer:
        """Where it finds no place for it, Nova sets a server back as it was without a word."""
        name, wanted = flavor.get("name"), str(flavor["id"])
        if self._resizes.pop(uid, "") == wanted:
            raise ProviderError(ErrorClass.STOCK_OUT, f"the resize to flavor {name} came to nothing: no place for it")
        await self._act(host, {"resize": {"flavorRef": wanted}})
        self._resizes[uid] = wanted
        return InProgress(REQUEUE_AFTER, f"the server is being resized to flavor {name}")

    async def _rebuild(self, request: HostRequest, config: OpenStackMachineConfig, host: Host, server: Server) -> None:
        """The metadata says from now on that these parts are as wanted; the spec hash follows when all is done."""
        image = await self._tools.lookup.image(config.image)
        wanted = ownership_tags.parts_of(request, config)
        changed = ownership_tags.changed_parts(server, wanted)
        kept = {**wanted, **dict.fromkeys(changed - ownership_tags.REBUILDS, "")}
        metadata = {**(server.get("metadata") or {}), ownership_tags.PARTS: ownership_tags.parts_text(kept)}
        metadata.pop(ownership_tags.BOOTSTRAP, None)  # what it joins with now is the config's
        data = await user_data_for(self._tools, request, config)
        rebuild: dict[str, Any] = {"imageRef": str(image["id"]), "metadata": metadata, "user_data": data or None}
        await self._act(host, {"rebuild": rebuild})

    async def _update_ports(self, request: HostRequest, config: OpenStackMachineConfig) -> None:
        uid = request.identity.machine_uid
        inventory = await self._tools.counter.take(with_parts=True)
        ports = {
            str(port["name"]): str(port["id"])
            for port in (inventory.parts.ports.get(uid, ()) if inventory.parts else ())
        }
        for name, port in requests.ports_of(request, config).items():
            identity = ports.get(name)
            if identity is None:
                raise ProviderError(ErrorClass.NOT_FOUND, f"port {name} is not there")
            place = await port_place(self._tools.lookup, config, port)
            body = {"port": requests.port_properties(port, place)}
            await self._tools.requests.change(NETWORK, "PUT", one_of("ports", identity), body)

    async def _mark(self, request: HostRequest, config: OpenStackMachineConfig, host: Host, server: Server) -> None:
        """One by one: a list that is replaced loses what others add meanwhile. The spec hash says that all is done."""
        path, change = one_of("servers", host.id), self._tools.requests.change
        marking = owned_tags.marking(server, request, config)
        if marking.intent:
            await change(COMPUTE, "POST", f"{path}/metadata", {"metadata": dict(marking.intent)})
        for tag in marking.new_tags:
            await change(COMPUTE, "PUT", f"{path}/tags/{quote(tag, safe='')}")
        for tag in marking.old_tags:
            await self._take_away(f"{path}/tags/{quote(tag, safe='')}")
        for key in marking.old_keys:
            await self._take_away(f"{path}/metadata/{quote(key, safe='')}")
        await change(COMPUTE, "POST", f"{path}/metadata", {"metadata": dict(marking.metadata)})

    async def _take_away(self, path: str) -> None:
        try:
            await self._tools.requests.change(COMPUTE, "DELETE", path)
        except ProviderError as error:
            if error.error_class is not ErrorClass.NOT_FOUND:
                raise

    async def _act(self, host: Host, body: Mapping[str, Any]) -> None:
        await self._tools.requests.change(COMPUTE, "POST", one_of("servers", host.id, "action"), dict(body))


def _why_not_in_place(server: Server, request: HostRequest, config: OpenStackMachineConfig, changed: set[str]) -> str:
    """Why only another server can be as wanted, "" if this one can."""
    zone = hosts.zone_of(server)
    if request.failure_domain and zone and zone != request.failure_domain:
        return f"the server is in zone {zone}, and its failure domain is {request.failure_domain}"
    if not request.failure_domain and config.availability_zones and zone and zone not in config.availability_zones:
        return f"the server is in zone {zone}, which is none of availabilityZones"
    possible = set(ownership_tags.IN_PLACE)
    possible |= ownership_tags.RESIZES if config.updates.resize else set()
    has_image_disk = bool(server.get("image"))  # one that boots from a volume would keep its old disk
    possible |= ownership_tags.REBUILDS if config.updates.rebuild and has_image_disk else set()
    stuck = changed - possible
    if stuck:
        return f"OpenStack does not change {_named(stuck)} of a server"
    rebuilds = changed & ownership_tags.REBUILDS
    # A rebuilt server starts from an empty disk. What it joined with is used up, and its Node may still be Ready.
    joins_anew = ownership_tags.was_bootstrapped(server) or ownership_tags.bootstrap_format(request, config)
    if rebuilds and joins_anew and config.user_data is None:
        return (
            f"{_named(rebuilds)} changed: a rebuilt server would have to join again, and bootstrap data is for one join"
        )
    return ""


def _named(parts: set[str]) -> str:
    return ", ".join(_NAMES.get(part, part) for part in sorted(parts))
