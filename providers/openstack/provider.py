"""Servers of one OpenStack project as hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import Context
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from providers.base.capabilities import LONGEST_CONSOLE, Quota
from providers.base.contract import (
    ConfigKind,
    Host,
    HostIdentity,
    HostRequest,
    Problem,
    Provider,
    Registration,
    SecretRef,
    Secrets,
    Shape,
    UpdateAnswer,
    Updated,
)
from providers.base.endpoints import Endpoint, EndpointRequest
from providers.base.errors import ErrorClass, ProviderError
from providers.openstack import cluster_config, requests
from providers.openstack.changes import Changes
from providers.openstack.config import API_VERSION, KIND, Cloud, OpenStackMachineConfig, json_schema, parse
from providers.openstack.creation import BOOTSTRAP_FORMATS, Creation, Tools
from providers.openstack.endpoints import Endpoints
from providers.openstack.handover import Handover
from providers.openstack.inventory import Counter
from providers.openstack.leftovers import Leftovers, is_server
from providers.openstack.login import Login, login_in
from providers.openstack.lookup import Lookup
from providers.openstack.paths import one_of
from providers.openstack.quotas import quotas_of
from providers.openstack.reboots import Reboots
from providers.openstack.session import COMPUTE, Connect, Session, connect
from providers.openstack.shapes import shape_of
from providers.openstack.zones import Zones

LIST_PAUSE = 10.0
"""Seconds between two lists; a server takes longer than that to boot."""
CONSOLE_LINES = 60


class OpenStackProvider:
    """One project, by one login. All its state can be lost: the cloud says what there is."""

    def __init__(self, cloud: Cloud, secrets: Secrets, connector: Connect = connect) -> None:
        self._cloud = cloud
        self._secrets = secrets
        now = asyncio.get_running_loop().time
        session = self._session = Session(self._login, connector)
        zones = Zones(now)
        leftovers = Leftovers(session, zones, now)
        self._tools = Tools(session, Counter(session, now), Lookup(session, now), zones, leftovers, secrets.read, now)
        self._creation = Creation(self._tools)
        self._changes = Changes(self._tools)
        self._reboots = Reboots(session)
        self._endpoints = Endpoints(session, self._tools.lookup, now)
        self._handover = Handover(session, self._tools.counter)
        self._creating: dict[str, asyncio.Task[Host]] = {}
        self._region = cloud.region or ""

    async def validate(self, config: Mapping[str, Any]) -> tuple[Problem, ...]:
        parsed = _parse(config)
        missing_login = await self._missing_secret("cloud.secretName", self._cloud.secret_name)
        if missing_login:
            return missing_login
        problems = await self._tools.lookup.problems(parsed)
        if parsed.user_data is None:
            return problems
        secret, key = parsed.user_data.secret_name, parsed.user_data.key
        missing = await self._missing_secret("userData.secretName", secret)
        if missing:
            return (*problems, *missing)
        data = await self._secrets.read(secret)
        if key not in data:
            return (*problems, Problem("userData.key", f"Secret {secret} has no key {key}"))
        too_large = requests.why_too_large(data[key])
        return (*problems, Problem("userData.secretName", too_large)) if too_large else problems

    async def create(self, request: HostRequest) -> Host:
        """A second call while it is created waits for the same server; a caller that gives up does not stop it."""
        config = _parse(request.config)
        uid = request.identity.machine_uid
        task = self._creating.get(uid)
        if task is None:
            self._tools.leftovers.begin(uid)
            work = self._creation.make(request, config)
            task = self._creating[uid] = asyncio.get_running_loop().create_task(work, context=Context())
            task.add_done_callback(lambda done: self._created(uid, done))
        return await asyncio.shield(task)

    async def delete(self, host: Host) -> None:
        """Start to delete; ``list`` does the rest."""
        uid = host.machine_uid
        made: object = None
        if uid in self._creating:
            (made,) = await asyncio.gather(asyncio.shield(self._creating[uid]), return_exceptions=True)
        self._tools.leftovers.expect(uid)
        self._tools.counter.expect_floating_ips()  # another program may have made the server
        self._tools.leftovers.forget(uid)
        self._changes.forget(uid)
        self._reboots.forget(host.id)
        servers = {one.id for one in (host, made) if isinstance(one, Host) and is_server(one)}
        await asyncio.gather(*(self._delete_server(identity) for identity in servers))

    async def get(self, machine_uid: str) -> Host | None:
        found = [host for host in await self.list() if host.machine_uid == machine_uid]
        return found[0] if found else None

    async def close(self) -> None:
        """End its connections to the cloud."""
        await self._session.close()

    async def list(self) -> tuple[Host, ...]:
        leftovers, counter = self._tools.leftovers, self._tools.counter
        inventory = await counter.take(leftovers.wants_parts)
        if inventory.parts is None and leftovers.misses(inventory):
            inventory = await counter.with_parts(inventory)
        found = await leftovers.settle(inventory)
        rebooted = await self._reboots.settle(each for servers in inventory.servers.values() for each in servers)
        return tuple(replace(host, rebooted=rebooted.get(host.id, host.rebooted)) for host in found)

    async def update(self, request: HostRequest, host: Host, drained: bool) -> UpdateAnswer:
        config = _parse(request.config)
        if host.spec_hash == request.spec_hash:
            return Updated()
        return await self._changes.apply(request, config, host, drained)

    async def shape(self, config: Mapping[str, Any]) -> Shape:
        parsed = _parse(config)
        return shape_of(parsed, await self._tools.lookup.flavor(parsed.flavor), self._region)

    async def reboot(self, host: Host, attempt: str) -> None:
        await self._reboots.order(host, attempt)

    async def rebind(self, host: Host, old: HostIdentity, new: HostIdentity) -> None:
        """Marks of the server and of what was made beside it (``providers.openstack.handover``)."""
        await self._handover.rebind(host, old, new)

    async def console(self, host: Host) -> str:
        """As Nova has it: it keeps the end of what the serial console showed, if the hypervisor can tell."""
        body = {"os-getConsoleOutput": {"length": CONSOLE_LINES}}
        answer = await self._tools.requests.change(COMPUTE, "POST", one_of("servers", host.id, "action"), body)
        output = answer.get("output")
        return output[-LONGEST_CONSOLE:] if isinstance(output, str) else ""

    async def quotas(self) -> tuple[Quota, ...]:
        return await quotas_of(self._tools.requests)

    async def ensure_endpoint(self, request: EndpointRequest) -> Endpoint:
        return await self._endpoints.ensure(request)

    async def remove_endpoint(self, request: EndpointRequest) -> bool:
        return await self._endpoints.remove(request)

    async def rebind_endpoint(self, request: EndpointRequest, new_uid: str) -> None:
        await self._endpoints.rebind(request, new_uid)

    async def _missing_secret(self, path: str, name: str) -> tuple[Problem, ...]:
        try:
            await self._secrets.read(name)
        except ProviderError as error:
            if error.error_class is not ErrorClass.NOT_FOUND:
                raise
            return (Problem(path, error.message),)
        return ()

    def _created(self, uid: str, task: asyncio.Task[Host]) -> None:
        del self._creating[uid]
        self._tools.leftovers.end(uid)
        if not task.cancelled():
            task.exception()  # whoever asked has it, if anybody still waits

    async def _delete_server(self, identity: str) -> None:
        try:
            await self._tools.requests.change(COMPUTE, "DELETE", one_of("servers", identity))
        except ProviderError as error:
            if error.error_class is not ErrorClass.NOT_FOUND:
                raise

    async def _login(self) -> Login:
        login = login_in(await self._secrets.read(self._cloud.secret_name), self._cloud)
        self._region = login.region
        return login


def _parse(config: Mapping[str, Any]) -> OpenStackMachineConfig:
    try:
        return parse(config)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, f"{path}: {first['msg']}") from error


def registration_with(connector: Connect = connect) -> Registration:
    """The provider as the registry knows it; tests have connectors of their own."""

    def open_project(_scope: str, config: Mapping[str, Any], secrets: Secrets) -> Provider:
        return OpenStackProvider(_cloud_of(config), secrets, connector)

    return Registration(
        name="openstack",
        config_kinds=(
            ConfigKind(API_VERSION, KIND, json_schema()),
            ConfigKind(API_VERSION, cluster_config.CLUSTER_KIND, cluster_config.json_schema()),
        ),
        scope_of=_scope_of,
        open=_open_without_secrets,
        secrets_of=_secrets_of,
        open_with_secrets=open_project,
        list_pause=LIST_PAUSE,
        user_data_limit=requests.USER_DATA_LIMIT,
        bootstrap_formats=BOOTSTRAP_FORMATS,
        brings_user_data=lambda config: config.get("userData") is not None,
        in_place_refusal=_in_place_refusal,
    )


def _in_place_refusal(config: Mapping[str, Any]) -> str | None:
    """With ``updates.rebuild`` it depends on the server's disk and on how it has joined."""
    updates = config.get("updates") or {}
    return None if updates.get("rebuild") else "OpenStack does not change the kubelet's version of a server"


def _open_without_secrets(_scope: str, _config: Mapping[str, Any]) -> Provider:
    raise ProviderError(
        ErrorClass.UNAUTHORIZED, "the login of the cloud is in a Secret, and Secrets can't be read here"
    )


def _scope_of(config: Mapping[str, Any]) -> str:
    """Read from ``cloud`` alone: a Machine whose config is faulty elsewhere can still be deleted."""
    cloud = _cloud_of(config)
    return "/".join([cloud.secret_name, cloud.name or "", cloud.region or ""]).rstrip("/")


def _secrets_of(config: Mapping[str, Any], namespace: str) -> tuple[SecretRef, ...]:
    return (SecretRef(namespace, _cloud_of(config).secret_name),)


def _cloud_of(config: Mapping[str, Any]) -> Cloud:
    return Cloud.model_validate(config.get("cloud"))
