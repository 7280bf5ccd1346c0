from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.providers.openstack.fake_cloud import FakeCloud


@pytest.fixture
async def cloud() -> AsyncIterator[FakeCloud]:
    async with FakeCloud() as fake:
        yield fake
