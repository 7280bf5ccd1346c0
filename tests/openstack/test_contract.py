"""The provider's contract on a real OpenStack (`make e2e-openstack`)."""

from __future__ import annotations

import asyncio

import pytest

from providers.base.contract import Provider
from providers.base.contract_tests import BOOTSTRAP_SECRETS, ProviderContract
from providers.openstack import registration as openstack
from tests.openstack.tier import REAL, TestCloud
from tests.providers.openstack.scene import CHANGED, CONFIG, IMPOSSIBLE, HeldSecrets

pytestmark = REAL


class TestOnARealOpenStack(ProviderContract):
    registration = openstack
    valid_config = CONFIG
    changed_config = CHANGED
    impossible_config = IMPOSSIBLE

    @pytest.fixture(autouse=True)
    def _cloud(self, openstack_cloud: TestCloud) -> None:
        self.login = openstack_cloud.login()

    async def let_time_pass(self) -> None:
        await asyncio.sleep(0.5)

    async def open(self) -> Provider:
        opened = self.registration.open_with_secrets
        assert opened is not None
        return opened("", self.valid_config, HeldSecrets({**BOOTSTRAP_SECRETS, "cloud": {"clouds.yaml": self.login}}))
