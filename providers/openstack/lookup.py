"""Names of a config, found in the cloud: flavors, images, networks, subnets, groups. Remembered for a few minutes.

Many Machines share one config, so each name costs one request and not one for every server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from providers.base.contract import Problem
from providers.base.errors import ErrorClass, ProviderError
from providers.openstack.config import (
    AnyPort,
    FlavorFilter,
    FlavorReference,
    ImageReference,
    NamedReference,
    OpenStackMachineConfig,
    Port,
    Reference,
)
from providers.openstack.pages import all_of
from providers.openstack.paths import one_of
from providers.openstack.session import COMPUTE, IMAGE, NETWORK, Requests

REMEMBERED = 300.0
"""Seconds."""
_PAGE = 500
_BY_ID_ALONE = " (hidden ones and those of the community are found by their id)"

Thing = Mapping[str, Any]
Known = str | FlavorReference | ImageReference | Reference | NamedReference


class Lookup:
    """All coroutines raise ProviderError: NotFound if nothing fits, InvalidConfiguration if several things do."""

    def __init__(self, requests: Requests, now: Callable[[], float]) -> None:
        self._requests = requests
        self._now = now
        self._found: dict[tuple[str, str], tuple[float, asyncio.Task[Thing]]] = {}

    def forget(self) -> None:
        """Something was not as remembered."""
        self._found.clear()

    async def flavor(self, wanted: str | FlavorReference) -> Thing:
        return await self._once("flavor", wanted, lambda: self._flavor(wanted))

    async def image(self, wanted: str | ImageReference) -> Thing:
        return await self._once("image", wanted, lambda: self._image(wanted))

    async def network(self, wanted: str | Reference) -> Thing:
        return await self._once("network", wanted, lambda: self._in_network("network", "networks", wanted))

    async def subnet(self, wanted: str | Reference) -> Thing:
        return await self._once("subnet", wanted, lambda: self._in_network("subnet", "subnets", wanted))

    async def security_group(self, wanted: str | Reference) -> Thing:
        return await self._once(
            "security group", wanted, lambda: self._in_network("security group", "security-groups", wanted)
        )

    async def server_group(self, wanted: str | NamedReference) -> Thing:
        return await self._once("server group", wanted, lambda: self._server_group(wanted))

    async def key_pair(self, name: str) -> Thing:
        return await self._once("key pair", name, lambda: self._key_pair(name))

    async def zone(self, name: str) -> Thing:
        """Zones for servers; a zone whose hosts are all down counts as absent."""
        return await self._once("zone", name, lambda: self._zone(name))

    async def problems(self, config: OpenStackMachineConfig) -> tuple[Problem, ...]:
        """What of a config is not there. Errors that say nothing of the config (no answer, no login) are raised."""
        asked: list[tuple[str, Awaitable[Thing]]] = [
            ("flavor", self.flavor(config.flavor)),
            ("image", self.image(config.image)),
        ]
        if config.server_group is not None:
            asked.append(("serverGroup", self.server_group(config.server_group)))
        if config.key_pair is not None:
            asked.append(("keyPair", self.key_pair(config.key_pair)))
        zones = enumerate(config.availability_zones)
        asked += [(f"availabilityZones[{index}]", self.zone(name)) for index, name in zones]
        groups = [("securityGroups", config.security_groups)]
        for path, port in _ports_of(config):
            asked.append((f"{path}.network", self.network(port.network)))
            asked += [
                (f"{path}.fixedIPs[{number}].subnet", self.subnet(fixed.subnet))
                for number, fixed in enumerate(port.fixed_ips)
                if fixed.subnet is not None
            ]
            if isinstance(port, Port) and port.floating_ip is not None:
                asked.append((f"{path}.floatingIP.network", self.network(port.floating_ip.network)))
            groups.append((f"{path}.securityGroups", port.security_groups or ()))
        for path, wanted in groups:
            asked += [(f"{path}[{index}]", self.security_group(one)) for index, one in enumerate(wanted)]
        answers = await asyncio.gather(*(answer for _, answer in asked), return_exceptions=True)
        return tuple(_problems(zip((path for path, _ in asked), answers, strict=True)))

    async def _once(self, kind: str, wanted: Known, find: Callable[[], Awaitable[Thing]]) -> Thing:
        key = (kind, wanted if isinstance(wanted, str) else wanted.model_dump_json(exclude_none=True))
        known = self._found.get(key)
        if known is None or self._now() - known[0] > REMEMBERED or _failed(known[1]):
            known = self._found[key] = (self._now(), asyncio.ensure_future(find()))
        return await asyncio.shield(known[1])

    async def _flavor(self, wanted: str | FlavorReference) -> Thing:
        flavors = await all_of(self._requests, COMPUTE, "/flavors/detail", _PAGE)
        if not isinstance(wanted, str) and wanted.filter is not None:
            fitting = sorted((one for one in flavors if _fits(one, wanted.filter)), key=_size)
            return _the_first(fitting, f"there is no flavor with {wanted.filter.model_dump(by_alias=True)}")
        key, value = _key_of(wanted)
        return _the_only([one for one in flavors if one.get(key) == value], "flavor", value)

    async def _image(self, wanted: str | ImageReference) -> Thing:
        if isinstance(wanted, str) or wanted.name is not None:
            value = _key_of(wanted)[1]
            query = {"name": f"in:{_quoted(value)}", "status": "active"}
            named = await all_of(self._requests, IMAGE, f"/images?{urlencode(query)}", _PAGE)
            return _the_only(named, "image", value, _BY_ID_ALONE)
        if wanted.id is not None:
            image = await self._requests.get(IMAGE, one_of("images", wanted.id))
            if image.get("status") != "active":
                raise ProviderError(ErrorClass.NOT_FOUND, f"image {wanted.id} is {image.get('status')}")
            return image
        assert wanted.filter is not None
        query = {**wanted.filter.properties, "status": "active", "sort": "created_at:desc"}
        tags = [("tag", tag) for tag in wanted.filter.tags]
        found = await all_of(self._requests, IMAGE, f"/images?{urlencode([*query.items(), *tags])}", _PAGE)
        return _the_first(found, "there is no active image with these tags and properties")

    async def _in_network(self, kind: str, plural: str, wanted: str | Reference) -> Thing:
        if not isinstance(wanted, str) and wanted.filter is not None:
            query, value = {"tags": ",".join(wanted.filter.tags)}, f"tagged {', '.join(wanted.filter.tags)}"
        else:
            key, value = _key_of(wanted)
            query = {key: value}
        answer = await self._requests.get(NETWORK, f"/{plural}?{urlencode(query)}")
        return _the_only(list(answer.get(plural.replace("-", "_")) or ()), kind, value)

    async def _server_group(self, wanted: str | NamedReference) -> Thing:
        key, value = _key_of(wanted)
        answer = await self._requests.get(COMPUTE, "/os-server-groups")
        return _the_only(
            [one for one in answer.get("server_groups") or () if one.get(key) == value], "server group", value
        )

    async def _key_pair(self, name: str) -> Thing:
        answer = await self._requests.get(COMPUTE, "/os-keypairs")
        found = [one["keypair"] for one in answer.get("keypairs") or ()]
        return _the_only([one for one in found if one.get("name") == name], "key pair", name)

    async def _zone(self, name: str) -> Thing:
        answer = await self._once("zones", "", lambda: self._requests.get(COMPUTE, "/os-availability-zone"))
        zones = answer.get("availabilityZoneInfo") or ()
        found = [one for one in zones if (one.get("zoneState") or {}).get("available")]
        return _the_only([one for one in found if one.get("zoneName") == name], "availability zone", name)


def _ports_of(config: OpenStackMachineConfig) -> Iterable[tuple[str, AnyPort]]:
    """With the path of each in the config."""
    for index, port in enumerate(config.ports):
        yield f"ports[{index}]", port
        for number, subport in enumerate(port.subports):
            yield f"ports[{index}].subports[{number}]", subport


def _key_of(wanted: str | FlavorReference | ImageReference | Reference | NamedReference) -> tuple[str, str]:
    if isinstance(wanted, str):
        return "name", wanted
    return ("name", wanted.name) if wanted.name is not None else ("id", str(wanted.id))


def _the_only(found: list[Thing], kind: str, value: str, hint: str = "") -> Thing:
    if len(found) > 1:
        text = f"there are {len(found)} {kind}s {value}: name one by its id"
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, text)
    return _the_first(found, f"there is no {kind} {value}{hint}")


def _the_first(found: list[Thing], problem: str) -> Thing:
    if not found:
        raise ProviderError(ErrorClass.NOT_FOUND, problem)
    return found[0]


def _fits(flavor: Thing, wanted: FlavorFilter) -> bool:
    return (
        int(flavor.get("vcpus") or 0) >= wanted.min_cpus
        and int(flavor.get("ram") or 0) >= wanted.min_memory_mib
        and int(flavor.get("disk") or 0) >= wanted.min_disk_gib
    )


def _size(flavor: Thing) -> tuple[int, int, int, str]:
    numbers = [int(flavor.get(key) or 0) for key in ("vcpus", "ram", "disk")]
    return numbers[0], numbers[1], numbers[2], str(flavor.get("name"))


def _quoted(value: str) -> str:
    """A value of Glance's ``in:`` list, which may hold commas."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _failed(task: asyncio.Task[Thing]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _problems(answers: Iterable[tuple[str, Any]]) -> Iterable[Problem]:
    for path, answer in answers:
        if isinstance(answer, ProviderError):
            if answer.error_class not in {ErrorClass.NOT_FOUND, ErrorClass.INVALID_CONFIGURATION}:
                raise answer
            yield Problem(path, answer.message)
        elif isinstance(answer, BaseException):
            raise answer
