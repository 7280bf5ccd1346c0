"""A directory of hosts over fake clouds, in virtual time: what the tests of hosts and of the shell play on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from controllers.kernel.actions import CreateHost, DeleteHost
from controllers.kernel.refs import MACHINE, Key, Ref
from controllers.kernel.view import HostNeed, HostReads
from nodewright.runtime.hosts.directory import HostDirectory
from nodewright.runtime.hosts.options import HostOptions
from providers.base.capabilities import Quota
from providers.base.contract import (
    ConfigKind,
    Host,
    HostIdentity,
    HostRequest,
    HostState,
    Problem,
    Registration,
    Shape,
    UpdateAnswer,
    Updated,
)
from providers.base.errors import ErrorClass, ProviderError
from providers.base.registry import Registry
from tests.runtime.virtual_time import now, virtual_time

CONFIG = {"apiVersion": "fake.dev/v1", "kind": "Fake", "zone": "a"}
SCHEMA = {"type": "object", "properties": {"zone": {"type": "string"}, "size": {"type": "integer"}}}
START = datetime(2026, 6, 1, tzinfo=UTC)


class FakeCloud:
    """A provider whose hosts are a dict; ``errors[call]`` are raised in order; ``gate`` holds calls back."""

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = {}
        self.calls: list[str] = []
        self.errors: dict[str, list[Exception | None]] = {}
        self.takes = 0.01
        self.running = self.most = self.checks = 0
        self.lacks: tuple[Problem, ...] = ()
        self.answer: UpdateAnswer = Updated()
        self.born = HostState.RUNNING
        self.printed = ""
        """What every host's console shows."""
        self.limits: tuple[Quota, ...] = ()

    async def _call(self, name: str, what: str = "") -> None:
        self.calls.append(f"{name} {what}".strip())
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(self.takes)
        finally:
            self.running -= 1
        script = self.errors.get(name)
        error = script.pop(0) if script else None
        if error is not None:
            raise error

    async def create(self, request: HostRequest) -> Host:
        uid = request.identity.machine_uid
        await self._call("create", uid)
        mark = request.identity.management_cluster
        host = Host(f"h-{uid}", uid, uid, f"fake://{uid}", self.born, request.spec_hash, management_cluster=mark)
        return self.hosts.setdefault(uid, host)

    async def delete(self, host: Host) -> None:
        await self._call("delete", host.machine_uid)
        self.hosts.pop(host.machine_uid, None)

    async def list(self) -> tuple[Host, ...]:
        seen = tuple(self.hosts.values())
        await self._call("list")
        return seen

    async def update(self, request: HostRequest, host: Host, drained: bool) -> UpdateAnswer:
        await self._call("update", host.machine_uid)
        return self.answer

    async def shape(self, config: Mapping[str, Any]) -> Shape:
        await self._call("shape")
        return Shape({"cpu": str(config.get("size", 1))})

    async def console(self, host: Host) -> str:
        await self._call("console", host.machine_uid)
        return self.printed

    async def quotas(self) -> tuple[Quota, ...]:
        await self._call("quotas")
        return self.limits

    async def validate(self, config: Mapping[str, Any]) -> tuple[Problem, ...]:
        """``lacks`` says what is missing; it is counted apart, since it goes on beside everything else."""
        self.checks += 1
        await asyncio.sleep(self.takes)
        script = self.errors.get("validate")
        error = script.pop(0) if script else None
        if error is not None:
            raise error
        return self.lacks

    def lists(self) -> int:
        return self.calls.count("list")


def scope_of(config: Mapping[str, Any]) -> str:
    return str(config.get("zone", "default"))


class Scene:
    def __init__(self, **options: Any) -> None:
        self.clouds: dict[str, FakeCloud] = {}
        registration = Registration("fake", (ConfigKind("fake.dev/v1", "Fake", SCHEMA),), scope_of, self._open)  # type: ignore[arg-type]
        self.began = now()
        self.leads = True
        self.directory = HostDirectory(
            Registry.of(registration), HostOptions(**options), self.clock, seed=1, may_call=lambda: self.leads
        )
        self.changed: list[str] = []
        self.directory.listen(self.changed.append)

    @property
    def cloud(self) -> FakeCloud:
        return self.clouds.setdefault("a", FakeCloud())

    def _open(self, scope: str, _config: Mapping[str, Any]) -> FakeCloud:
        return self.clouds.setdefault(scope, FakeCloud())

    def clock(self) -> datetime:
        return START + timedelta(seconds=now() - self.began)

    async def look(self, uid: str = "u1", fresh: float = 5.0, **need: Any) -> HostReads:
        """Look, and wait for the list if the directory asks to."""
        wanted = HostNeed(uid, need.pop("config", CONFIG), fresh, **need)
        while (reads := self.directory.look(wanted)) is None:
            self.changed.clear()
            await until(lambda: uid in self.changed)
        return reads

    async def settled(self) -> None:
        await until(lambda: not self.directory.busy)


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("never happened")


def scene(**options: Any) -> Callable[[Callable[[Scene], Awaitable[None]]], Callable[[], None]]:
    """A test on a Scene, in virtual time."""

    def decorate(test: Callable[[Scene], Awaitable[None]]) -> Callable[[], None]:
        @virtual_time
        async def run() -> None:
            stage = Scene(**options)
            try:
                await test(stage)
            finally:
                await stage.directory.close(grace=0.0)

        def plain() -> None:
            run()

        plain.__name__, plain.__doc__ = test.__name__, test.__doc__
        return plain

    return decorate


def request(uid: str = "u1", spec_hash: str = "h1", **config: Any) -> HostRequest:
    return HostRequest(HostIdentity(uid, "default", uid), {**CONFIG, **config}, spec_hash)


def ref(uid: str = "u1") -> Ref:
    return Ref(MACHINE, Key("default", uid), uid)


def create(uid: str = "u1", spec_hash: str = "h1", **config: Any) -> CreateHost:
    return CreateHost(ref(uid), request(uid, spec_hash, **config), "why")


def delete(host: Host) -> DeleteHost:
    uid = host.machine_uid
    return DeleteHost(ref(uid), HostIdentity(uid, "default", uid), host, CONFIG, "why")


def error(error_class: ErrorClass, retry_after: float | None = None) -> ProviderError:
    return ProviderError(error_class, f"scripted {error_class}", retry_after)
