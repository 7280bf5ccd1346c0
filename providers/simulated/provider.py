"""The simulated provider: a ``World`` behind an API that takes time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from providers.base.capabilities import Quota
from providers.base.contract import (
    ConfigKind,
    Host,
    HostIdentity,
    HostRequest,
    Problem,
    Provider,
    Registration,
    Shape,
    UpdateAnswer,
)
from providers.base.errors import ErrorClass, ProviderError
from providers.simulated.config import API_VERSION, KIND, SimulatedMachineConfig, Updates, json_schema, parse
from providers.simulated.kubelet import ZONE, capacity_of, labels_of
from providers.simulated.world import World
from providers.simulated.worlds import Worlds

Sleep = Callable[[float], Awaitable[None]]


class SimulatedProvider:
    """One cloud. Half of a call's time passes before its effect and half after, so cancelling it is ambiguous."""

    def __init__(self, world: World, sleep: Sleep = asyncio.sleep) -> None:
        self._world = world
        self._sleep = sleep
        self._unlisted: dict[str, Host] = {}

    async def validate(self, config: Mapping[str, Any]) -> tuple[Problem, ...]:
        parsed = _parse(config)
        self._world.adjust(parsed.cloud)
        await self._travel()
        zones = self._world.settings.zones
        if parsed.zone and zones and parsed.zone not in zones:
            return (Problem("zone", f"there is no zone {parsed.zone!r}; known: {', '.join(sorted(zones))}"),)
        return ()

    async def create(self, request: HostRequest) -> Host:
        await self._travel()
        host = self._world.create(request)
        if self._world.settings.list_delay_seconds:
            self._unlisted[host.machine_uid] = host
        await self._travel()
        return host

    async def delete(self, host: Host) -> None:
        await self._travel()
        self._world.delete(host.id)
        await self._travel()

    async def get(self, machine_uid: str) -> Host | None:
        await self._travel()
        host = self._world.get(machine_uid)
        await self._travel()
        return host

    async def list(self) -> tuple[Host, ...]:
        """All hosts; those that the cloud's lagging list does not show yet are looked up one by one.

        The contract wants a host listed from the moment its creation was accepted.
        """
        await self._travel()
        listed = self._world.list()
        await self._travel()
        if not self._unlisted:
            return listed
        shown = {host.machine_uid for host in listed}
        missing = []
        for uid in list(self._unlisted):
            found = None if uid in shown else self._world.get(uid)
            if found is None:
                del self._unlisted[uid]
            else:
                missing.append(found)
        return (*listed, *missing)

    async def update(self, request: HostRequest, host: Host, drained: bool) -> UpdateAnswer:
        await self._travel()
        answer = self._world.update(request, host.id, drained)
        await self._travel()
        return answer

    async def rebind(self, host: Host, old: HostIdentity, new: HostIdentity) -> None:
        await self._travel()
        self._world.rebind(host.id, old, new)
        unlisted = self._unlisted.pop(old.machine_uid, None)
        if unlisted is not None:
            self._unlisted[new.machine_uid] = replace(unlisted, machine_uid=new.machine_uid)
        await self._travel()

    async def reboot(self, host: Host, attempt: str) -> None:
        await self._travel()
        self._world.reboot(host.id, attempt)
        await self._travel()

    async def console(self, host: Host) -> str:
        await self._travel()
        found = next((each for each in self._world.hosts() if each.machine_uid == host.machine_uid), None)
        return f"simulated host {found.name} is {found.state}\n" if found is not None else ""

    async def quotas(self) -> tuple[Quota, ...]:
        await self._travel()
        (hosts, cpus), limits = self._world.used(), self._world.settings.quota
        counted = (("hosts", hosts, limits.hosts), ("cpus", cpus, limits.cpus))
        return tuple(Quota(resource, used, limit) for resource, used, limit in counted if limit is not None)

    async def shape(self, config: Mapping[str, Any]) -> Shape:
        parsed = _parse(config)
        await self._travel()
        tells = "" if parsed.zone else ZONE
        return Shape(capacity_of(parsed), labels_of(parsed, parsed.zone), failure_domain_label=tells)

    async def _travel(self) -> None:
        await self._sleep(self._world.latency() / 2)


def _parse(config: Mapping[str, Any]) -> SimulatedMachineConfig:
    try:
        return parse(config)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, f"{path}: {first['msg']}") from error


def registration_for(worlds: Worlds, sleep: Sleep = asyncio.sleep) -> Registration:
    """The simulated provider over ``worlds``: a program or a simulation has its own."""

    def open_world(_scope: str, config: Mapping[str, Any]) -> Provider:
        return SimulatedProvider(worlds.open(_parse(config).cloud), sleep)

    return Registration(
        name="simulated",
        config_kinds=(ConfigKind(API_VERSION, KIND, json_schema()),),
        scope_of=_scope_of,
        open=open_world,
        bootstrap_formats=("cloud-config", "script"),
        in_place_refusal=_in_place_refusal,
    )


_NEVER = (Updates.REPLACE, Updates.REFUSE)


def _in_place_refusal(config: Mapping[str, Any]) -> str:
    updates = _parse(config).updates
    return f"simulated hosts with updates: {updates} are never changed in place" if updates in _NEVER else ""


def _scope_of(config: Mapping[str, Any]) -> str:
    return _parse(config).cloud.name
