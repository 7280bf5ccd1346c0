"""A Cluster's floating IP on a real OpenStack (`make e2e-openstack`), as on the fake one. That has no Octavia."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from providers.base.errors import ErrorClass, ProviderError
from tests.openstack.tier import REAL, TestCloud
from tests.providers.openstack.endpoint_scene import FLOATING_IP, FloatingIPContract

pytestmark = REAL


class TestAFloatingIPOfARealOpenStack(FloatingIPContract):
    @pytest.fixture(autouse=True)
    def _cloud(self, openstack_cloud: TestCloud) -> None:
        self.login = openstack_cloud.login()

    async def let_time_pass(self) -> None:
        await asyncio.sleep(0.5)

    async def test_a_cloud_without_octavia_says_so(self) -> None:
        config: dict[str, Any] = {**FLOATING_IP, "endpoint": {"loadBalancer": {"subnet": "nodes"}}}
        request = self.request()
        with pytest.raises(ProviderError) as caught:
            await self.provider().ensure_endpoint(
                type(request)(request.cluster_uid, "contract", "prod", config, request.members)
            )
        assert caught.value.error_class is ErrorClass.INVALID_CONFIGURATION
