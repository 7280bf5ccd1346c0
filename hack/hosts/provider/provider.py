"""Machines as hosts of a lab. A changed Machine needs another host: a cloud of stock images, as most are."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hack.hosts.lab import Lab, Record, Seen
from hack.hosts.parts import LabError
from providers.base.capabilities import LONGEST_CONSOLE
from providers.base.contract import (
    BOOTSTRAP_DATA,
    Address,
    ConfigKind,
    Host,
    HostRequest,
    HostState,
    NeedsReplacement,
    Problem,
    Provider,
    Registration,
    SecretRef,
    Secrets,
    Shape,
    UpdateAnswer,
    Updated,
)
from providers.base.errors import ErrorClass, ProviderError

API_VERSION, KIND = "lab.nodewright.dev/v1alpha1", "LabMachineConfig"
IMAGE = "debian"
SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": KIND},
        "lab": {"type": "string", "pattern": "^/", "description": "Folder of the lab, which `make lab` makes."},
        "image": {"type": "string", "minLength": 1, "description": "Image that the host boots from."},
        "userData": {
            "type": "object",
            "description": "User data for cloud-init: a key of a Secret beside the Machine.",
            "properties": {"secretName": {"type": "string", "minLength": 1}, "key": {"type": "string", "minLength": 1}},
            "required": ["secretName"],
            "additionalProperties": False,
        },
    },
    "required": ["apiVersion", "kind", "lab"],
    "additionalProperties": False,
}


class LabProvider:
    """One lab. What takes time runs in threads; ``secrets`` is None where no Secret can be read."""

    def __init__(self, lab: Path, secrets: Secrets | None = None) -> None:
        self._folder = lab
        self._secrets = secrets
        self._removals: set[asyncio.Task[None]] = set()

    async def validate(self, config: Mapping[str, Any]) -> tuple[Problem, ...]:
        if config.get("image", IMAGE) != IMAGE:
            return (Problem("image", f"there is no image {config['image']!r}; there is {IMAGE}"),)
        return ()

    async def create(self, request: HostRequest) -> Host:
        for problem in await self.validate(request.config):
            raise ProviderError(ErrorClass.INVALID_CONFIGURATION, f"{problem.path}: {problem.message}")
        seed = await self._seed(request)
        identity = request.identity
        notes = {
            "id": uuid.uuid4().hex[:12],
            "specHash": request.spec_hash,
            "namespace": identity.namespace,
            "cluster": identity.cluster,
            "managementCluster": identity.management_cluster,
        }
        record = Record(identity.machine_uid, identity.name, 0, datetime.now(UTC).isoformat(), notes)
        lab = self._lab()
        await _threaded(lab.start, record, seed)
        return await self._present(identity.machine_uid)

    async def delete(self, host: Host) -> None:
        """Begins at once and goes on behind: a host is listed as Deleting until all of it is gone."""
        lab = self._lab()
        if lab.find(host.machine_uid) is not None:
            task = asyncio.create_task(asyncio.to_thread(lab.remove, host.machine_uid))
            self._removals.add(task)
            task.add_done_callback(self._removals.discard)

    async def get(self, machine_uid: str) -> Host | None:
        lab = self._lab()
        seen = await _threaded(lab.find, machine_uid)
        return _host(lab, seen) if seen is not None else None

    async def list(self) -> tuple[Host, ...]:
        lab = self._lab()
        return tuple(_host(lab, seen) for seen in await _threaded(lab.hosts))

    async def update(self, request: HostRequest, host: Host, drained: bool) -> UpdateAnswer:
        if request.spec_hash == host.spec_hash:
            return Updated()
        return NeedsReplacement("hosts of a lab are made anew for every change")

    async def shape(self, config: Mapping[str, Any]) -> Shape:
        """Each host sees the whole machine."""
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024
        return Shape({"cpu": str(os.cpu_count()), "memory": f"{memory}Ki", "pods": "110"})

    async def console(self, host: Host) -> str:
        lab = self._lab()
        seen = await _threaded(lab.find, host.machine_uid)
        return await _threaded(_tail, lab.guest(seen.record).console) if seen is not None else ""

    def _lab(self) -> Lab:
        try:
            return Lab(self._folder)
        except LabError as error:
            raise ProviderError(ErrorClass.INVALID_CONFIGURATION, str(error)) from error

    async def _present(self, machine_uid: str) -> Host:
        host = await self.get(machine_uid)
        if host is None:
            raise ProviderError(ErrorClass.UNAVAILABLE, "the host was removed while it was made")
        return host

    async def _seed(self, request: HostRequest) -> dict[str, bytes]:
        wanted = request.config.get("userData")
        if wanted is None and request.bootstrap is not None:
            wanted = {"secretName": request.bootstrap.secret_name}
        if wanted is None:
            return {}
        if self._secrets is None:
            raise ProviderError(ErrorClass.INVALID_CONFIGURATION, "userData: Secrets can't be read here")
        data, key = await self._secrets.read(wanted["secretName"]), wanted.get("key", BOOTSTRAP_DATA)
        if key not in data:
            text = f"Secret {wanted['secretName']} has no key {key}"
            raise ProviderError(ErrorClass.INVALID_CONFIGURATION, text)
        name = request.identity.name
        meta = f"instance-id: {request.identity.machine_uid}\nlocal-hostname: {name}\n"
        return {"user-data": data[key], "meta-data": meta.encode()}


def _host(lab: Lab, seen: Seen) -> Host:
    record = seen.record
    return Host(
        id=record.notes["id"],
        machine_uid=record.identity,
        name=record.name,
        provider_id=f"lab:///{record.notes['id']}",
        state=_state(seen),
        spec_hash=record.notes.get("specHash", ""),
        management_cluster=record.notes.get("managementCluster", ""),
        addresses=(Address("InternalIP", lab.net.address(record.number)), Address("Hostname", record.name)),
        created_at=datetime.fromisoformat(record.created_at),
    )


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LONGEST_CONSOLE))
            return file.read(LONGEST_CONSOLE).decode(errors="replace")
    except FileNotFoundError:
        return ""


def _state(seen: Seen) -> HostState:
    if seen.deleting:
        return HostState.DELETING
    if not seen.booted:
        return HostState.PENDING if seen.working else HostState.UNFINISHED
    return HostState.RUNNING if seen.running else HostState.STOPPED


async def _threaded(function: Any, *args: Any) -> Any:
    try:
        return await asyncio.to_thread(function, *args)
    except LabError as error:
        raise ProviderError(ErrorClass.UNAVAILABLE, str(error)) from error


def _open(_scope: str, config: Mapping[str, Any]) -> Provider:
    return LabProvider(Path(config["lab"]))


def _open_with_secrets(_scope: str, config: Mapping[str, Any], secrets: Secrets) -> Provider:
    return LabProvider(Path(config["lab"]), secrets)


def _secrets_of(config: Mapping[str, Any], namespace: str) -> tuple[SecretRef, ...]:
    wanted = config.get("userData")
    return (SecretRef(namespace, wanted["secretName"]),) if wanted else ()


registration = Registration(
    name="lab",
    config_kinds=(ConfigKind(API_VERSION, KIND, SCHEMA),),
    scope_of=lambda config: str(config["lab"]),
    open=_open,
    secrets_of=_secrets_of,
    open_with_secrets=_open_with_secrets,
    bootstrap_formats=("cloud-config",),
    brings_user_data=lambda config: bool(config.get("userData")),
)
