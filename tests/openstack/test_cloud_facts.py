"""The facts that the provider counts on, and the fake cloud knows, hold on a real one."""

from __future__ import annotations

import asyncio

import pytest

from tests.openstack.tier import REAL, TestCloud
from tests.providers.openstack.cloud_facts import CloudFacts

pytestmark = REAL


class TestARealCloud(CloudFacts):
    @pytest.fixture(autouse=True)
    def _cloud(self, openstack_cloud: TestCloud) -> None:
        self.login = openstack_cloud.login()

    async def let_time_pass(self) -> None:
        await asyncio.sleep(0.5)
