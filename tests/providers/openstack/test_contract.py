"""The provider's contract on the fake cloud; ``test_real_contract.py`` runs the same on a real one."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator

import pytest_asyncio

from providers.base.contract import Host, Provider
from providers.base.contract_tests import BOOTSTRAP_SECRETS, ProviderContract
from providers.openstack import registration as openstack
from tests.providers.openstack.fake_cloud import FakeCloud
from tests.providers.openstack.scene import CHANGED, CONFIG, IMPOSSIBLE, HeldSecrets


class TestOnTheFakeCloud(ProviderContract):
    registration = openstack
    valid_config = CONFIG
    changed_config = CHANGED
    impossible_config = IMPOSSIBLE

    @pytest_asyncio.fixture(autouse=True)
    async def _cloud(self) -> AsyncIterator[None]:
        async with FakeCloud() as self.cloud:
            yield
            assert not self.cloud.servers
            assert not self.cloud.ports

    async def let_time_pass(self) -> None:
        await asyncio.sleep(0)

    async def open(self) -> Provider:
        opened = self.registration.open_with_secrets
        assert opened is not None
        return opened(
            "", self.valid_config, HeldSecrets({**BOOTSTRAP_SECRETS, "cloud": {"clouds.yaml": self.cloud.login()}})
        )

    async def boots(self, host: Host) -> int | None:
        return len(self.cloud.nova.reboots.get(host.id, ()))

    async def given_to(self, host: Host) -> bytes | None:
        bodies = (body["server"] for method, path, body in self.cloud.bodies if (method, path) == ("POST", "/servers"))
        return base64.b64decode(next(body["user_data"] for body in bodies if body["name"] == host.name))
