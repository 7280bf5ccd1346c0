"""What a host joins with reaches the guest byte for byte: asked of Nova's own metadata service, as guests ask it."""

from __future__ import annotations

import asyncio
import gzip
import random
import urllib.error
import uuid
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from controllers.bootstrap import cloud_config, shell
from providers.base.contract import BootstrapRef, Host, HostIdentity, HostRequest, HostState, Provider, Versions
from providers.openstack import registration
from providers.openstack.config import Cloud
from providers.openstack.login import login_in
from providers.openstack.requests import USER_DATA_LIMIT
from providers.openstack.session import COMPUTE, Session
from tests.controllers.bootstrap.test_join import JOIN, steps_of
from tests.openstack.tier import REAL, TestCloud
from tests.providers.openstack.scene import CONFIG, HeldSecrets

pytestmark = REAL

_NOISE = b64encode(random.Random(5).randbytes(60_000))
CASES: dict[str, tuple[BootstrapRef, bytes]] = {
    "cloud-config": (BootstrapRef("b"), cloud_config.render(steps_of(JOIN))),
    "script": (BootstrapRef("b", "script"), shell.render(steps_of(JOIN)).encode()),
    "what is no text": (BootstrapRef("b", "script"), b"#!/bin/sh\n" + bytes(range(256))),
    "as much as Nova takes": (
        BootstrapRef("b"),
        b"#cloud-config\n#".ljust(USER_DATA_LIMIT.size // 4 * 3, b"x"),
    ),
    "more than Nova takes": (BootstrapRef("b"), b"#cloud-config\n" + b"# the same\n" * 9000 + b"#" + _NOISE[:20_000]),
}


class TestBootstrapDataOnARealOpenStack:
    @pytest_asyncio.fixture
    async def made(self, openstack_cloud: TestCloud) -> AsyncIterator[list[Host]]:
        """Servers that go again, with all that was made for them."""
        self.cloud, self.opened, made = openstack_cloud, list[Any](), list[Host]()
        try:
            yield made
            remover = self._provider()
            for host in made:
                await remover.delete(host)
            await self._gone(remover, made)
        finally:
            for provider in self.opened:
                await provider.close()

    @staticmethod
    async def _gone(remover: Provider, made: list[Host]) -> None:
        """Ports and volumes are removed by the lists that follow on a delete."""
        uids = {host.machine_uid for host in made}
        for _ in range(200):
            if not uids & {host.machine_uid for host in await remover.list()}:
                return
            await asyncio.sleep(0.5)
        raise AssertionError(f"still there: {uids}")

    def _provider(self, **secrets: dict[str, bytes]) -> Provider:
        opened = registration.open_with_secrets
        assert opened is not None
        provider = opened("", CONFIG, HeldSecrets({"cloud": {"clouds.yaml": self.cloud.login()}, **secrets}))
        self.opened.append(provider)
        return provider

    async def _up(self, made: list[Host], provider: Provider, reference: BootstrapRef | None) -> Any:
        """The server, once it is up."""
        identity = HostIdentity(str(uuid.uuid4()), "test", f"join-{len(made)}", "story")
        wanted = HostRequest(identity, CONFIG, "hash-1", Versions("1.36.3"), bootstrap=reference)
        made.append(await provider.create(wanted))
        for _ in range(200):
            host = await provider.get(identity.machine_uid)
            if host is not None and host.state is HostState.RUNNING:
                break
            await asyncio.sleep(0.5)
        else:
            raise AssertionError(f"it is {host}")

        async def login() -> Any:
            return login_in({"clouds.yaml": self.cloud.login()}, Cloud(secret_name="cloud"))

        session = Session(login)
        try:
            return (await session.get(COMPUTE, f"/servers/{made[-1].id}"))["server"]
        finally:
            await session.close()

    async def _read(self, server: Any, path: str) -> bytes:
        return await asyncio.to_thread(self.cloud.as_the_guest_reads_it, server, path)

    @pytest.mark.parametrize("case", CASES)
    async def test_a_guest_reads_what_was_rendered(self, made: list[Host], case: str) -> None:
        reference, data = CASES[case]
        server = await self._up(made, self._provider(b={"userData": data}), reference)
        found = await self._read(server, "/openstack/latest/user_data")
        assert found == await self._read(server, "/latest/user-data"), "as cloud-init's other data source asks"
        assert (gzip.decompress(found) if case == "more than Nova takes" else found) == data
        told = await self._read(server, "/openstack/latest/meta_data.json")
        assert data[:40] not in told

    async def test_a_guest_without_any_reads_none(self, made: list[Host]) -> None:
        server = await self._up(made, self._provider(), None)
        with pytest.raises(urllib.error.HTTPError) as caught:
            await self._read(server, "/openstack/latest/user_data")
        caught.value.close()
        assert caught.value.code == 404
