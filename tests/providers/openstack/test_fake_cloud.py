"""The fake cloud knows the facts; ``tests/openstack/test_cloud_facts.py`` asks a real one for the same."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.providers.openstack.cloud_facts import CloudFacts
from tests.providers.openstack.fake_cloud import FakeCloud


class TestTheFakeCloud(CloudFacts):
    @pytest_asyncio.fixture(autouse=True)
    async def _cloud(self) -> AsyncIterator[None]:
        async with FakeCloud() as fake:
            self.login = fake.login()
            yield
